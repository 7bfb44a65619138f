//go:build unix

package cassette

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/retcon-dev/retcon/internal/crash"
)

// KeySize is the length of a store's key.
const KeySize = 32

// StoreKey returns the key in the file at path, and makes it, readable for the
// user alone, when there is none. Any number of processes may ask at the same
// time, and all get the same. The directory must exist.
func StoreKey(path string) ([]byte, error) {
	key, err := storeKey(path)
	if err != nil {
		return nil, fmt.Errorf("key of the tape: %w", err)
	}
	return key, nil
}

func storeKey(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		f, err = os.Open(path) // a key that is there will do
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // and with it the lock
	if err := lock(f); err != nil {
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}
	key, err := io.ReadAll(io.LimitReader(f, KeySize+1))
	if err != nil {
		return nil, err
	}
	switch {
	case len(key) > KeySize:
		return nil, fmt.Errorf("%s is longer than a key", path)
	case len(key) == KeySize && string(key) != string(make([]byte, KeySize)):
		return key, nil
	}
	// There is none yet: its maker died while writing, or the power went
	// before it was on the disk. Nobody has been given such a key.
	key = make([]byte, KeySize)
	rand.Read(key)
	crash.Point("cassette.key")
	if _, err := f.WriteAt(key, 0); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	return key, syncFolder(filepath.Dir(path))
}

func lock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			return err
		}
	}
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
