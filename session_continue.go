package retcon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/ledger"
)

// ContinueOptions say which conversation is to go on, and from where.
type ContinueOptions struct {
	Run    string // an id, the beginning of one, a name, or "last"
	Frame  int64  // what was said after it is left out
	Inside int64  // but for what was said up to this checkpoint behind it; 0 for nothing of it

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
	run     int64
	frame   int64
}

// continuedBody is what an event of the type EventContinued holds.
type continuedBody struct {
	Frame int64 `json:"frame"`
}

// NotSessionError says that a run is no conversation with an agent.
type NotSessionError struct{ Run string }

func (e *NotSessionError) Error() string { return e.Run + " is not a session of an agent" }

// cutPlace is what the ledger knows of a place in a conversation.
type cutPlace struct {
	run  ledger.Run
	at   *conversation // what the frame knows
	next *promptBody   // the first prompt after it, on the newest line that has one

	within bool   // the place lies behind the frame
	call   string // up to which the conversation is kept then; "" for none
	ended  bool   // the call had ended
	same   int    // calls of the run that do the same, where hooks tell of no ids

	copies []ledger.Transcript // ours, of the session's transcripts, oldest first
	load   func(ledger.Transcript) ([]byte, error)
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
		if place, err = placeOf(tx, run, o.Frame); err == nil && o.Inside != 0 {
			err = place.inside(tx, o.Inside)
		}
		if err == nil {
			place.copies, err = tx.Transcripts(run.ID)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	place.load = func(t ledger.Transcript) (text []byte, err error) {
		err = w.view(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
			text, err = copied(tx, t)
			return err
		})
		return text, err
	}
	p, source, note, err := place.pointer(ctx, o)
	if err != nil {
		return nil, err
	}
	if source != nil {
		defer source.Close()
	}
	co := agent.ContinueOptions{Folder: filepath.Join(w.Folder(), "log"), Headless: o.Headless}
	if source != nil {
		_, co.Gone = source.(textSource)
		co.Source = source
	}
	c, err := agent.Continue(p, co)
	if err != nil {
		return nil, fmt.Errorf("go on from r%d@%d: %w", place.run.ID, o.Frame, err)
	}
	out := &Continuation{Agent: place.run.Source, Session: c.Session, Files: []string{}, Before: c.Before, Argv: c.Argv, Note: c.Note, content: c.Files,
		run: place.run.ID, frame: o.Frame}
	if note != "" {
		out.Note = strings.TrimPrefix(out.Note+"; "+note, "; ")
	}
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

// inside looks for the call that a checkpoint was taken around: the newest that
// had ended there, else the first that was to begin.
func (c *cutPlace) inside(tx *ledger.Tx, checkpoint int64) error {
	c.within = true
	all, err := tx.Attempts(c.run.ID)
	for _, a := range all {
		switch key := keyOf(a); {
		case key == "":
		case a.After == checkpoint:
			c.call, c.ended = key, true
		case a.Before == checkpoint && c.call == "":
			c.call = key
		}
	}
	if does, _, counted := cutLast(c.call, "."); counted {
		for _, a := range all {
			if isOf(a, does, true) {
				c.same++
			}
		}
	}
	return err
}

// source is a transcript.
type source interface {
	io.ReaderAt
	io.Closer
}

// pointer finds the place in the transcript as it is now: at a call, or in front
// of the next prompt, which a client has written by now, else where the frame
// says. The note tells of a conversation that is not quite where the files are.
func (c cutPlace) pointer(ctx context.Context, o ContinueOptions) (p agent.Pointer, from source, note string, err error) {
	at := conversation{Session: c.run.ExtID}
	if c.at != nil {
		at = *c.at
	}
	if at.Transcript == "" && c.next != nil {
		at.Transcript = c.next.Transcript
	}
	p = at.pointer(c.run.Source)
	if argv, err := agent.ExportCommand(c.run.Source, at.Session); err == nil {
		return c.exported(ctx, o, p, argv)
	}
	if at.Transcript == "" {
		return p, nil, "", nil
	}
	f, err := c.transcript(p)
	if err != nil {
		return p, nil, "", err
	}
	entries, next, err := agent.ReadTranscript(c.run.Source, f, 0)
	var atCall bool
	if err == nil && c.within {
		p, atCall, note, err = c.around(p, entries, f)
	}
	switch {
	case err != nil || atCall:
	case c.next != nil:
		p, err = c.before(p, entries, f)
	case p.Entry == "":
		p, err = p.End(entries, next, f)
	}
	if err != nil {
		return p, nil, "", errors.Join(err, f.Close())
	}
	if _, ours := f.(textSource); ours {
		note = strings.TrimPrefix(note+"; "+copyNote, "; ")
	}
	return p, f, note, nil
}

// transcript is where the conversation is read from: the client's file while it
// holds what our copy of it does, else the newest copy that knows the place.
func (c cutPlace) transcript(p agent.Pointer) (source, error) {
	f, err := os.Open(p.Transcript)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	there := err == nil
	var ours []ledger.Transcript
	for _, t := range slices.Backward(c.copies) {
		if t.Path == p.Transcript {
			ours = append(ours, t)
		}
	}
	if there && (len(ours) == 0 || c.agrees(f, ours[0])) {
		return f, nil
	}
	for _, t := range ours {
		text, err := c.load(t)
		if err != nil {
			continue // another may do, and else the file
		}
		if from := (textSource{bytes.NewReader(text)}); c.knows(p, from) {
			if there {
				err = f.Close()
			}
			return from, err
		}
	}
	if !there {
		return nil, fmt.Errorf("%s is gone: %w", p.Transcript, agent.ErrSource)
	}
	return f, nil
}

// agrees tells that a file begins with what a copy of it holds.
func (c cutPlace) agrees(f io.ReaderAt, t ledger.Transcript) bool {
	sum := sha256.New()
	if err := sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(t.Digest); err != nil {
		return false
	}
	holds, err := (agent.Pointer{Offset: t.Size, Prefix: hex.EncodeToString(sum.Sum(nil))}).Holds(f)
	return err == nil && holds
}

// knows tells that the place is in a transcript.
func (c cutPlace) knows(p agent.Pointer, from io.ReaderAt) bool {
	entries, _, err := agent.ReadTranscript(c.run.Source, from, 0)
	if err != nil {
		return false
	}
	if c.call != "" {
		if _, found, _, err := c.around(p, entries, from); err == nil && found {
			return true
		}
	}
	if c.next != nil {
		to, err := c.before(p, entries, from)
		if err == nil && to != p {
			return true
		}
	}
	if p.Entry == "" {
		return c.next == nil
	}
	holds, err := p.Holds(from)
	return err == nil && holds
}

// around is the place behind a call, or in front of it where it had not ended.
// Where the conversation does not know the call it is that of the prompt.
func (c cutPlace) around(p agent.Pointer, entries []agent.Entry, f io.ReaderAt) (to agent.Pointer, found bool, note string, err error) {
	find := agent.CutBefore
	if c.ended {
		find = agent.CutAfter
	}
	call, err := c.callID(entries)
	if err != nil {
		return p, false, "", err
	}
	cut, err := find(c.run.Source, entries, call)
	var none *agent.NoCutError
	if errors.As(err, &none) {
		return p, false, noCallNote, nil
	}
	if err == nil {
		p, err = p.At(cut, f)
	}
	if !cut.Exact {
		note = batchNote
	}
	return p, true, note, err
}

// callID is the id of the call in the conversation. Where hooks tell of none, it
// is counted among those that do the same: if the conversation has all of them.
func (c cutPlace) callID(entries []agent.Entry) (string, error) {
	does, n, counted := cutLast(c.call, ".")
	if !counted {
		return c.call, nil
	}
	ids, err := agent.CallsDoing(c.run.Source, entries, does)
	at, nerr := strconv.Atoi(n)
	if err != nil || nerr != nil || len(ids) != c.same || at < 1 || at > len(ids) {
		return c.call, err
	}
	return ids[at-1], nil
}

// What is said of a conversation that cannot be cut where the files are.
const (
	noCallNote = "the conversation goes on in front of the prompt, and does not know of what its calls did up to there: it has no place at the call"
	copyNote   = "the client's own file is gone, or was written anew: what was said is taken from the copy in the store"
	batchNote  = "the call was made together with others, which the conversation knows of as well"
)

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
func (c cutPlace) exported(ctx context.Context, o ContinueOptions, p agent.Pointer, argv []string) (_ agent.Pointer, _ source, note string, err error) {
	p.Entry, p.Transcript = "", ""
	if c.next != nil {
		p.Before = c.next.Entry
	}
	if o.Export == nil {
		return p, nil, "", fmt.Errorf("%s: no export: %w", c.run.Source, agent.ErrSource)
	}
	text, err := o.Export(ctx, argv)
	if err != nil {
		return p, nil, "", err
	}
	if c.within && c.call == "" {
		note = noCallNote
	}
	if c.call != "" {
		message, alone, err := agent.ExportedCall(c.run.Source, text, c.call)
		var none *agent.NoCutError
		switch {
		case errors.As(err, &none):
			note = noCallNote
		case err != nil:
			return p, nil, "", err
		case c.ended:
			p.Entry, p.Before = message, ""
		default:
			p.Entry, p.Before = "", message
		}
		if err == nil && !alone {
			note = batchNote
		}
	}
	return p, textSource{bytes.NewReader(text)}, note, nil
}

// textSource is a transcript in memory.
type textSource struct{ *bytes.Reader }

func (textSource) Close() error { return nil }

// Prepare writes what the agent goes on from, and notes which session that will
// be, so that it is known when it comes.
func (w *Workspace) Prepare(ctx context.Context, c *Continuation) error {
	if err := c.Write(); err != nil || c.Session == "" {
		return err
	}
	return w.update(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		head, err := tx.RunHead(c.run)
		if err != nil {
			return err
		}
		return tx.AppendLate(head.ID, []ledger.Event{{Type: EventContinued, ExtID: c.Session, Actor: w.opt.Actor,
			Body: encodedBody(continuedBody{Frame: c.frame})}})
	})
}

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
