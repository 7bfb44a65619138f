package proc

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// session is the session that a command leads, and its process group: both have
// the number of its process. The number is not given to another process while
// a member lives.
type session int

// signal sends signals to every member.
func (s session) signal(signals ...syscall.Signal) {
	groups := []int{int(s)}
	for _, p := range s.members() {
		if !slices.Contains(groups, p.group) {
			groups = append(groups, p.group) // a shell with job control makes some
		}
	}
	for _, group := range groups {
		for _, sig := range signals {
			_ = syscall.Kill(-group, sig) // gone is as good as told
		}
	}
}

// empty waits until nobody is left, or until it is time.
func (s session) empty(until <-chan time.Time) bool {
	for wait := time.Millisecond; len(s.members()) > 0; wait = min(2*wait, 50*time.Millisecond) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-until:
			timer.Stop()
			return false
		}
	}
	return true
}

// members are the processes of the session that still run.
func (s session) members() (found []entry) {
	for _, p := range processes() {
		if p.alive && (p.session == int(s) || p.group == int(s)) {
			found = append(found, p)
		}
	}
	return found
}

// quiet reports whether its first group is empty, which costs next to nothing
// to know.
func (s session) quiet() bool { return errors.Is(syscall.Kill(-int(s), 0), syscall.ESRCH) }

var names = map[syscall.Signal]string{
	syscall.SIGABRT: "SIGABRT", syscall.SIGALRM: "SIGALRM", syscall.SIGBUS: "SIGBUS",
	syscall.SIGFPE: "SIGFPE", syscall.SIGHUP: "SIGHUP", syscall.SIGILL: "SIGILL",
	syscall.SIGINT: "SIGINT", syscall.SIGKILL: "SIGKILL", syscall.SIGPIPE: "SIGPIPE",
	syscall.SIGQUIT: "SIGQUIT", syscall.SIGSEGV: "SIGSEGV", syscall.SIGSYS: "SIGSYS",
	syscall.SIGTERM: "SIGTERM", syscall.SIGTRAP: "SIGTRAP", syscall.SIGUSR1: "SIGUSR1",
	syscall.SIGUSR2: "SIGUSR2", syscall.SIGXCPU: "SIGXCPU", syscall.SIGXFSZ: "SIGXFSZ",
}

func signalName(sig syscall.Signal) string {
	if name, ok := names[sig]; ok {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig))
}
