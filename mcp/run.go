package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/retcon-dev/retcon"
)

// runTools are those that let runs go on.
func (o *offer) runTools() {
	add(o, tool{name: "send_signal", title: "Answer a wait", needs: Signal, idempotent: true,
		about: "Send a run what it waits for. A run that goes on takes it at once; another takes it on resume_run."}, sendSignal)
	add(o, tool{name: "resume_run", title: "Resume a run", needs: Travel, destructive: true, open: true,
		about: "Go on with a run that was halted, interrupted, moved or left waiting, and return when it stops. Its commands run in the worktree." + inTwo}, resumeRun)
}

type signalInput struct {
	Run       string          `json:"run" jsonschema:"the run: r7, the beginning of its id, its name, or last"`
	Name      string          `json:"name" jsonschema:"what it waits for, as get_run names it"`
	Value     json.RawMessage `json:"value,omitempty" jsonschema:"the answer, any JSON; null when left out"`
	RequestID string          `json:"request_id,omitempty" jsonschema:"send it once, however often it is asked for under the same key"`
}

func sendSignal(ctx context.Context, c *call, in signalInput) (*retcon.Sent, error) {
	if in.Value == nil {
		in.Value = json.RawMessage("null")
	}
	return c.Signal(ctx, retcon.SignalOptions{Run: in.Run, Name: in.Name, Value: in.Value, RequestID: in.RequestID})
}

type resumeInput struct {
	Run     string `json:"run" jsonschema:"the run: r7, the beginning of its id, its name, or last"`
	File    string `json:"file,omitempty" jsonschema:"go on with this edited workflow instead of the one the run is pinned to"`
	Jobs    int    `json:"jobs,omitempty" jsonschema:"at most this many tasks at the same time"`
	DryRun  bool   `json:"dry_run,omitempty" jsonschema:"say what would run, and run nothing, whatever else is given"`
	PlanID  string `json:"plan_id,omitempty" jsonschema:"the plan_id of the preview that was seen; if things have changed since, STALE_PLAN"`
	Confirm bool   `json:"confirm,omitempty" jsonschema:"go on as the preview of plan_id says"`
}

// resumed is what resuming a run would do, or how far it came.
type resumed struct {
	Done   bool                 `json:"done" jsonschema:"the run went on"`
	PlanID string               `json:"plan_id" jsonschema:"names this preview"`
	Next   string               `json:"next" jsonschema:"how to go on"`
	Tasks  []retcon.PreviewTask `json:"tasks" jsonschema:"what would become of each task"`
	Result *retcon.RunResult    `json:"result" jsonschema:"how far the run has come; null when it did not go on"`
}

// StalePreviewError refuses to go on with a run that would not do any more what
// was shown. Ask for another preview.
type StalePreviewError struct{ Run string }

func (e *StalePreviewError) Error() string {
	return fmt.Sprintf("%s would not do what the preview says any more", e.Run)
}

func resumeRun(ctx context.Context, c *call, in resumeInput) (out resumed, err error) {
	given, err := consent{DryRun: in.DryRun, PlanID: in.PlanID, Confirm: in.Confirm}.given(c.tool)
	if err != nil {
		return out, err
	}
	done, err := c.turn()
	if err != nil {
		return out, err
	}
	defer done()
	o := retcon.ResumeOptions{Run: in.Run, File: in.File, RunOptions: retcon.RunOptions{Jobs: in.Jobs}}
	seen, err := c.preview(ctx, o)
	if err != nil || !given {
		return seen, err
	}
	if seen.PlanID != in.PlanID {
		return out, &StalePreviewError{Run: in.Run}
	}
	seen.Done = true
	seen.Result, err = c.ResumeWorkflow(ctx, o)
	seen.Next = "get_run tells more"
	return seen, err
}

// preview says what going on with a run would do. What it is named by covers the
// frame the run is at.
func (c *call) preview(ctx context.Context, o retcon.ResumeOptions) (out resumed, err error) {
	p, err := c.Preview(ctx, o)
	if err != nil {
		return out, err
	}
	at, err := c.Show(ctx, retcon.ShowOptions{At: p.Run})
	if err != nil {
		return out, err
	}
	b, err := json.Marshal([]any{p, at.Frame, at.Root})
	if err != nil {
		return out, err
	}
	sum := sha256.Sum256(b)
	out = resumed{PlanID: hex.EncodeToString(sum[:8]), Tasks: p.Tasks}
	out.Next = fmt.Sprintf("nothing was run: call resume_run again with the same arguments, plan_id %q and confirm: true", out.PlanID)
	return out, nil
}
