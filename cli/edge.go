package cli

import (
	"time"

	"github.com/retcon-dev/retcon"
)

// edge is one step in the graph of sessions.
type edge struct {
	Kind  string    `json:"kind"`
	From  string    `json:"from"`
	To    string    `json:"to"`
	Frame int64     `json:"frame"`
	At    time.Time `json:"at"`
}

func newEdges(all []retcon.Edge) []edge {
	told := []edge{}
	for _, e := range all {
		told = append(told, edge{Kind: e.Kind, From: e.From, To: e.To, Frame: e.Frame, At: e.At.UTC()})
	}
	return told
}

// text is an edge in a few words.
func (e edge) text() string {
	words := map[string]struct{ from, to, within string }{
		retcon.EdgeResume:   {within: "resumed"},
		retcon.EdgeCompact:  {within: "summed up"},
		retcon.EdgeRewind:   {within: "rewound inside the client"},
		retcon.EdgeClear:    {from: "instead of ", to: "cleared for "},
		retcon.EdgeFork:     {from: "fork of ", to: "forked as "},
		retcon.EdgeContinue: {from: "goes on from ", to: "goes on as "},
		retcon.EdgeSubagent: {from: "subagent of "},
	}[e.Kind]
	switch {
	case e.From != "":
		return words.from + e.From
	case e.To != "":
		return words.to + e.To
	}
	return words.within
}
