package handover

import (
	"os"

	"golang.org/x/sys/unix"
)

// memory is a file without a name that holds text, to be read from the start.
func memory(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("payload", 0)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "payload")
	if _, err := f.Write(text); err != nil {
		return nil, err
	}
	_, err = f.Seek(0, 0)
	return f, err
}
