package ledger

import "fmt"

// Owner is a process, told apart from a later one with the same number, and
// the name it goes by. The ledger compares owners and prints them; whether one
// is alive it is told.
type Owner struct {
	Name  string // for people: "retcon restore", "claude"
	PID   int64
	Start int64  // when the process started, as its host counts
	Boot  string // which boot of the host
	Host  string
}

func (o Owner) String() string {
	switch {
	case o == Owner{}:
		return "nobody known"
	case o.Name == "":
		return fmt.Sprintf("pid %d", o.PID)
	}
	return fmt.Sprintf("%s (pid %d)", o.Name, o.PID)
}

// ownerColumns stand in the order of values and dest.
const ownerColumns = `owner, pid, pid_start, boot, host`

func (o Owner) values() []any { return []any{o.Name, o.PID, o.Start, o.Boot, o.Host} }
func (o *Owner) dest() []any  { return []any{&o.Name, &o.PID, &o.Start, &o.Boot, &o.Host} }
