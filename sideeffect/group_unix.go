//go:build unix

package sideeffect

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command lead a process group, and kills all of it when the
// time is over.
func ownGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}

// endGroup kills what a command has left behind. While any of it lives, the
// number of the group is not given to another.
func endGroup(c *exec.Cmd) {
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // nobody is left, as a rule
}
