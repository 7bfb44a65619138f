package object

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// createFile makes a file appear whole, unless it is there.
func createFile(path, content string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	d, err := NewDraft(path, content)
	if err != nil {
		return err
	}
	defer d.Drop()
	return d.Publish()
}

// Draft is a file that is whole and on disk, but for its name.
type Draft struct {
	f    *os.File
	path string
}

// NewDraft writes content, for path, to a temporary file beside it. After an
// error nothing is left of it.
func NewDraft(path, content string) (*Draft, error) {
	f, err := createTemp(filepath.Dir(path), "new")
	if err != nil {
		return nil, err
	}
	d := &Draft{f, path}
	if content == "" {
		return d, nil // nothing of it can get lost
	}
	if _, err = f.WriteString(content); err == nil {
		err = f.Sync()
	}
	if err != nil {
		d.Drop()
		return nil, err
	}
	return d, nil
}

// Publish gives the file its name, unless somebody has made one there, which is
// no error. After an error there is no file of ours at the path.
func (d *Draft) Publish() error {
	if err := os.Link(d.f.Name(), d.path); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return os.Rename(d.f.Name(), d.path) // no hard links here: whoever is last wins
}

// Drop removes what is left of it. It may be called after Publish, and on nil.
func (d *Draft) Drop() {
	if d != nil {
		dropTemp(d.f)
	}
}
