package agent

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// ContinueOptions say how a conversation is to go on.
type ContinueOptions struct {
	// Source is the transcript that the pointer points into: the client's own
	// file, or a copy of it. For opencode it is what ExportCommand printed.
	Source io.ReaderAt
	// Folder is where a file may be made that the client is to import.
	Folder string
	// Session is the id of the new conversation; a random one when empty.
	Session string
	// Headless: without a person, the prompt on standard input.
	Headless bool
	// Gone: the client does not have what Source holds any more.
	Gone bool
}

// Continuation is how a client goes on from a pointer. The conversation from
// before stays as it is, in its own file.
type Continuation struct {
	Session string     // that goes on; empty: a new one, of the client's choice
	Files   []File     // to be written first
	Before  [][]string // commands to run then, in the project
	Argv    []string
	Note    string // what a person should know; often empty
}

// ErrSource: the transcript is not the one that the pointer was made from, or
// ends before it.
var ErrSource = errors.New("transcript does not match the pointer")

// Continue makes the command that goes on from a pointer the way the client
// supports. It writes nothing. It fails with ErrSource, or with ErrUnsupported
// where the client cannot go on from an earlier point.
func Continue(p Pointer, o ContinueOptions) (Continuation, error) {
	c, err := named(p.Agent)
	if err != nil {
		return Continuation{}, err
	}
	if c.resume == nil {
		return Continuation{}, unsupported(c, "going on from an earlier point")
	}
	if p.Entry == "" && p.Before == "" {
		k := Continuation{Argv: []string{c.Binary}, Note: "nothing of the conversation is kept: a new one begins"}
		if o.Headless {
			in, err := Command(p.Agent, RunOptions{})
			k.Argv = in.Argv
			return k, err
		}
		return k, nil
	}
	if o.Session == "" {
		o.Session = newUUID()
	}
	return c.resume(p, o)
}

// goOn is the command that goes on without a person.
func (h headless) goOn(binary string, o RunOptions) ([]string, error) {
	in, err := h.command(o)
	return append([]string{binary}, in.Argv...), err
}

// kept reads what belongs to the pointer, and checks that it is that.
func (o ContinueOptions) kept(p Pointer) ([]byte, error) {
	if o.Source == nil {
		return nil, fmt.Errorf("no transcript: %w", ErrSource)
	}
	text, err := io.ReadAll(io.NewSectionReader(o.Source, 0, p.Offset))
	if err != nil {
		return nil, err
	}
	if sum, err := prefix(bytes.NewReader(text), p.Offset); err != nil || sum != p.Prefix || int64(len(text)) != p.Offset {
		return nil, errors.Join(err, fmt.Errorf("%s: %w", p.Transcript, ErrSource))
	}
	return text, nil
}

// renamed replaces the value of a field that names the session.
func renamed(line []byte, field, from, to string) []byte {
	return regexp.MustCompile(`("`+field+`":\s*")`+regexp.QuoteMeta(from)+`"`).ReplaceAll(line, []byte("${1}"+to+`"`))
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
