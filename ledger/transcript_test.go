package ledger

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/snapshot"
)

func TestTranscripts(t *testing.T) {
	b := newBook(t, Options{})
	r := b.run(Run{})
	piece := func(s string) Prepared { return Prepare([]byte(s)) }
	var one Transcript
	b.update(func(tx *Tx) (err error) {
		one, err = tx.AppendTranscript(Transcript{RunID: r.ID, Path: "/t\xff", Digest: []byte("d1"), Leaf: "a"}, []Prepared{piece("first\n"), piece("second\n")})
		return err
	})
	assert.EqualValues(t, 13, one.Size)
	stale := one
	one.Digest, one.Leaf = []byte("d2"), "b"
	b.update(func(tx *Tx) (err error) {
		one, err = tx.AppendTranscript(one, []Prepared{piece("first\n")}) // the same content is stored once
		return err
	})
	require.ErrorIs(t, b.db.Update(bg, func(tx *Tx) error {
		_, err := tx.AppendTranscript(stale, []Prepared{piece("meanwhile\n")})
		return err
	}), ErrStale)
	b.view(func(tx *Tx) error {
		all, err := tx.Transcripts(r.ID)
		require.NoError(t, err)
		assert.Equal(t, []Transcript{one}, all)
		pieces, err := tx.Pieces(one.ID)
		require.NoError(t, err)
		var text strings.Builder
		for _, p := range pieces {
			c, err := tx.Content(p.Hash)
			require.NoError(t, err)
			assert.EqualValues(t, text.Len(), p.Start)
			text.Write(c)
		}
		assert.Equal(t, "first\nsecond\nfirst\n", text.String())
		last, err := tx.LastPiece(one.ID)
		require.NoError(t, err)
		assert.Equal(t, pieces[2], last)
		_, err = tx.LastPiece(99)
		require.ErrorIs(t, err, ErrNotFound)
		return nil
	})
}

// What a copy is made of is named by it: it is not swept while the run is, and
// is after that.
func TestTranscriptsAreKept(t *testing.T) {
	b := newBook(t, Options{})
	r := b.run(Run{})
	b.update(func(tx *Tx) error {
		_, err := tx.AppendTranscript(Transcript{RunID: r.ID, Path: "/t", Digest: []byte{}}, []Prepared{Prepare([]byte("text"))})
		return err
	})
	b.now = b.now.Add(10 * MinSweepAge)
	swept, err := b.db.SweepContents(bg, b.now)
	require.NoError(t, err)
	assert.Zero(t, swept.Contents)
	b.update(func(tx *Tx) error { return tx.DeleteRun(r.ID, "test") })
	swept, err = b.db.SweepContents(bg, b.now)
	require.NoError(t, err)
	assert.EqualValues(t, 1, swept.Contents)
}

func TestTranscriptsAreChecked(t *testing.T) {
	for kind, statements := range map[string][]string{
		ProblemRow: {`DELETE FROM transcript_piece WHERE start = 0`, `UPDATE transcript SET size = 1`, `UPDATE transcript_piece SET start = start + 1 WHERE start > 0`,
			`DELETE FROM transcript`},
		ProblemReference: {`DELETE FROM content`},
		ProblemSequence:  {`UPDATE transcript SET id = 7; UPDATE transcript_piece SET transcript_id = 7`},
	} {
		for _, s := range statements {
			b := &book{TB: t}
			b.db = open(t, t.TempDir()+"/ledger.db", Options{})
			b.update(func(tx *Tx) error {
				w, err := tx.EnsureWorktree(Worktree{Path: "/w", Kind: KindPlain})
				b.worktree = w.ID
				return err
			})
			r := b.run(Run{})
			b.update(func(tx *Tx) error {
				_, err := tx.AppendTranscript(Transcript{RunID: r.ID, Path: "/t", Digest: []byte{}}, []Prepared{Prepare([]byte("one")), Prepare([]byte("two"))})
				return err
			})
			require.Empty(t, b.problems())
			h := sql.OpenDB(connector{fileURI(b.db.path) + "?_synchronous=OFF", &sqlite3.SQLiteDriver{}})
			_, err := h.Exec(s)
			require.NoError(t, err, s)
			require.NoError(t, h.Close())
			var kinds []string
			for _, p := range b.problems() {
				kinds = append(kinds, p.Kind)
			}
			assert.Contains(t, kinds, kind, s)
		}
	}
}

