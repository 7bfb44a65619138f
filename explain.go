package retcon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/timeline"
	"github.com/retcon-dev/retcon/vcs"
)

// Codes that programs branch on.
const (
	CodeFailed             = "FAILED"
	CodeUsage              = "USAGE"
	CodeNotFound           = "NOT_FOUND"
	CodeNotRecorded        = "NOT_RECORDED"
	CodeRefused            = "REFUSED"
	CodeConfirmationNeeded = "CONFIRMATION_NEEDED" // for the doors: nobody could be asked
	CodeConflict           = "CONFLICT"
	CodeStalePlan          = "STALE_PLAN"
	CodeRequestKeyReuse    = "REQUEST_KEY_REUSE"
	CodeLocked             = "LOCKED"
	CodeOpInProgress       = "OP_IN_PROGRESS"
	CodeRateLimited        = "RATE_LIMITED"
	CodeInterruptedMove    = "INTERRUPTED_MOVE"
	CodeDamaged            = "DAMAGED"
	CodeInterrupted        = "INTERRUPTED"
	CodeBody               = "BODY"   // a fault of a workflow's file
	CodeConfig             = "CONFIG" // a configuration that can't be used

	CodeEffectBlocked  = "TIME_TRAVEL_SIDE_EFFECT_BLOCKED" // something done outside is in the way
	CodeNeedsAttention = "NEEDS_ATTENTION"                 // it could not be undone
)

