package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/retcon-dev/retcon/internal/crash"
	"github.com/retcon-dev/retcon/snapshot"
)

// Newest stands for the number of a branch's newest frame.
const Newest = -1 << 63

// A keyframe is written when the frames since the last one take eleven twentieths
// of its room, and twice what the rows that came since would take in it, but not
// before they take keyframeMin: while a state only grows, its frames are hardly
// longer than a keyframe would be. frameCost is what a frame takes besides its
// delta.
const (
	keyframeMin = 32 << 10
	frameCost   = 64
)

// packMin is the length from which a delta is compressed.
const packMin = 1 << 10

// Frame is the numbered state of a run after an outcome. Frames are numbered
// from 0 along the branches of a lineage, so a branch's first own frame follows
// the one of its parent at which it began.
type Frame struct {
	Branch     int64 // the one that owns it
	Seq        int64
	At         time.Time
	Kind       string // a word
	Note       string
	Root       snapshot.Hash
	Checkpoint int64             // the worktree at that moment; 0 for none
	Changed    []snapshot.Change // sorted by key; when asked for
}

// FrameOutcome is the kind of a frame that a task's outcome led to. Nearly all
// are of it, so it is stored as no word at all.
const FrameOutcome = "outcome"

// NewFrame is what leads to the next frame.
type NewFrame struct {
	Put        []snapshot.Row
	Delete     []string // keys
	Kind       string   // a word; FrameOutcome when it is empty
	Note       string
	Checkpoint int64 // 0 for that of the frame before
	Events     []Event
}

// Head is a loaded state, to which frames can be appended. One goroutine at a
// time may use it.
type Head struct {
	Branch int64
	Seq    int64         // -1 before the first frame
	Set    *snapshot.Set // never changed: each frame puts another in its place

	checkpoint int64
	since      int // bytes of frames since the keyframe
	keyframe   int // bytes of the keyframe
	rows       int // rows of the keyframe
}

// LoadFrame returns the state at a frame, as a branch sees it. The root of what
// was loaded is computed anew and must be the recorded one: otherwise it is a
// *CorruptError. ErrNotFound when there is no such frame. Newest is the head,
// to which can be appended; a branch without frames has an empty one.
func (tx *Tx) LoadFrame(branch, seq int64) (*Head, error) {
	segments, seq, err := tx.segments(branch, seq)
	if err != nil {
		return nil, fmt.Errorf("frame %d of branch %d: %w", seq, branch, err)
	}
	h := &Head{Branch: branch, Seq: seq, Set: snapshot.NewSet()}
	if len(segments) == 0 {
		return h, nil
	}
	root, err := tx.load(h, segments)
	if err != nil {
		return nil, fmt.Errorf("frame %d of branch %d: %w", seq, branch, err)
	}
	if got := h.Set.Root(); got != root {
		return nil, fmt.Errorf("frame %d of branch %d: %w", seq, branch,
			tx.corrupt("its state has the root %s, recorded is %s", got.Short(), root.Short()))
	}
	return h, nil
}

func (tx *Tx) corrupt(format string, args ...any) error {
	return &CorruptError{Path: tx.db.path, Err: fmt.Errorf(format, args...)}
}

// load folds the deltas of the segments, newest first, onto the last keyframe,
// and returns the root that is recorded.
func (tx *Tx) load(h *Head, segments []segment) (root snapshot.Hash, err error) {
	newest := segments[0]
	err = tx.get(`SELECT root FROM frame WHERE branch_id=? AND seq=?`, []any{newest.branch, h.Seq}, hashIn{&root})
	if err != nil {
		return root, err
	}
	if h.checkpoint, err = tx.checkpointAt(segments); err != nil {
		return root, err
	}
	at, keyframe, from, err := tx.readKeyframe(h, segments)
	if err != nil {
		return root, err
	}
	folding := snapshot.NewFolding(int(min(h.Seq-at, 1<<14))) // what is damaged may promise any number
	for _, g := range slices.Backward(from) {
		g.lo = max(g.lo, at)
		if err = tx.readDeltas(h, folding, g); err != nil {
			break
		}
	}
	set, kerr := keyframe()
	if err := errors.Join(kerr, err); err != nil {
		return root, err
	}
	if h.Set = set; at >= 0 {
		h.rows = set.Len()
	}
	if err := folding.Onto(set); err != nil {
		return root, tx.corrupt("%w", err)
	}
	return root, nil
}

