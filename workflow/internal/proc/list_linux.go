package proc

import (
	"bytes"
	"os"
	"strconv"
)

// entry is a process as the system lists it.
type entry struct {
	pid, group, session int
	alive               bool // not one that only waits to be collected
}

// processes are all processes, as /proc shows them.
func processes() []entry {
	folder, err := os.Open("/proc")
	if err != nil {
		return nil // not mounted: nobody can be seen
	}
	defer func() { _ = folder.Close() }()
	names, _ := folder.Readdirnames(-1)
	var found []entry
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended since
		}
		if e, ok := parseStat(pid, stat); ok {
			found = append(found, e)
		}
	}
	return found
}

// parseStat reads a line like "7 (a name) S 1 7 7 …": the name may hold
// anything, and the state, parent, group and session follow it.
func parseStat(pid int, stat []byte) (entry, bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 4 {
		return entry{}, false
	}
	group, err := strconv.Atoi(string(fields[2]))
	session, err2 := strconv.Atoi(string(fields[3]))
	state := fields[0][0]
	return entry{pid, group, session, state != 'Z' && state != 'X'}, err == nil && err2 == nil
}