// What leads to a frame that is not there yet moves to another branch whole, and
// nothing else does.
func TestRegraft(t *testing.T) {
	b := newBook(t, Options{})
	r, h := b.start()
	b.put(h, task("~conv", snapshot.Done, 1))
	b.put(h, task("prompt-1", snapshot.Done, 1))
	var old Branch
	b.update(func(tx *Tx) error {
		for _, name := range []string{"prompt-2/Bash[c1]", "prompt-2/Bash[c1]", "prompt-20/Bash[c2]"} {
			a, err := tx.StartAttempt(Attempt{RunID: r.ID, Task: name, Branch: h.Branch, StartSeq: 1})
			require.NoError(t, err)
			require.NoError(t, tx.FinishAttempt(a.ID, Finish{Outcome: OutcomeOK}))
		}
		_, err := tx.StartAttempt(Attempt{RunID: r.ID, Task: "prompt-1/Bash[c0]", Branch: h.Branch, StartSeq: 0})
		require.NoError(t, err)
		require.NoError(t, tx.AppendEvents(h.Branch, []Event{{Type: "session-start"}, {Type: "prompt", Task: "prompt-2", ExtID: "t2"},
			{Type: "tool-before", Task: "prompt-2", ExtID: "c1", Body: []byte(`"` + strings.Repeat("x", 2*InlineMax) + `"`)}, {Type: "subagent", Task: "prompt-2/sub-1"}}))
		old, err = tx.BranchByID(h.Branch)
		return err
	})
	next, _ := b.rewind(r.ID, 0)
	b.update(func(tx *Tx) error { return tx.Regraft(old, next, 1, "prompt-2", "prompt-1") })
	b.view(func(tx *Tx) error {
		told := func(branch int64) (all []string) {
			events, err := tx.Events(branch, EventQuery{From: 1})
			require.NoError(t, err)
			for _, e := range events {
				body, err := tx.EventBody(e)
				require.NoError(t, err)
				all = append(all, fmt.Sprintf("%d.%d %s %s %s %d", e.Seq, e.Idx, e.Type, e.Task, e.ExtID, len(body)))
			}
			return all
		}
		assert.Equal(t, []string{"2.0 session-start   0"}, told(old.ID))
		assert.Equal(t, []string{"1.0 prompt prompt-1 t2 0", "1.1 tool-before prompt-1 c1 802", "1.2 subagent prompt-1/sub-1  0"}, told(next.ID))
		all, err := tx.Attempts(r.ID)
		require.NoError(t, err)
		var attempts []string
		for _, a := range all {
			attempts = append(attempts, fmt.Sprintf("%d %d %s #%d", a.Branch, a.StartSeq, a.Task, a.Number))
		}
		assert.Equal(t, []string{
			fmt.Sprintf("%d 0 prompt-1/Bash[c1] #1", next.ID), fmt.Sprintf("%d 0 prompt-1/Bash[c1] #2", next.ID),
			fmt.Sprintf("%d 1 prompt-20/Bash[c2] #1", old.ID), fmt.Sprintf("%d 0 prompt-1/Bash[c0] #1", old.ID)}, attempts)
		return nil
	})
	b.update(func(tx *Tx) error {
		open, err := tx.OpenAttempts(b.worktree)
		require.NoError(t, err)
		return tx.FinishAttempt(open[0].ID, Finish{Outcome: OutcomeOK})
	})
}

// A checkpoint between two calls of a prompt goes, and the windows around it
// become one; one that anything else needs, or at the edge of a window that
// nothing follows, stays.
func TestThinCheckpoint(t *testing.T) {
	type window struct {
		task          string
		before, after int // of the points below, from 1
	}
	for name, test := range map[string]struct {
		windows []window
		thin    int
		want    []window // nil: it is refused
	}{
		"between two":             {[]window{{"p/a[1]", 1, 2}, {"p/b[2]", 2, 3}}, 2, []window{{"p/a[1]", 1, 3}, {"p/b[2]", 1, 3}}},
		"with one that was empty": {[]window{{"p/a[1]", 1, 2}, {"p/e[2]", 2, 2}, {"p/b[3]", 2, 3}}, 2, []window{{"p/a[1]", 1, 3}, {"p/e[2]", 1, 1}, {"p/b[3]", 1, 3}}},
		"of a subagent":           {[]window{{"p/a[1]", 1, 2}, {"p/sub-1/b[2]", 2, 3}}, 2, []window{{"p/a[1]", 1, 3}, {"p/sub-1/b[2]", 1, 3}}},
		"that overlap":            {[]window{{"p/a[1]", 1, 3}, {"p/b[2]", 2, 3}, {"p/c[3]", 3, 4}}, 3, []window{{"p/a[1]", 1, 4}, {"p/b[2]", 2, 4}, {"p/c[3]", 1, 4}}},
		"nothing follows":         {[]window{{"p/a[1]", 1, 2}, {"p/b[2]", 3, 4}}, 2, nil},
		"nothing leads there":     {[]window{{"p/a[1]", 1, 2}, {"p/b[2]", 3, 4}}, 3, nil},
		"only an empty one":       {[]window{{"p/a[1]", 2, 2}}, 2, nil},
		"the edge of a prompt":    {[]window{{"p/a[1]", 1, 2}, {"p/b[2]", 2, 3}, {"p", 1, 2}}, 2, nil},
		"of two prompts":          {[]window{{"p/a[1]", 1, 2}, {"q/b[2]", 2, 3}}, 2, nil},
		"one goes on":             {[]window{{"p/a[1]", 1, 2}, {"p/b[2]", 2, 0}}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t, Options{})
			r := b.run(Run{Kind: "session"})
			points := []int64{0}
			b.update(func(tx *Tx) error {
				for i := range 4 {
					commit := fmt.Sprintf("%040x", i+1)
					c, err := tx.AppendCheckpoint(Checkpoint{WorktreeID: b.worktree, RunID: r.ID, Tier: TierTool, Commit: commit, Tree: commit})
					require.NoError(t, err)
					points = append(points, c.ID)
				}
				for _, w := range test.windows {
					call := ""
					if _, rest, ok := strings.Cut(w.task, "["); ok {
						call = strings.TrimSuffix(rest, "]")
					}
					a, err := tx.StartAttempt(Attempt{RunID: r.ID, Task: w.task, Call: call, Before: points[w.before]})
					require.NoError(t, err)
					if w.after != 0 {
						require.NoError(t, tx.FinishAttempt(a.ID, Finish{Outcome: OutcomeOK, After: points[w.after]}))
					}
				}
				return nil
			})
			err := b.db.Update(bg, func(tx *Tx) error { return tx.ThinCheckpoint(points[test.thin], "test") })
			var refused *ReferencedError
			want := test.want
			if want == nil {
				require.ErrorAs(t, err, &refused)
				want = test.windows
			} else {
				require.NoError(t, err)
			}
			b.view(func(tx *Tx) error {
				all, err := tx.Attempts(r.ID)
				require.NoError(t, err)
				for i, w := range want {
					assert.Equal(t, []int64{points[w.before], points[w.after]}, []int64{all[i].Before, all[i].After}, w.task)
				}
				return nil
			})
		})
	}
}

