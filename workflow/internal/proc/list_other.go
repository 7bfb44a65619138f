//go:build unix && !linux

package proc

import (
	"bytes"
	"os/exec"
	"strconv"
)

// entry is a process as the system lists it.
type entry struct {
	pid, group, session int
	alive               bool // not one that only waits to be collected
}

// processes are all processes, as ps shows them. It does not tell sessions by
// a number that can be compared, so they count as groups.
func processes() []entry {
	out, err := exec.Command("/bin/ps", "-axo", "pid=,pgid=,stat=").Output()
	if err != nil {
		return nil // nobody can be seen
	}
	var found []entry
	for line := range bytes.Lines(out) {
		fields := bytes.Fields(line)
		if len(fields) < 3 {
			continue
		}
		pid, err := strconv.Atoi(string(fields[0]))
		group, err2 := strconv.Atoi(string(fields[1]))
		if err == nil && err2 == nil {
			found = append(found, entry{pid, group, group, fields[2][0] != 'Z'})
		}
	}
	return found
}