// checkpointAt returns the checkpoint of the newest frame of a lineage.
func (tx *Tx) checkpointAt(segments []segment) (id int64, err error) {
	for _, g := range segments {
		err = tx.get(`SELECT checkpoint_id FROM frame
			WHERE branch_id=? AND seq>? AND seq<=? AND checkpoint_id IS NOT NULL ORDER BY seq DESC LIMIT 1`,
			[]any{g.branch, g.lo, g.hi}, &id)
		if !errors.Is(err, ErrNotFound) {
			return id, err
		}
	}
	return 0, nil
}

// readKeyframe reads the last keyframe and returns which frame it is of, -1
// when there is none, a function that waits for its state, and the segments that
// have something after it. A large one is parsed while those are read.
func (tx *Tx) readKeyframe(h *Head, segments []segment) (int64, func() (*snapshot.Set, error), []segment, error) {
	for i, g := range segments {
		var seq int64
		var stored string // which need not be copied
		err := tx.get(`SELECT seq, CAST(body AS TEXT) FROM keyframe WHERE branch_id=? AND seq>? AND seq<=? ORDER BY seq DESC LIMIT 1`,
			[]any{g.branch, g.lo, g.hi}, &seq, &stored)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, nil, nil, err
		}
		h.keyframe = len(stored)
		parse := sync.OnceValues(func() (*snapshot.Set, error) {
			set, err := parseKeyframe(seq, bytesIn(stored))
			if err != nil {
				err = tx.corrupt("%w", err)
			}
			return set, err
		})
		if len(stored) >= largeKeyframe {
			go parse()
		}
		return seq, parse, segments[:i+1], nil
	}
	return -1, func() (*snapshot.Set, error) { return h.Set, nil }, segments, nil
}

// largeKeyframe is from how many bytes on a keyframe is parsed on another core.
const largeKeyframe = 64 << 10

// parseKeyframe reads a keyframe as it is stored.
func parseKeyframe(seq int64, stored []byte) (*snapshot.Set, error) {
	body, err := decompress(stored)
	if err != nil {
		return nil, err
	}
	s, err := snapshot.ParseKeyframe(seq, body)
	if err != nil {
		return nil, fmt.Errorf("keyframe %d: %w", seq, err)
	}
	return s, nil
}

// readDeltas begins to fold those of the frames of a segment.
func (tx *Tx) readDeltas(h *Head, folding *snapshot.Folding, g segment) error {
	rows, err := tx.tx.QueryContext(tx.ctx, `SELECT CAST(delta AS TEXT) FROM frame WHERE branch_id=? AND seq>? AND seq<=? ORDER BY seq`,
		g.branch, g.lo, g.hi)
	if err != nil {
		return tx.db.explain(err)
	}
	defer rows.Close()
	seq := g.lo
	for rows.Next() {
		seq++             // if one is missing, the next does not follow, or the last is not there
		var stored string // a text is ours to keep, a blob would have to be copied
		if err := rows.Scan(&stored); err != nil {
			return tx.db.explain(err)
		}
		delta, err := unpackText(stored)
		if err == nil {
			err = folding.Add(seq, delta)
		}
		if err != nil {
			return tx.corrupt("frame %d: %w", seq, err)
		}
		h.since += len(stored) + frameCost
	}
	if err := rows.Err(); err != nil {
		return tx.db.explain(err)
	}
	if seq != g.hi {
		return tx.corrupt("of the frames %d to %d of branch %d there are %d", g.lo+1, g.hi, g.branch, seq-g.lo)
	}
	return nil
}

// zstdMagic begins whatever is compressed, and no delta: that would have forty
// entries, the first with flags that there are not.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

func packDelta(delta []byte) []byte {
	if len(delta) >= packMin {
		if small := compress(delta); len(small) < len(delta) {
			return small
		}
	}
	return delta
}

func unpackDelta(stored []byte) ([]byte, error) {
	if bytes.HasPrefix(stored, zstdMagic) {
		return decompress(stored)
	}
	return stored, nil
}

// unpackText is unpackDelta of a delta that was read as a text.
func unpackText(stored string) (string, error) {
	if len(stored) < len(zstdMagic) || stored[:len(zstdMagic)] != string(zstdMagic) {
		return stored, nil
	}
	delta, err := decompress(bytesIn(stored))
	return unsafe.String(unsafe.SliceData(delta), len(delta)), err // nobody else has it
}

