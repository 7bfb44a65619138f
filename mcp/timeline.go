package mcp

import (
	"context"
	"fmt"
	"time"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/timeline"
)

type timelineInput struct {
	Run    string `json:"run" jsonschema:"the run: r7, the beginning of its id, its name, or last"`
	Task   string `json:"task,omitempty" jsonschema:"only the frames that changed this task"`
	All    bool   `json:"all,omitempty" jsonschema:"with the branches that moves have cut off"`
	Before int64  `json:"before,omitempty" jsonschema:"only the frames before this one"`
	Limit  int    `json:"limit,omitempty" jsonschema:"at most this many frames; 50 when left out"`
}

// frames are those of a run.
type frames struct {
	Run      string   `json:"run"`
	Name     string   `json:"name"`
	Status   string   `json:"status"`
	Live     bool     `json:"live" jsonschema:"a process is running it"`
	Command  string   `json:"command"`
	Base     *base    `json:"base" jsonschema:"the frame it was forked from"`
	Frames   []frame  `json:"frames" jsonschema:"newest first"`
	More     bool     `json:"more" jsonschema:"there are older ones: ask with before"`
	Archived []branch `json:"archived" jsonschema:"what moves have cut off; undo_operation brings it back"`
}

// base is the frame that a run begins at.
type base struct {
	Run   string `json:"run"`
	Frame int64  `json:"frame"`
}

// branch is a line of frames that was cut off.
type branch struct {
	Branch int64 `json:"branch"`
	CutBy  int64 `json:"cut_by" jsonschema:"the operation"`
	Base   *base `json:"base"`
	Newest int64 `json:"newest_frame"`
}

// frame is a frame of a run.
type frame struct {
	Frame      int64        `json:"frame"`
	At         time.Time    `json:"at"`
	Kind       string       `json:"kind" jsonschema:"start, outcome or resumed"`
	Label      string       `json:"label"`
	Duration   int64        `json:"duration_ms"`
	Changes    []taskChange `json:"changes"`
	Files      *totals      `json:"files" jsonschema:"since the frame before; null when not known"`
	Checkpoint string       `json:"checkpoint"`
	Restorable bool         `json:"restorable"`
	Forks      []string     `json:"forks" jsonschema:"the runs that begin here"`
}

// taskChange is what a frame has changed of a task.
type taskChange struct {
	Task    string `json:"task"`
	Kind    string `json:"kind"`
	Old     string `json:"old" jsonschema:"state; empty for a new one"`
	New     string `json:"new" jsonschema:"empty for one that is gone"`
	Attempt int    `json:"attempt"`
	Carried bool   `json:"carried"`
}

// framesMax is how many frames are told when nothing else is said.
const framesMax = 50

func getTimeline(ctx context.Context, c *call, in timelineInput) (out frames, err error) {
	o := retcon.TimelineOptions{Run: in.Run, Task: in.Task, All: in.All, Before: in.Before, Limit: in.Limit, Tree: true}
	if o.Limit <= 0 {
		o.Limit = framesMax
	}
	t, err := c.Timeline(ctx, o)
	if err != nil {
		return out, err
	}
	out = frames{Run: runRef(t.Run.ID), Name: t.Run.Name, Status: t.Run.Status, Live: t.Live, Command: t.Run.Command, Base: newBase(t.Base),
		Frames: []frame{}, More: t.More, Archived: []branch{}}
	if out.Status == retcon.StatusRunning && !t.Live {
		out.Status = retcon.StatusInterrupted
	}
	for _, f := range t.Frames {
		out.Frames = append(out.Frames, newFrame(f))
	}
	for _, a := range t.Archived {
		out.Archived = append(out.Archived, branch{Branch: a.Branch.ID, CutBy: a.Branch.ArchivedBy, Base: newBase(a.Base), Newest: a.Branch.HeadSeq})
	}
	return out, nil
}

func newBase(b *timeline.Base) *base {
	if b == nil {
		return nil
	}
	return &base{Run: runRef(b.Run), Frame: b.Frame}
}

func newFrame(f timeline.Frame) frame {
	told := frame{Frame: f.Seq, At: f.At.UTC(), Kind: f.Kind, Label: f.Label, Duration: f.Took.Milliseconds(), Restorable: f.Restorable,
		Changes: []taskChange{}, Forks: []string{}}
	if f.Checkpoint != 0 {
		told.Checkpoint = fmt.Sprintf("c%d", f.Checkpoint)
	}
	if f.Files != nil {
		told.Files = &totals{Added: f.Files.Added, Changed: f.Files.Changed, Removed: f.Files.Removed}
	}
	for _, c := range f.Changes {
		told.Changes = append(told.Changes, taskChange{Task: c.ID, Kind: c.Kind, Old: c.Old, New: c.New, Attempt: c.Attempt, Carried: c.Carried})
	}
	for _, fork := range f.Forks {
		told.Forks = append(told.Forks, runRef(fork.Run.ID))
	}
	return told
}

func runRef(id int64) string { return fmt.Sprintf("r%d", id) }
