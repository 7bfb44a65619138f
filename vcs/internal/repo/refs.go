package repo

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Head is where a worktree stands: on a branch, which may not have a commit
// yet, or on a commit alone.
type Head struct {
	Ref string // such as "refs/heads/main"; "" when detached
	ID  string // commit in hex; "" when unborn

	// Unknown: the repository keeps its refs in a form we cannot read. Ref
	// and ID are then empty and mean nothing.
	Unknown bool
}

// maxSymbolic is how many symbolic refs git follows before it gives up.
const maxSymbolic = 5

// maxPackedRefs bounds the file read for one ref: a hundred million refs.
const maxPackedRefs = 8 << 30

// Head returns what HEAD of this worktree says. An unborn branch is not an
// error; a HEAD that git could not read is ErrBadRef.
func (r *Repo) Head() (Head, error) {
	if r.format.refStorage != "files" {
		return Head{Unknown: true}, nil
	}
	value, err := r.readRef("HEAD")
	if err != nil {
		return Head{}, err
	}
	if value.symbolic == "" {
		return Head{ID: value.id}, nil
	}
	_, id, err := r.resolve(value.symbolic)
	return Head{Ref: value.symbolic, ID: id}, err
}

// Ref returns the commit, in hex, that a full ref name or a name such as HEAD
// or MERGE_HEAD resolves to. It is not ok when there is no such ref, or refs
// cannot be read in this repository.
func (r *Repo) Ref(name string) (id string, ok bool, err error) {
	if r.format.refStorage != "files" {
		return "", false, nil
	}
	_, id, err = r.resolve(name)
	return id, id != "", err
}

// resolve follows symbolic refs to the ref that holds an id, or would hold it
// if it existed.
func (r *Repo) resolve(name string) (last, id string, err error) {
	for range maxSymbolic {
		value, err := r.readRef(name)
		if err != nil || value.symbolic == "" {
			return name, value.id, err
		}
		name = value.symbolic
	}
	return "", "", fmt.Errorf("%w: %s: symbolic refs nested too deep", ErrBadRef, name)
}

// refValue is what one ref says; empty when it does not exist.
type refValue struct {
	symbolic string
	id       string
}

// readRef reads a loose ref or, failing that, the packed one. The order
// matters: git packs a ref before it deletes the loose file.
func (r *Repo) readRef(name string) (refValue, error) {
	if !validRefName(name) {
		return refValue{}, fmt.Errorf("%w: name %q", ErrBadRef, name)
	}
	path := r.refPath(name)
	if target, err := os.Readlink(path); err == nil && validRefName(target) && strings.HasPrefix(target, "refs/") {
		return refValue{symbolic: target}, nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return r.packedRef(name)
	}
	data, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return r.packedRef(name)
	}
	if err != nil {
		return refValue{}, fmt.Errorf("ref %s: %w", name, err)
	}
	if target, ok := symbolicTarget(data); ok {
		if !validRefName(target) || !strings.HasPrefix(target, "refs/") {
			return refValue{}, fmt.Errorf("%w: %s points to %q", ErrBadRef, name, target)
		}
		return refValue{symbolic: target}, nil
	}
	id, ok := leadingHex(data)
	if !ok || len(id) != r.hexLen() {
		return refValue{}, fmt.Errorf("%w: %s holds no object id", ErrBadRef, name)
	}
	return refValue{id: id}, nil
}

// packedRef looks name up in packed-refs, whose lines are "id name".
func (r *Repo) packedRef(name string) (refValue, error) {
	if !strings.HasPrefix(name, "refs/") {
		return refValue{}, nil
	}
	data, err := r.packedRefs()
	if err != nil {
		return refValue{}, err
	}
	line := []byte(" " + name + "\n")
	if i := bytes.Index(data, line); i >= 0 {
		start := bytes.LastIndexByte(data[:i], '\n') + 1
		if id, ok := leadingHex(data[start:i]); ok && len(id) == i-start {
			return refValue{id: id}, nil
		}
		return refValue{}, fmt.Errorf("%w: %s in packed-refs", ErrBadRef, name)
	}
	return refValue{}, nil
}

// packedRefs returns the whole file, ending in a newline.
func (r *Repo) packedRefs() ([]byte, error) {
	data, err := readRegular(filepath.Join(r.CommonDir, "packed-refs"), maxPackedRefs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("packed refs: %w", err)
	}
	if n := len(data); n > 0 && data[n-1] != '\n' {
		data = append(data, '\n')
	}
	return data, nil
}

// refPath places a ref: HEAD and its kind belong to a worktree, as do three
// folders below refs; all other refs are shared.
func (r *Repo) refPath(name string) string { return filepath.Join(r.refDir(name), name) }

func (r *Repo) refDir(name string) string {
	if !strings.HasPrefix(name, "refs/") {
		return r.GitDir
	}
	for _, own := range []string{"refs/bisect/", "refs/worktree/", "refs/rewritten/"} {
		if strings.HasPrefix(name, own) {
			return r.GitDir
		}
	}
	return r.CommonDir
}

func (r *Repo) hexLen() int {
	if r.format.objectFormat == "sha256" {
		return 64
	}
	return 40
}

// validRefName follows git's rules for what a ref may be called, which also
// keep a name inside the git directory.
func validRefName(name string) bool {
	if name == "" || name == "@" || strings.HasSuffix(name, ".") ||
		strings.Contains(name, "..") || strings.Contains(name, "@{") {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c < 0x20 || c == 0x7f || strings.IndexByte(" ~^:?*[\\", c) >= 0 {
			return false
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// symbolicTarget returns the name in "ref: name".
func symbolicTarget(data []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(data, []byte("ref:"))
	return string(bytes.Trim(rest, " \t\r\n")), ok
}

// leadingHex returns the object id that data begins with; white space or the
// end must follow.
func leadingHex(data []byte) (string, bool) {
	n := 0
	for n < len(data) && isHex(data[n]) {
		n++
	}
	if n != 40 && n != 64 || n < len(data) && !isSpace(data[n]) {
		return "", false
	}
	return lower(string(data[:n])), true
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= toLower(c) && toLower(c) <= 'f' }
