package retcon

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/retcon-dev/retcon/agent"
)

// conversation is a place in a conversation, as an event holds it.
type conversation struct {
	Session    string `json:"session"`
	Transcript string `json:"transcript,omitempty"`
	Entry      string `json:"entry,omitempty"`
	Offset     int64  `json:"offset,omitempty"`
	Prefix     string `json:"prefix,omitempty"`
}

func (c conversation) pointer(name string) agent.Pointer {
	return agent.Pointer{Agent: name, Session: c.Session, Transcript: c.Transcript, Entry: c.Entry, Offset: c.Offset, Prefix: c.Prefix}
}

// transcriptMax is how large a transcript may be that is read at the end of a
// turn.
const transcriptMax = 256 << 20

// pointer is where the conversation stands, as far as the client has written
// it down: a cut that is wanted later is looked for then. It is nil where
// nothing is known.
func (s *session) pointer() (*conversation, error) {
	e := s.event
	at := conversation{Session: e.Session, Transcript: e.Transcript, Entry: e.Entry}
	if e.Transcript == "" {
		return &at, nil
	}
	f, err := os.Open(e.Transcript)
	if errors.Is(err, fs.ErrNotExist) {
		return &at, nil // not written yet
	}
	if err != nil {
		return &at, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > transcriptMax {
		return &at, err
	}
	p, _, err := conversationEnd(e.Agent, at, f)
	if err == nil {
		at.Entry, at.Offset, at.Prefix = p.Entry, p.Offset, p.Prefix
	}
	return &at, err
}

// conversationEnd is the pointer to the end of a transcript, with its entries.
func conversationEnd(name string, at conversation, r io.ReaderAt) (agent.Pointer, []agent.Entry, error) {
	entries, next, err := agent.ReadTranscript(name, r, 0)
	if errors.Is(err, agent.ErrUnsupported) {
		return at.pointer(name), nil, nil
	}
	if err != nil {
		return agent.Pointer{}, nil, err
	}
	p, err := at.pointer(name).End(entries, next, r)
	return p, entries, err
}
