package vcs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/retcon-dev/retcon/vcs/internal/object"
)

// Kind of what is at a path.
const (
	KindAbsent  = "absent"
	KindFile    = "file"
	KindLink    = "link"
	KindDir     = "dir"
	KindRepo    = "repo"    // the root of a nested repository; a directory in all else
	KindGitlink = "gitlink" // a submodule that is not checked out
	KindSpecial = "special" // socket, FIFO, device
	KindUnknown = "unknown" // there, but its content was not captured
	KindIgnored = "ignored" // there, ignored, and not captured
)

// State is what a commit says about one path.
type State struct {
	Kind    string `json:"kind"`
	Mode    uint32 `json:"mode,omitempty"`    // permission bits, 07777
	ID      string `json:"id,omitempty"`      // git's blob id of the content, or of the link's target
	Reason  string `json:"reason,omitempty"`  // why the content is not known
	Size    int64  `json:"size,omitempty"`    // of what was not captured
	Ignored bool   `json:"ignored,omitempty"` // by the ignore rules of that moment
	Sparse  bool   `json:"sparse,omitempty"`  // in the index, kept off the disk by a sparse checkout
}

// Is tells that two states cannot be told apart in a worktree.
func (s State) Is(o State) bool {
	return s.Kind == o.Kind && s.Mode == o.Mode && s.ID == o.ID && s.Sparse == o.Sparse
}

// level is one directory of a commit.
type level struct{ tree, aux object.ID }

// node is one name in a level.
type node struct {
	name string
	State
	git uint32 // mode in the tree; 0 when it is not in it
	id  object.ID
	sub level // of a directory or nested repository
}

func (n *node) isDir() bool { return n.Kind == KindDir || n.Kind == KindRepo }

// commitRoot is a commit as read from the store.
type commitRoot struct {
	meta  meta
	top   level
	index object.ID
}

func (w *Worktree) readCommit(c Commit) (*commitRoot, error) {
	id, err := object.ParseID(string(c))
	if err != nil {
		return nil, fmt.Errorf("%w: %q", ErrNoCommit, c)
	}
	parts, err := w.readTree(id)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", c, err)
	}
	r := &commitRoot{top: level{tree: parts["tree"].ID, aux: parts["aux"].ID}, index: parts["index"].ID}
	m, ok := parts["meta"]
	if !ok || r.top.tree.IsZero() {
		return nil, fmt.Errorf("%w: %s", ErrNoCommit, c)
	}
	_, js, err := w.store.ReadVerified(m.ID, nil)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", c, err)
	}
	if err := json.Unmarshal(js, &r.meta); err != nil {
		return nil, fmt.Errorf("commit %s: %w: %v", c, ErrDamaged, err)
	}
	if r.meta.Version != 1 {
		return nil, fmt.Errorf("commit %s was written by a newer retcon (format %d)", c, r.meta.Version)
	}
	return r, nil
}

// readTree returns the entries of a small tree of ours by name.
func (w *Worktree) readTree(id object.ID) (map[string]object.TreeEntry, error) {
	kind, data, err := w.store.ReadVerified(id, nil)
	if err != nil {
		return nil, err
	}
	if kind != object.Tree {
		return nil, ErrNoCommit
	}
	out := make(map[string]object.TreeEntry)
	for e, err := range object.ParseTree(data) {
		if err != nil {
			return nil, err
		}
		out[e.Name] = e
	}
	return out, nil
}

// list returns the names of a level, sorted. Every name is checked: no commit,
// however it came here, names a path outside its directory.
func (w *Worktree) list(l level, m modes) ([]node, error) {
	entries, err := w.entries(l.tree)
	if err != nil {
		return nil, err
	}
	return w.nodes(entries, l.aux, m)
}

// entries are the entries of a tree, in its order, their names checked.
func (w *Worktree) entries(tree object.ID) ([]object.TreeEntry, error) {
	if tree.IsZero() {
		return nil, nil
	}
	data, err := w.treeData(tree)
	if err != nil {
		return nil, err
	}
	entries := make([]object.TreeEntry, 0, len(data)/32)
	for e, err := range object.ParseTree(data) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, checkNames(entries)
}

// differing are the entries that only one of two trees has.
func (w *Worktree) differing(a, b object.ID) (as, bs []object.TreeEntry, err error) {
	x, err := w.treeData(a)
	if err != nil {
		return nil, nil, err
	}
	y, err := w.treeData(b)
	if err != nil {
		return nil, nil, err
	}
	if as, bs, err = object.Differing(x, y); err == nil {
		err = errors.Join(checkNames(as), checkNames(bs))
	}
	return as, bs, err
}

func (w *Worktree) treeData(tree object.ID) ([]byte, error) {
	kind, data, err := w.store.ReadVerified(tree, nil)
	if err == nil && kind != object.Tree {
		err = fmt.Errorf("%w: %s is a %v", ErrDamaged, tree, kind)
	}
	return data, err
}

func checkNames(entries []object.TreeEntry) error {
	for _, e := range entries {
		if err := checkName(e.Name); err != nil {
			return err
		}
	}
	return nil
}