// Of what is pinned, labelled, a frame's or an operation's nothing is thinned.
func TestThinCheckpointThatIsNeeded(t *testing.T) {
	for name, need := range map[string]func(b *book, r Run, h *Head, c Checkpoint){
		"a pin": func(b *book, _ Run, _ *Head, c Checkpoint) {
			b.update(func(tx *Tx) error { return tx.SetPinned(c.ID, true, "") })
		},
		"a label": func(b *book, _ Run, _ *Head, c Checkpoint) {
			b.update(func(tx *Tx) error { return tx.MoveLabel(c.ID, "l", "") })
		},
		"a frame": func(b *book, _ Run, h *Head, c Checkpoint) { b.append(h, NewFrame{Kind: "test", Checkpoint: c.ID}) },
		"an operation": func(b *book, _ Run, _ *Head, c Checkpoint) {
			b.update(func(tx *Tx) error {
				o, err := tx.BeginOp(Op{Verb: "restore", Worktrees: []OpWorktree{{WorktreeID: b.worktree, Target: c.Commit}}}, nil)
				require.NoError(b, err)
				_, err = tx.FinishOp(o.ID, o.Token, ResultOK, "")
				return err
			})
		},
		"another run": func(b *book, _ Run, _ *Head, c Checkpoint) {
			other := b.run(Run{Kind: "session"})
			b.update(func(tx *Tx) error {
				a, err := tx.StartAttempt(Attempt{RunID: other.ID, Task: "p/x[9]", Call: "9", Before: c.ID})
				require.NoError(b, err)
				return tx.FinishAttempt(a.ID, Finish{Outcome: OutcomeOK, After: c.ID})
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t, Options{})
			r, h := b.start()
			var cs []Checkpoint
			b.update(func(tx *Tx) error {
				for i := range 3 {
					commit := fmt.Sprintf("%040x", i+1)
					c, err := tx.AppendCheckpoint(Checkpoint{WorktreeID: b.worktree, RunID: r.ID, Tier: TierTool, Commit: commit, Tree: commit})
					require.NoError(t, err)
					cs = append(cs, c)
				}
				for i := range 2 {
					a, err := tx.StartAttempt(Attempt{RunID: r.ID, Task: fmt.Sprintf("p/a[%d]", i), Call: fmt.Sprint(i), Before: cs[i].ID})
					require.NoError(t, err)
					require.NoError(t, tx.FinishAttempt(a.ID, Finish{Outcome: OutcomeOK, After: cs[i+1].ID}))
				}
				return nil
			})
			need(b, r, h, cs[1])
			b.update(func(tx *Tx) error { // whose other steps are carried out all the same
				require.Error(t, tx.ThinCheckpoint(cs[1].ID, "test"))
				return nil
			})
			b.view(func(tx *Tx) error {
				all, err := tx.Attempts(r.ID)
				require.NoError(t, err)
				assert.Equal(t, []int64{cs[0].ID, cs[1].ID, cs[1].ID, cs[2].ID}, []int64{all[0].Before, all[0].After, all[1].Before, all[1].After})
				_, err = tx.Checkpoint(cs[1].ID)
				return err
			})
		})
	}
}
