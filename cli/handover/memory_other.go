//go:build unix && !linux

package handover

import "os"

// memory is a file without a name that holds text, to be read from the start.
func memory(text []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "retcon-hook-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, err
	}
	if _, err := f.Write(text); err != nil {
		return nil, err
	}
	_, err = f.Seek(0, 0)
	return f, err
}