// nodes are what these entries of a tree and its aux say together, sorted by
// name.
func (w *Worktree) nodes(entries []object.TreeEntry, aux object.ID, m modes) ([]node, error) {
	nodes := make([]node, 0, len(entries))
	for _, e := range entries {
		n := node{name: e.Name, git: e.Mode, id: e.ID}
		switch e.Mode {
		case object.ModeDir:
			n.State, n.sub.tree = State{Kind: KindDir, Mode: m.Dir}, e.ID
		case object.ModeSymlink:
			n.State = State{Kind: KindLink, ID: e.ID.String()}
		case object.ModeGitlink:
			n.State = State{Kind: KindGitlink, ID: e.ID.String()}
		case object.ModeExec:
			n.State = State{Kind: KindFile, Mode: m.Exec, ID: e.ID.String()}
		default:
			n.State = State{Kind: KindFile, Mode: m.File, ID: e.ID.String()}
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b node) int { return strings.Compare(a.name, b.name) })
	if aux.IsZero() {
		return nodes, nil
	}
	parts, err := w.readTree(aux)
	if err != nil {
		return nil, err
	}
	at := func(name string) *node {
		i, ok := slices.BinarySearchFunc(nodes, name, func(n node, name string) int { return strings.Compare(n.name, name) })
		if !ok {
			nodes = slices.Insert(nodes, i, node{name: name})
		}
		return &nodes[i]
	}
	if a, ok := parts["a"]; ok {
		_, data, err := w.store.ReadVerified(a.ID, nil)
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(data) {
			if err := applyLine(strings.TrimSuffix(string(line), "\n"), at); err != nil {
				return nil, err
			}
		}
	}
	for _, part := range []string{"d", "i", "n"} {
		p, ok := parts[part]
		if !ok {
			continue
		}
		entries, err := w.readTree(p.ID)
		if err != nil {
			return nil, err
		}
		for name, e := range entries {
			if err := checkName(name); err != nil {
				return nil, err
			}
			n := at(name)
			switch part {
			case "d":
				n.sub.aux = e.ID
				if n.Kind == "" {
					n.State = State{Kind: KindDir, Mode: m.Dir}
				}
			case "i":
				n.Kind, n.id, n.ID, n.Ignored, n.Size, n.Reason = KindFile, e.ID, e.ID.String(), true, 0, ""
			case "n":
				pair, err := w.readTree(e.ID)
				if err != nil {
					return nil, err
				}
				n.Kind, n.sub = KindRepo, level{tree: pair["tree"].ID, aux: pair["aux"].ID}
			}
		}
	}
	return nodes, nil
}

// applyLine adds what a line of an aux blob says to the node it is about.
func applyLine(line string, at func(string) *node) error {
	f := strings.SplitN(line, " ", 4)
	if len(f) != 4 {
		return fmt.Errorf("%w: aux line %q", ErrDamaged, line)
	}
	mode, err1 := strconv.ParseUint(f[1], 8, 32)
	size, err2 := strconv.ParseInt(f[2], 10, 64)
	name, err3 := f[3], error(nil)
	if strings.HasPrefix(name, `"`) {
		name, err3 = strconv.Unquote(name)
	}
	if err1 != nil || err2 != nil || err3 != nil {
		return fmt.Errorf("%w: aux line %q", ErrDamaged, line)
	}
	if !strings.HasPrefix(f[0], "skip-") {
		if err := checkName(name); err != nil {
			return err
		}
	}
	n := at(name)
	switch f[0] {
	case "mode":
		n.Mode = uint32(mode)
	case "torn":
		n.Mode, n.Reason = uint32(mode), Changing.String()
	case "sparse":
		n.Sparse = true
	case "dir":
		if n.Kind == "" {
			n.Kind = KindDir
		}
		n.Mode = uint32(mode)
	case "repo":
		n.Kind, n.Mode = KindRepo, uint32(mode)
	case "ignored":
		n.Kind, n.Mode, n.Size, n.Ignored = KindIgnored, uint32(mode), size, true
	case "special":
		n.Kind, n.Mode = KindSpecial, uint32(mode)&(0o7777|unix.S_IFMT)
	default:
		why, ok := strings.CutPrefix(f[0], "skip-")
		if !ok {
			return fmt.Errorf("%w: aux line %q", ErrDamaged, line)
		}
		n.Kind, n.Mode, n.Size, n.Reason = KindUnknown, uint32(mode), size, why
	}
	return nil
}

// checkName refuses names that would lead out of their directory or into a git
// directory.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || reservedName(name) || name == stageName {
		return fmt.Errorf("%w: entry named %q", ErrDamaged, name)
	}
	return nil
}

// Describe returns what a commit says about the repository and the root.
func (w *Worktree) Describe(c Commit) (head Head, operation string, err error) {
	r, err := w.readCommit(c)
	if err != nil {
		return Head{}, "", err
	}
	if r.meta.Head != nil {
		head = *r.meta.Head
	}
	return head, r.meta.Operation, nil
}
