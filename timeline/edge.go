package timeline

import "time"

// Edge is one step in the graph of sessions: to another one, or to the next part
// of the same. The caller fills them in; what kinds there are is for it to say.
type Edge struct {
	Kind  string    `json:"kind"`
	From  string    `json:"from,omitempty"` // the session it comes from: "r1@2", or "r1" where nobody saw from which frame
	To    string    `json:"to,omitempty"`   // the session it leads to: "r5"
	Frame int64     `json:"frame"`          // of this session, after which it was made
	At    time.Time `json:"at"`
}