// Explained is an error as it is told.
type Explained struct {
	Code    string   `json:"code"`
	Message string   `json:"message"` // one line, lower case
	Hints   []string `json:"hints"`   // each a command one can paste

	// Of what is locked: who holds it, "" when that is not known, and since when.
	Holder string     `json:"holder,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
}

// Explain chooses code, message and hints for an error. It is the only place
// where that is done.
func Explain(err error) Explained {
	e := Explained{Code: CodeFailed, Hints: []string{}}
	if err == nil {
		return e
	}
	e.Message = strings.ReplaceAll(err.Error(), "\n", "; ")
	for _, explain := range explanations {
		if explain(err, &e) {
			break
		}
	}
	var stopped *StoppedError
	if errors.As(err, &stopped) && stopped.Program == "" {
		e.Hints = append(e.Hints, "retcon resume "+stopped.Run)
	}
	return e
}

// explanations are tried in order; each says whether the error is its own. What
// tells more comes before what it may be wrapped around.
var explanations = []func(error, *Explained) bool{
	explainEffects, explainSelf, explainTrust, explainMove, explainBody, explainRun, explainReference, explainRow, explainDamage, explainPlace, explainRoom, explainRest,
}

// held is is for what somebody holds.
func (e *Explained) held(code, holder string, since time.Time, hints ...string) bool {
	e.Holder = holder
	if !since.IsZero() {
		utc := since.UTC()
		e.Since = &utc
	}
	return e.is(code, hints...)
}

// heldBy is held for a process.
func (e *Explained) heldBy(code string, by ledger.Owner, since time.Time, hints ...string) bool {
	holder := ""
	if by != (ledger.Owner{}) {
		holder = by.String()
	}
	return e.held(code, holder, since, hints...)
}

func (e *Explained) is(code string, hints ...string) bool {
	e.Code, e.Hints = code, append(e.Hints, hints...)
	return true
}

// explainMove knows what stands in the way of moving.
func explainMove(err error, e *Explained) bool {
	var (
		conflict    *timeline.ConflictError
		moved       *timeline.BaseMovedError
		stale       *timeline.StaleHistoryError
		live        *timeline.LiveRunError
		limited     *timeline.RateLimitError
		moving      *timeline.MovingError
		interrupted *InterruptedMoveError
		verify      *vcs.VerifyError
		git         *vcs.NoGitStateError
	)
	switch {
	case errors.As(err, &interrupted):
		return e.is(CodeInterruptedMove, "retcon recover", "retcon doctor")
	case errors.As(err, &conflict):
		again := commandOf(conflict.Plan)
		return e.is(CodeConflict, again+" --dry-run", again+" --conflicts theirs", again+" --conflicts mine")
	case errors.As(err, &moved):
		return e.is(CodeStalePlan, "retcon diff")
	case errors.As(err, &stale):
		return e.is(CodeStalePlan, fmt.Sprintf("retcon timeline r%d", stale.Run))
	case errors.As(err, &live):
		return e.heldBy(CodeLocked, live.Owner, live.Since, "retcon runs")
	case errors.As(err, &limited):
		return e.is(CodeRateLimited)
	case errors.As(err, &moving):
		return e.held(CodeLocked, moving.Holder, time.Time{}, "retcon op log")
	case errors.Is(err, timeline.ErrDeclined):
		e.Message = "declined: nothing was changed"
		return e.is(CodeRefused)
	case errors.As(err, &verify):
		e.Message += "; the worktree was put back as it was"
		return e.is(CodeFailed, "retcon doctor")
	case errors.As(err, &git):
		return e.is(CodeRefused)
	}
	return false
}

// explainReference knows what was asked for and is not there.
func explainReference(err error, e *Explained) bool {
	var (
		ref       *RefError
		none      *NotRecordedError
		op        *OpError
		ambiguous *ledger.AmbiguousError
	)
	switch {
	case errors.As(err, &none):
		return e.is(CodeNotRecorded, "retcon log")
	case errors.As(err, &ref):
		return e.is(CodeNotFound, "retcon snapshots")
	case errors.As(err, &op):
		return e.is(CodeNotFound, "retcon op log")
	case errors.As(err, &ambiguous):
		return e.is(CodeNotFound, "retcon snapshots", "retcon runs")
	case errors.Is(err, vcs.ErrNoCommit):
		return e.is(CodeNotFound, "retcon doctor --deep")
	}
	return false
}

// explainRow knows what the ledger refuses.
func explainRow(err error, e *Explained) bool {
	var (
		label      *ledger.LabelError
		spelling   *checkpoint.LabelSyntaxError
		pinned     *ledger.PinnedError
		referenced *ledger.ReferencedError
		undone     *ledger.UndoneError
		open       *ledger.InProgressError
		reuse      *ledger.RequestKeyReuseError
		repeated   *ledger.RepeatedError
		root       *ledger.RootChangedError
		locked     *ledger.LockedError
	)
	switch {
	case errors.As(err, &label):
		return e.is(CodeRefused, fmt.Sprintf("retcon snapshots unlabel %s", label.Has))
	case errors.As(err, &spelling):
		return e.is(CodeUsage)
	case errors.As(err, &pinned):
		return e.is(CodeRefused, fmt.Sprintf("retcon snapshots unpin c%d", pinned.Checkpoint))
	case errors.As(err, &referenced):
		return e.is(CodeRefused, neededHint(referenced))
	case errors.As(err, &undone):
		return e.is(CodeRefused, "retcon op log")
	case errors.As(err, &open):
		if !checkpoint.Alive(open.Owner) {
			return e.is(CodeInterruptedMove, "retcon recover")
		}
		return e.heldBy(CodeOpInProgress, open.Owner, open.Since, fmt.Sprintf("retcon op show %d", open.Op))
	case errors.As(err, &reuse):
		return e.is(CodeRequestKeyReuse, fmt.Sprintf("retcon op show %d", reuse.Op))
	case errors.As(err, &repeated):
		return e.is(CodeRefused, fmt.Sprintf("retcon op show %d", repeated.Op.ID))
	case errors.As(err, &root):
		e.Message = "another directory stands at " + root.Path + " than the one whose history was recorded"
		return e.is(CodeRefused, "retcon init --adopt")
	case errors.As(err, &locked):
		return e.heldBy(CodeLocked, locked.Owner, locked.Since)
	case errors.Is(err, ledger.ErrFenced):
		e.Message = "another process has taken this move over"
		return e.is(CodeLocked, "retcon op log")
	case errors.Is(err, ledger.ErrFinished):
		return e.is(CodeRefused, "retcon runs")
	case errors.Is(err, ledger.ErrNotFound):
		return e.is(CodeNotFound, "retcon log")
	}
	return false
}

// neededHint says how a checkpoint that is needed can be looked at.
func neededHint(r *ledger.ReferencedError) string {
	var op int64
	if n, _ := fmt.Sscanf(r.By, "op %d", &op); n == 1 {
		return fmt.Sprintf("retcon op show %d", op)
	}
	var label string
	if n, _ := fmt.Sscanf(r.By, "label %q", &label); n == 1 {
		return "retcon snapshots unlabel " + label
	}
	return "retcon runs"
}

// explainDamage knows what is broken.
func explainDamage(err error, e *Explained) bool {
	var (
		corrupt *ledger.CorruptError
		other   *ledger.NotLedgerError
		newer   *ledger.NewerSchemaError
		older   *ledger.OlderSchemaError
	)
	switch {
	case errors.As(err, &corrupt), errors.As(err, &other):
		return e.is(CodeDamaged, "retcon doctor")
	case errors.Is(err, vcs.ErrMissing), errors.Is(err, vcs.ErrDamaged):
		return e.is(CodeDamaged, "retcon doctor --deep")
	case errors.As(err, &newer):
		return e.is(CodeFailed, "retcon version")
	case errors.As(err, &older):
		return e.is(CodeFailed, "retcon init")
	}
	return false
}

// explainPlace knows where retcon can't work.
func explainPlace(err error, e *Explained) bool {
	var (
		wide    *vcs.WideRootError
		outside *vcs.OutsideError
		ignore  *vcs.IgnoreError
		config  *ConfigError
		locked  *vcs.LockedError
	)
	switch {
	case errors.Is(err, vcs.ErrNotWorkspace):
		e.Message = "not a workspace: neither a git worktree nor a folder that retcon was told to keep"
		return e.is(CodeNotFound, "retcon init")
	case errors.Is(err, vcs.ErrBare):
		return e.is(CodeNotFound)
	case errors.As(err, &wide):
		return e.is(CodeRefused, "retcon init --force")
	case errors.As(err, &outside):
		return e.is(CodeUsage)
	case errors.As(err, &ignore):
		return e.is(CodeRefused)
	case errors.As(err, &config):
		return e.is(CodeUsage, "retcon config")
	case errors.As(err, &locked):
		return e.held(CodeLocked, locked.Holder, locked.Since, "retcon op log")
	}
	return false
}

// explainRoom knows what the disk refuses.
func explainRoom(err error, e *Explained) bool {
	var (
		full     *ledger.FullError
		space    *vcs.NoSpaceError
		readOnly *ledger.ReadOnlyError
	)
	switch {
	case errors.As(err, &full), errors.As(err, &space), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return e.is(CodeFailed, "retcon gc --dry-run")
	case errors.As(err, &readOnly), errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return e.is(CodeFailed, "retcon doctor")
	}
	return false
}

func explainRest(err error, e *Explained) bool {
	if errors.Is(err, context.Canceled) {
		e.Message = "interrupted"
		return e.is(CodeInterrupted)
	}
	return false
}

// commandOf is the command that asks for a plan's move again, for hints.
func commandOf(p *timeline.Plan) string {
	verb := "retcon " + p.Verb
	run, point, along := strings.Cut(p.Target, "@")
	switch {
	case p.Verb == ledger.VerbUndo || p.Verb == ledger.VerbRedo:
		return verb
	case p.Verb == "restore" || !along:
		return verb + " " + shellWord(p.Target)
	case p.Verb == timeline.VerbRewind:
		return verb + " " + run + " " + point
	case p.Verb == timeline.VerbRerun:
		verb += " " + run
		if p.History != nil {
			for _, t := range p.History.Forced {
				verb += " -n " + shellWord(t.Task)
			}
		}
		return verb
	}
	task, attempt, numbered := cutAttempt(point)
	verb += " " + run + " -n " + shellWord(task)
	if numbered {
		verb += " --attempt " + attempt
	}
	return verb
}

// cutAttempt takes the number of an attempt off a task.
func cutAttempt(point string) (task, attempt string, ok bool) {
	at := strings.LastIndexByte(point, '#')
	if at < 0 || strings.Trim(point[at+1:], "0123456789") != "" || at == len(point)-1 {
		return point, "", false
	}
	return point[:at], point[at+1:], true
}
