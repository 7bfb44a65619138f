package checkpoint

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/retcon-dev/retcon/ledger"
)

// Self describes this process, under the name it goes by, so that another can
// find out with [Alive] whether it still runs.
func Self(name string) ledger.Owner {
	o := self()
	o.Name = name
	return o
}

// self is this process, of which nothing changes while it runs. It is asked for
// at every turn.
var self = sync.OnceValue(func() ledger.Owner { return Process("", os.Getpid()) })

// Process is Self for another process of this machine.
func Process(name string, pid int) ledger.Owner {
	start, _ := started(pid) // 0: the number alone must do
	host, _ := os.Hostname() // "": one nameless host is like another
	return ledger.Owner{Name: name, PID: int64(pid), Start: start, Boot: boot(), Host: host}
}

// Alive tells whether a process still runs. Of one on another host nothing is
// known, and it counts as alive.
func Alive(o ledger.Owner) bool {
	host, _ := os.Hostname() // "": as in Self
	switch {
	case o.PID <= 0:
		return false
	case o.Host != host:
		return true
	case o.Boot != boot():
		return false
	}
	err := syscall.Kill(int(o.PID), 0)
	if errors.Is(err, syscall.ESRCH) {
		return false
	}
	start, ok := started(int(o.PID))
	return !ok || o.Start == 0 || start == o.Start
}

// Among tells whether an owner is one of the processes of this machine that have
// these numbers now.
func Among(o ledger.Owner, pids []int) bool {
	host, _ := os.Hostname() // "": as in Self
	return o.Host == host && slices.Contains(pids, int(o.PID)) && Alive(o)
}

// started returns when a process started, as the kernel counts; false when that
// can't be known.
func started(pid int) (int64, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The name, in parentheses, may hold anything: count from its end.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 {
		return 0, false
	}
	n, err := strconv.ParseInt(f[19], 10, 64)
	return n, err == nil
}

// boot tells one boot of this machine from the next; "" where that can't be
// known.
var boot = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})
