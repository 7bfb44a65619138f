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

// process returns the number of an owner's row, which it makes when it is not
// there.
func (tx *Tx) process(o Owner) (id int64, err error) {
	if id, ok := tx.db.processes.Load(o); ok {
		return id.(int64), nil
	}
	err = tx.insert(`INSERT INTO process(`+ownerColumns+`) VALUES(?, ?, ?, ?, ?)
		ON CONFLICT(`+ownerColumns+`) DO UPDATE SET pid = excluded.pid RETURNING id`, o.values(), &id)
	if err != nil {
		return 0, fmt.Errorf("process %s: %w", o, err)
	}
	tx.db.processes.Store(o, id)
	tx.undo = append(tx.undo, func() { tx.db.processes.Delete(o) })
	return id, nil
}