// bytesIn is a view of a text, which nobody may write to.
func bytesIn(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// AppendFrame adds the frame that follows a head, and moves the head on to it.
// After an error the head is as it was, and likewise when the transaction comes
// to nothing. The frame's Changed is filled in.
//
// ErrStale says that somebody else has appended: load anew. Others are
// *GatedError, *ArchivedError, and what [snapshot.Set.Advance] says of the rows.
func (tx *Tx) AppendFrame(h *Head, f NewFrame) (Frame, error) {
	next := *h
	next.Seq++
	next.Set = h.Set.Clone()
	delta, changes, err := next.Set.Advance(next.Seq, f.Put, f.Delete)
	if err != nil {
		return Frame{}, fmt.Errorf("frame %d of branch %d: %w", next.Seq, h.Branch, err)
	}
	frame := Frame{Branch: h.Branch, Seq: next.Seq, At: tx.Now(), Kind: f.Kind, Note: f.Note, Root: next.Set.Root(),
		Checkpoint: f.Checkpoint, Changed: changes}
	if frame.Kind == "" {
		frame.Kind = FrameOutcome
	}
	if frame.Checkpoint == 0 {
		frame.Checkpoint = h.checkpoint
	}
	next.checkpoint = frame.Checkpoint
	if err := tx.appendFrame(h, &next, frame, delta, f.Events); err != nil {
		return Frame{}, fmt.Errorf("frame %d of branch %d: %w", next.Seq, h.Branch, err)
	}
	old := *h
	tx.undo = append(tx.undo, func() { *h = old })
	*h = next
	return frame, nil
}

func (tx *Tx) appendFrame(h, next *Head, f Frame, delta []byte, events []Event) error {
	before := h.Set.Root()
	n, err := tx.exec(`UPDATE branch SET head_seq=?, head_root=?
		WHERE id=? AND head_seq=? AND head_root=? AND state='live' AND op_id IS NULL`,
		f.Seq, f.Root[:], h.Branch, h.Seq, before[:])
	if err != nil {
		return err
	}
	if n == 0 {
		return tx.refused(h.Branch)
	}
	crash.Point("ledger.frame.head")
	stored := packDelta(delta)
	var moved any // the checkpoint, where it is another than before
	if f.Checkpoint != h.checkpoint {
		moved = f.Checkpoint
	}
	kind := f.Kind
	if kind == FrameOutcome {
		kind = ""
	}
	_, err = tx.exec(`INSERT INTO frame(branch_id, seq, at_ms, kind, root, checkpoint_id, note, delta) VALUES(?, ?, ?, ?, ?, ?, ?, ?)`,
		f.Branch, f.Seq, millis(f.At), kind, f.Root[:], moved, word(f.Note), stored)
	if err != nil {
		return err
	}
	crash.Point("ledger.frame.row")
	if err := tx.insertEvents(f.Branch, f.Seq, events); err != nil {
		return err
	}
	next.since += len(stored) + frameCost
	return tx.maybeKeyframe(next)
}

// maybeKeyframe writes a keyframe in proportion to what has changed: so bytes
// per frame are bounded by what each changes, and the time to load by how large
// the state is, and neither grows with the history.
func (tx *Tx) maybeKeyframe(h *Head) error {
	if h.since <= max(h.keyframe*11/20+2*h.grown(), tx.db.keyframes) {
		return nil
	}
	body := compress(h.Set.Keyframe(h.Seq))
	if _, err := tx.exec(`INSERT INTO keyframe(branch_id, seq, body) VALUES(?, ?, ?)`, h.Branch, h.Seq, body); err != nil {
		return fmt.Errorf("keyframe: %w", err)
	}
	h.keyframe, h.rows, h.since = len(body), h.Set.Len(), 0
	crash.Point("ledger.frame.key")
	return nil
}

// grown is about how many more bytes a keyframe would take than the last one.
func (h *Head) grown() int {
	if h.rows == 0 {
		return 0
	}
	return max(0, h.Set.Len()-h.rows) * (h.keyframe / h.rows)
}

// refused says why a guarded update found no branch to change.
func (tx *Tx) refused(branch int64) error {
	b, err := tx.BranchByID(branch)
	if err == nil {
		err = b.refusal(0)
	}
	if err == nil {
		err = ErrStale
	}
	return err
}
