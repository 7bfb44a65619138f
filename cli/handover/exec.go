//go:build unix

package handover

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exec lets the whole program, retcon, which lies beside this one, take the
// place of this process, with what was read as its input. It returns only with
// an error.
func Exec(payload []byte) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	whole := filepath.Join(filepath.Dir(self), "retcon")
	in, err := memory(payload)
	if err != nil {
		return err
	}
	if err := unix.Dup2(int(in.Fd()), 0); err != nil {
		return os.NewSyscallError("dup2", err)
	}
	return syscall.Exec(whole, append([]string{whole}, os.Args[1:]...), os.Environ())
}
