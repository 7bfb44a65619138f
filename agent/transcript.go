package agent

import (
	"bufio"
	"errors"
	"io"
	"math"
	"unicode/utf8"
)

// EntryKind says what a line of a transcript is.
type EntryKind string

// The kinds of entry.
const (
	Said    EntryKind = "prompt"  // by a person
	Message EntryKind = "message" // by the model
	Called  EntryKind = "call"    // of a tool, or several: Calls
	Came    EntryKind = "result"  // of the Calls
	Aside   EntryKind = "note"    // part of the conversation, said by the client
	Cut     EntryKind = "cut"     // the conversation goes on without Target and what follows it
	Meta    EntryKind = "meta"    // not part of the conversation
)

// Entry is one line of a transcript.
type Entry struct {
	ID     string
	Parent string // where the transcript is a tree
	Answer string // what the model said in one go has one Answer
	Turn   string // one per prompt
	Kind   EntryKind
	Calls  []string
	Does   []string // of each of the Calls its [CallKey], where hooks tell of no ids
	Text   string   // its beginning
	Offset int64
	Length int64 // with the newline
	Side   bool  // said by or to a subagent
	Target string
	Base   *Base
}

// End is where the next line begins.
func (e Entry) End() int64 { return e.Offset + e.Length }

// Base is what a transcript goes on from: another file up to an offset.
type Base struct {
	Session string
	Offset  int64
}

// record is how a client keeps its conversations in files.
type record struct {
	entry  func(o object) Entry
	live   func([]Entry) []Entry
	follow func(leaf string, more []Entry) Followed
	exit   func(o object) (call string, exit *int) // nil where hooks tell it
}

// ReadTranscript reads the entries that were written since from, and tells
// where to go on the next time. A last line without its end is left for then;
// one that is not JSON is passed over.
//
// It fails with ErrUnsupported where the client keeps no such file.
func ReadTranscript(agent string, r io.ReaderAt, from int64) ([]Entry, int64, error) {
	rec, err := recordOf(agent)
	if err != nil {
		return nil, from, err
	}
	return rec.read(r, from)
}

func (rec record) read(r io.ReaderAt, from int64) ([]Entry, int64, error) {
	in := bufio.NewReaderSize(io.NewSectionReader(r, from, math.MaxInt64-from), 1<<16)
	var all []Entry
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, from, nil
		}
		if err != nil {
			return all, from, err
		}
		if o, err := parseObject(line); err == nil {
			e := rec.entry(o)
			e.Offset, e.Length, e.Text = from, int64(len(line)), beginning(e.Text)
			all = append(all, e)
		}
		from += int64(len(line))
	}
}

// Live is the conversation as the model would get it: without what was cut,
// replaced, or left on another branch, in the order of the file.
func Live(agent string, entries []Entry) ([]Entry, error) {
	rec, err := recordOf(agent)
	if err != nil {
		return nil, err
	}
	return rec.live(entries), nil
}

func recordOf(agent string) (*record, error) {
	c, err := named(agent)
	if err != nil {
		return nil, err
	}
	if c.record == nil {
		return nil, unsupported(c, "transcript files")
	}
	return c.record, nil
}

// beginning is enough of a text to know it again.
func beginning(text string) string {
	const enough = 400
	if len(text) <= enough {
		return text
	}
	end := enough
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
