// Package bench lets two contestants do the same thing side by side, and says
// by how much one is ahead.
//
// A shared machine is faster one second and slower the next. What is compared
// is therefore never two times but the ratio of two times taken one after the
// other, and what is reported is the median of such ratios. The package does
// not know who the contestants are.
package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// Usage is what something cost.
type Usage struct {
	Wall time.Duration
	CPU  time.Duration
	Peak int64 // bytes of memory at the worst moment; 0 when it is not known
}

// Then is the cost of two things, one after the other.
func (u Usage) Then(next Usage) Usage {
	return Usage{Wall: u.Wall + next.Wall, CPU: u.CPU + next.CPU, Peak: max(u.Peak, next.Peak)}
}

// Command is a process to be measured.
type Command struct {
	Dir  string
	Env  []string // all of it: nothing is inherited
	Args []string
	In   []byte // what it can read; nothing when nil
}

// Run runs the command to its end. It returns what it wrote to stdout. The
// error holds what it wrote to stderr.
func (c Command) Run(ctx context.Context) ([]byte, Usage, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, &stdout, &stderr
	if c.In != nil {
		cmd.Stdin = bytes.NewReader(c.In)
	}
	began := time.Now()
	err := cmd.Run()
	u := Usage{Wall: time.Since(began)}
	if err != nil {
		return nil, u, fmt.Errorf("%s: %v: %s", strings.Join(c.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	u.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.Peak = resident(r)
	}
	return stdout.Bytes(), u, nil
}

// Shrink forgets how much memory this process once needed. The system counts as
// a child's the peak of whoever started it, so a child smaller than that cannot
// be told; where forgetting is not possible, OwnPeak says what cannot.
func Shrink() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // elsewhere than on Linux there is none
}

// OwnPeak is the peak memory of this process since Shrink.
func OwnPeak() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
		var kib int64
		if _, err := fmt.Sscan(after, &kib); err == nil {
			return kib << 10
		}
	}
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return resident(&r)
}

func resident(r *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return int64(r.Maxrss)
	}
	return int64(r.Maxrss) << 10
}
