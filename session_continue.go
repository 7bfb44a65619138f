package retcon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/ledger"
)

// ContinueOptions say which conversation is to go on, and from where.
type ContinueOptions struct {
	Run   string // an id, the beginning of one, a name, or "last"
	Frame int64  // what was said after it is left out

	// Export prints a conversation that a client keeps in a database of its
	// own: argv is the command for it. Nil where that can't be done.
	Export func(ctx context.Context, argv []string) ([]byte, error)

	Headless bool // without a person: the prompt on standard input
}

// Continuation is how an agent goes on from a frame. The conversation from
// before stays as it is.
type Continuation struct {
	Agent   string     `json:"agent"`
	Session string     `json:"session"` // that goes on; "": a new one, of the client's choice
	Files   []string   `json:"files"`   // that have to be there first: see Write
	Before  [][]string `json:"before"`  // commands that have to be run first
	Argv    []string   `json:"argv"`
	Note    string     `json:"note"`

	content []agent.File
}

// NotSessionError says that a run is no conversation with an agent.
type NotSessionError struct{ Run string }

func (e *NotSessionError) Error() string { return e.Run + " is not a session of an agent" }

// cutPlace is what the ledger knows of a place in a conversation.
type cutPlace struct {
	run  ledger.Run
	at   *conversation // what the frame knows
	next *promptBody   // the first prompt after it, on the newest line that has one
}

// Continuation makes the command with which the agent of a session goes on from
// a frame. Nothing is written before [Continuation.Write].
//
// It fails with *RunError, *NotSessionError, agent.ErrUnsupported or
// agent.ErrSource.
func (w *Workspace) Continuation(ctx context.Context, o ContinueOptions) (*Continuation, error) {
	var place cutPlace
	err := w.view(ctx, func(tx *ledger.Tx, row ledger.Worktree) error {
		run, err := findRun(tx, row, o.Run)
		if err != nil {
			return err
		}
		if run.Kind != KindSession {
			return &NotSessionError{Run: runRef(run.ID)}
		}
		place, err = placeOf(tx, run, o.Frame)
		return err
	})
	if err != nil {
		return nil, err
	}
	p, source, err := place.pointer(ctx, o)
	if err != nil {
		return nil, err
	}
	if source != nil {
		defer source.Close()
	}
	co := agent.ContinueOptions{Folder: filepath.Join(w.Folder(), "log"), Headless: o.Headless}
	if source != nil {
		co.Source = source
	}
	c, err := agent.Continue(p, co)
	if err != nil {
		return nil, fmt.Errorf("go on from r%d@%d: %w", place.run.ID, o.Frame, err)
	}
	out := &Continuation{Agent: place.run.Source, Session: c.Session, Files: []string{}, Before: c.Before, Argv: c.Argv, Note: c.Note, content: c.Files}
	for _, f := range c.Files {
		out.Files = append(out.Files, f.Path)
	}
	return out, nil
}

// placeOf looks for a frame's place in the conversation. What came after it may
// have been cut off by now: the newest line that goes on from the frame tells.
func placeOf(tx *ledger.Tx, run ledger.Run, frame int64) (cutPlace, error) {
	out := cutPlace{run: run}
	branches, err := tx.Branches(run.ID)
	if err != nil {
		return out, err
	}
	for i := len(branches) - 1; i >= 0; i-- {
		b := branches[i]
		if b.State == ledger.BranchPurged || b.HeadSeq < frame {
			continue
		}
		events, err := tx.Events(b.ID, ledger.EventQuery{From: frame, To: frame + 1, Types: []string{EventConversation, EventPrompt}, Limit: 1000})
		if err != nil {
			return out, err
		}
		for _, e := range events {
			switch {
			case e.Type == EventConversation && e.Seq == frame && out.at == nil:
				out.at = new(conversation)
				err = decodeEvent(tx, e, out.at)
			case e.Type == EventPrompt && e.Seq == frame+1 && out.next == nil:
				out.next = new(promptBody)
				err = decodeEvent(tx, e, out.next)
			}
			if err != nil {
				return out, err
			}
		}
		if out.next != nil {
			return out, nil
		}
	}
	return out, nil
}

// source is a transcript.
type source interface {
	io.ReaderAt
	io.Closer
}

// pointer finds the place in the transcript as it is now: in front of the next
// prompt, which a client has written by now, else where the frame says.
func (c cutPlace) pointer(ctx context.Context, o ContinueOptions) (agent.Pointer, source, error) {
	at := conversation{Session: c.run.ExtID}
	if c.at != nil {
		at = *c.at
	}
	if at.Transcript == "" && c.next != nil {
		at.Transcript = c.next.Transcript
	}
	p := at.pointer(c.run.Source)
	if argv, err := agent.ExportCommand(c.run.Source, at.Session); err == nil {
		return c.exported(ctx, o, p, argv)
	}
	if at.Transcript == "" {
		return p, nil, nil
	}
	f, err := os.Open(at.Transcript)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil, fmt.Errorf("%s is gone: %w", at.Transcript, agent.ErrSource)
	}
	if err != nil {
		return p, nil, err
	}
	entries, next, err := agent.ReadTranscript(c.run.Source, f, 0)
	switch {
	case err != nil:
	case c.next != nil:
		p, err = c.before(p, entries, f)
	case p.Entry == "":
		p, err = p.End(entries, next, f)
	}
	if err != nil {
		return p, nil, errors.Join(err, f.Close())
	}
	return p, f, nil
}

// before is the place in front of the next prompt; where the transcript does not
// know that, what the frame says.
func (c cutPlace) before(p agent.Pointer, entries []agent.Entry, f io.ReaderAt) (agent.Pointer, error) {
	for _, id := range []string{c.next.Turn, c.next.Entry, said(entries, p.Offset, c.next.Text)} {
		if id == "" {
			continue
		}
		cut, err := agent.CutBeforePrompt(c.run.Source, entries, id)
		var none *agent.NoCutError
		if errors.As(err, &none) {
			continue
		}
		if err != nil {
			return p, err
		}
		return p.At(cut, f)
	}
	return p, nil
}

// said is the entry of a prompt that is known by its text; "" when there is
// none behind an offset.
func said(entries []agent.Entry, from int64, text string) string {
	for _, e := range entries {
		if e.Kind == agent.Said && e.Offset >= from && text != "" && firstLine(e.Text) == text {
			return e.ID
		}
	}
	return ""
}

// exported has the client print its conversation.
func (c cutPlace) exported(ctx context.Context, o ContinueOptions, p agent.Pointer, argv []string) (agent.Pointer, source, error) {
	p.Entry, p.Transcript = "", ""
	if c.next != nil {
		p.Before = c.next.Entry
	}
	if o.Export == nil {
		return p, nil, fmt.Errorf("%s: no export: %w", c.run.Source, agent.ErrSource)
	}
	text, err := o.Export(ctx, argv)
	if err != nil {
		return p, nil, err
	}
	return p, textSource{bytes.NewReader(text)}, nil
}

// textSource is a transcript in memory.
type textSource struct{ *bytes.Reader }

func (textSource) Close() error { return nil }

// Write puts the files in place that the agent goes on from. One that is there
// is left alone: the conversation in it may have gone on.
func (c *Continuation) Write() error {
	for _, f := range c.content {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return err
		}
		out, err := os.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = out.Write(f.Content)
		if err := errors.Join(err, out.Close()); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return nil
}
