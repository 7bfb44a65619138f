package object

import (
	"bytes"
	"errors"
)

var errMalformed = errors.New("malformed content")

// A reference is a mention of one object in another. Kind is zero when only
// the object itself can tell.
type reference struct {
	id     ID
	kind   Kind
	parent bool // of a commit
	name   string
}

// references calls f for every object that the content of one mentions.
// Commits in other repositories are none of ours and left out.
func references(kind Kind, data []byte, f func(reference) error) error {
	switch kind {
	case Commit:
		return commitReferences(data, f)
	case Tag:
		rest, ok := bytes.CutPrefix(data, []byte("object "))
		id, ok2 := leadingID(rest)
		if !ok || !ok2 {
			return errMalformed
		}
		return f(reference{id: id})
	case Tree:
		for e, err := range ParseTree(data) {
			if err != nil {
				return err
			}
			r := reference{id: e.ID, kind: Blob, name: e.Name}
			switch {
			case e.IsGitlink():
				continue
			case e.IsDir():
				r.kind = Tree
			}
			if err := f(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func commitReferences(data []byte, f func(reference) error) error {
	rest, ok := bytes.CutPrefix(data, []byte("tree "))
	if !ok {
		return errMalformed
	}
	id, ok := leadingID(rest)
	if !ok {
		return errMalformed
	}
	if err := f(reference{id: id, kind: Tree}); err != nil {
		return err
	}
	for rest = rest[41:]; ; rest = rest[41:] {
		if rest, ok = bytes.CutPrefix(rest, []byte("parent ")); !ok {
			return nil
		}
		if id, ok = leadingID(rest); !ok {
			return errMalformed
		}
		if err := f(reference{id: id, kind: Commit, parent: true}); err != nil {
			return err
		}
	}
}

// leadingID reads forty digits and the end of the line.
func leadingID(b []byte) (ID, bool) {
	if len(b) < 41 || b[40] != '\n' {
		return ID{}, false
	}
	id, err := ParseID(string(b[:40]))
	return id, err == nil
}
