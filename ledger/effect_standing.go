package ledger

import "fmt"

// Standing returns the effects of a run, oldest first, that are in the world as
// far as anybody knows: nobody has undone or crossed them, or said that they did
// not happen. Those that are in nobody's way are not among them.
func (tx *Tx) Standing(run int64) ([]Effect, error) {
	found, err := all(tx, readEffect, `SELECT `+effectColumns+` FROM effect WHERE run_id=? AND status<>'failed'
		AND comp NOT IN ('compensated', 'crossed') AND class IN ('write', 'maybe') ORDER BY id`, run)
	if err != nil {
		return nil, fmt.Errorf("what r%d has done outside: %w", run, err)
	}
	standing := found[:0]
	for _, e := range found {
		if e.Stands() {
			standing = append(standing, e)
		}
	}
	return standing, nil
}
