package retcon

import (
	"context"

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

// pointer is where the conversation stands, as far as the client has written
// it down: a cut that is wanted later is looked for then.
func (s *session) pointer(ctx context.Context) (*conversation, error) {
	e := s.event
	at := conversation{Session: e.Session, Transcript: e.Transcript, Entry: e.Entry}
	f, err := s.transcript(ctx)
	if err == nil && f != nil {
		at = f.pointer(e.Session)
	}
	return &at, err
}
