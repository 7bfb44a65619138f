package retcon_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/vcs"
)

func TestExplain(t *testing.T) {
	me, dead := checkpoint.Self("me"), checkpoint.Self("dead")
	dead.Start++
	restore := &timeline.Plan{Verb: "restore", Target: "c3", Conflicts: []timeline.Note{{Path: "a", Why: "changed"}}}
	for _, test := range []struct {
		err  error
		code string
		hint string // the first
	}{
		{errors.New("what"), "FAILED", ""},
		{context.Canceled, "INTERRUPTED", ""},

		{&retcon.RefError{Ref: "x", Reason: "no such"}, "NOT_FOUND", "retcon snapshots"},
		{&retcon.NotRecordedError{Ref: "x", Reason: "not there"}, "NOT_RECORDED", "retcon log"},
		{&retcon.OpError{ID: 3}, "NOT_FOUND", "retcon op log"},
		{&retcon.InterruptedMoveError{Err: vcs.ErrMissing}, "INTERRUPTED_MOVE", "retcon recover"},
		{&retcon.ConfigError{Key: "k", Reason: "r"}, "USAGE", "retcon config"},
		{&checkpoint.LabelSyntaxError{Label: "c1", Reason: "r"}, "USAGE", ""},

		{&timeline.ConflictError{Plan: restore}, "CONFLICT", "retcon restore c3 --dry-run"},
		{&timeline.ConflictError{Plan: &timeline.Plan{Verb: "undo", Conflicts: restore.Conflicts}}, "CONFLICT", "retcon undo --dry-run"},
		{&timeline.BaseMovedError{}, "STALE_PLAN", "retcon diff"},
		{&timeline.LiveRunError{Run: 1, Owner: me}, "LOCKED", "retcon runs"},
		{&timeline.RateLimitError{Actor: "bot"}, "RATE_LIMITED", ""},
		{&timeline.MovingError{Holder: "x"}, "LOCKED", "retcon op log"},
		{timeline.ErrDeclined, "REFUSED", ""},

		{ledger.ErrNotFound, "NOT_FOUND", "retcon log"},
		{ledger.ErrFenced, "LOCKED", "retcon op log"},
		{ledger.ErrFinished, "REFUSED", "retcon runs"},
		{ledger.ErrClosed, "FAILED", ""},
		{&ledger.AmbiguousError{Prefix: "a", Matches: []string{"ab"}}, "NOT_FOUND", "retcon snapshots"},
		{&ledger.LabelError{Label: "l", Holder: 1, Has: "m"}, "REFUSED", "retcon snapshots unlabel m"},
		{&ledger.PinnedError{Checkpoint: 4}, "REFUSED", "retcon snapshots unpin c4"},
		{&ledger.ReferencedError{What: "c1", By: "op 3"}, "REFUSED", "retcon op show 3"},
		{&ledger.ReferencedError{What: "c1", By: `label "x"`}, "REFUSED", "retcon snapshots unlabel x"},
		{&ledger.ReferencedError{What: "c1", By: "attempt 1 of exec in r7"}, "REFUSED", "retcon runs"},
		{&ledger.ReferencedError{What: "r1", By: "r2"}, "REFUSED", "retcon runs"},
		{&ledger.UndoneError{Op: 3, Reason: "was undone"}, "REFUSED", "retcon op log"},
		{&ledger.InProgressError{Op: 3, Owner: me}, "OP_IN_PROGRESS", "retcon op show 3"},
		{&ledger.InProgressError{Op: 3, Owner: dead}, "INTERRUPTED_MOVE", "retcon recover"},
		{&ledger.RequestKeyReuseError{Key: "k", Op: 2}, "REQUEST_KEY_REUSE", "retcon op show 2"},
		{&ledger.RepeatedError{Op: ledger.Op{ID: 2}}, "REFUSED", "retcon op show 2"},
		{&ledger.RootChangedError{Path: "/w"}, "REFUSED", "retcon init --adopt"},
		{&ledger.LockedError{Resource: "x"}, "LOCKED", ""},
		{&ledger.CorruptError{Path: "x", Err: errors.New("y")}, "DAMAGED", "retcon doctor"},
		{&ledger.NotLedgerError{Path: "x"}, "DAMAGED", "retcon doctor"},
		{&ledger.NewerSchemaError{Path: "x"}, "FAILED", "retcon version"},
		{&ledger.OlderSchemaError{Path: "x"}, "FAILED", "retcon init"},
		{&ledger.FullError{Path: "x", Err: syscall.ENOSPC}, "FAILED", "retcon gc --dry-run"},
		{&ledger.ReadOnlyError{Path: "x", Err: syscall.EROFS}, "FAILED", "retcon doctor"},

		{vcs.ErrNotWorkspace, "NOT_FOUND", "retcon init"},
		{vcs.ErrBare, "NOT_FOUND", ""},
		{vcs.ErrMissing, "DAMAGED", "retcon doctor --deep"},
		{vcs.ErrDamaged, "DAMAGED", "retcon doctor --deep"},
		{vcs.ErrNoCommit, "NOT_FOUND", "retcon doctor --deep"},
		{&vcs.WideRootError{Root: "/home/me"}, "REFUSED", "retcon init --force"},
		{&vcs.OutsideError{Path: "/x", Root: "/w"}, "USAGE", ""},
		{&vcs.IgnoreError{Path: ".gitignore", Err: syscall.EACCES}, "REFUSED", ""},
		{&vcs.LockedError{What: "the worktree"}, "LOCKED", "retcon op log"},
		{&vcs.VerifyError{Path: "a", Err: errors.New("b")}, "FAILED", "retcon doctor"},
		{&vcs.NoSpaceError{}, "FAILED", "retcon gc --dry-run"},
		{&vcs.NoGitStateError{Why: "plain"}, "REFUSED", ""},
	} {
		t.Run(fmt.Sprintf("%T %s", test.err, test.hint), func(t *testing.T) {
			for _, err := range []error{test.err, fmt.Errorf("open: %w", test.err), errors.Join(test.err, errors.New("and more"))} {
				e := retcon.Explain(err)
				assert.Equal(t, test.code, e.Code)
				assert.NotContains(t, e.Message, "\n")
				if first := []rune(e.Message)[0]; err == test.err {
					assert.False(t, unicode.IsUpper(first) && !strings.HasPrefix(e.Message, "HEAD"), e.Message)
				}
				if assert.NotNil(t, e.Hints); test.hint == "" {
					assert.Empty(t, e.Hints)
				} else if assert.NotEmpty(t, e.Hints) {
					assert.Equal(t, test.hint, e.Hints[0])
				}
			}
		})
	}
}

// The hints of a conflict name the checkpoint, and following one settles it.
func TestConflictIsExplained(t *testing.T) {
	p := newFolder(t)
	p.write("a", "1")
	r := p.exec("run", func() { p.write("a", "2") })
	p.write("a", "3") // after the run, by somebody else
	_, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "r1@before"})
	e := retcon.Explain(err)
	assert.Equal(t, retcon.CodeConflict, e.Code)
	assert.Equal(t, []string{"retcon restore " + r.Before.Ref + " --dry-run", "retcon restore " + r.Before.Ref + " --conflicts theirs",
		"retcon restore " + r.Before.Ref + " --conflicts mine"}, e.Hints)
	assert.Equal(t, "3", p.read("a"))
	_, err = p.Restore(ctx, retcon.RestoreOptions{Ref: "r1@before", Conflicts: "theirs"})
	assert.NoError(t, err)
	assert.Equal(t, "1", p.read("a"))
}
