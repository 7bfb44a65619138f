package timeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/retcon-dev/retcon/vcs"
)

// Actions of a Step.
const (
	Create  = "create"
	Replace = "replace"
	Delete  = "delete"
	Chmod   = "chmod"
	Mkdir   = "mkdir"
	Rmdir   = "rmdir"
)

// Owner says who changed a path since the target.
type Owner string

const (
	Anybody Owner = ""        // the move is exact: it does not matter
	Run     Owner = "run"     // the run the target belongs to
	Outside Owner = "outside" // the user, or another session
	Both    Owner = "both"
	Moved   Owner = "move" // only moves of ours
)

// Step is what happens to one path.
type Step struct {
	vcs.FileChange
	Action string
	Owner  Owner
}

// MarshalJSON adds action and owner to what a FileChange encodes.
func (s Step) MarshalJSON() ([]byte, error) {
	b, err := s.FileChange.MarshalJSON()
	if err != nil {
		return nil, err
	}
	more, err := json.Marshal(struct {
		Action string `json:"action"`
		Owner  Owner  `json:"owner,omitempty"`
	}{s.Action, s.Owner})
	if err != nil {
		return nil, err
	}
	return append(append(b[:len(b)-1], ','), more[1:]...), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Step) UnmarshalJSON(b []byte) error {
	var more struct {
		Action string `json:"action"`
		Owner  Owner  `json:"owner"`
	}
	if err := json.Unmarshal(b, &more); err != nil {
		return err
	}
	s.Action, s.Owner = more.Action, more.Owner
	return s.FileChange.UnmarshalJSON(b)
}

// Note is a path the move leaves as it is, and why.
type Note struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// HeadChange says that HEAD is not where it was at the target.
type HeadChange struct {
	From vcs.Head `json:"from"` // now
	To   vcs.Head `json:"to"`   // at the target
}

// Plan is what a move will do. It is made without touching anything; Apply
// refuses it when the worktree is not at Base any more.
type Plan struct {
	ID            string       `json:"id"` // digest of the rest
	Verb          string       `json:"verb"`
	Root          string       `json:"root"`
	Target        string       `json:"target"` // as the user named it
	TargetCommit  vcs.Commit   `json:"target_commit"`
	Base          vcs.Commit   `json:"base"` // the worktree when the plan was made
	Changes       []Step       `json:"changes"`
	Kept          []Note       `json:"kept,omitempty"`
	Conflicts     []Note       `json:"conflicts,omitempty"`
	NotRestorable []Note       `json:"not_restorable,omitempty"` // the target does not have their content
	Warnings      []string     `json:"warnings,omitempty"`
	HeadMoved     *HeadChange  `json:"head_moved,omitempty"`
	Head          bool         `json:"head,omitempty"`    // HEAD and its branch move too
	Index         bool         `json:"index,omitempty"`   // the index is put back too
	History       *History     `json:"history,omitempty"` // what becomes of the run's record
	Effects       []EffectStep `json:"effects,omitempty"` // that the move goes behind, newest first
	Undoes        int64        `json:"undoes,omitempty"`
	Request       string       `json:"request,omitempty"` // digest of what was asked
	Reason        string       `json:"reason,omitempty"`  // not part of the ID
}

// files are the changes as vcs takes them.
func (p *Plan) files() []vcs.FileChange {
	out := make([]vcs.FileChange, len(p.Changes))
	for i := range p.Changes {
		out[i] = p.Changes[i].FileChange
	}
	return out
}

// Empty tells that there is nothing to do. To take an operation back is something,
// whatever is left of what it did: otherwise those before it could not be reached.
func (p *Plan) Empty() bool {
	return p.Undoes == 0 && len(p.Changes) == 0 && !p.Head && !p.Index && p.History.nothing() && !p.acts()
}

func (p *Plan) seal() {
	p.ID = ""
	b, err := json.Marshal(p)
	if err != nil {
		panic("BUG: plan: " + err.Error())
	}
	sum := sha256.Sum256(b)
	p.ID = hex.EncodeToString(sum[:8])
}

// Conflict policies.
const (
	Refuse = ""
	Theirs = "theirs" // take the target's
	Mine   = "mine"   // keep what is there now
)

// facts are what a plan is made of.
type facts struct {
	all     []vcs.FileChange // from the worktree as it is to the target
	changes []vcs.FileChange // those the move is about
	paths   []string         // only these and what lies below; nil for all
	owner   func(path string) Owner
	policy  string
}

// decide fills in what happens to every path.
func (p *Plan) decide(f facts) {
	changes := slices.DeleteFunc(slices.Clone(f.changes), func(c vcs.FileChange) bool { return !within(f.paths, c.Path) })
	do, rest := vcs.Restorable(changes)
	for _, c := range rest {
		if took, ok := ignoredChange(c, f); ok {
			do = append(do, took)
			continue
		}
		p.leave(c)
	}
	for _, c := range do {
		owner := f.owner(c.Path)
		switch {
		case owner == Outside:
			p.Kept = append(p.Kept, Note{c.Path, "changed since, but not by this run"})
			continue
		case owner == Both && f.policy == Mine:
			p.Kept = append(p.Kept, Note{c.Path, "changed by the run and from outside; kept as asked"})
			continue
		case owner == Both && f.policy == Refuse:
			p.Conflicts = append(p.Conflicts, Note{c.Path, "changed by the run and from outside"})
			continue
		}
		p.Changes = append(p.Changes, Step{FileChange: c, Action: action(c), Owner: owner})
	}
	p.clearFolders(f)
	p.addFolders(f)
	slices.SortFunc(p.Changes, func(a, b Step) int { return strings.Compare(a.Path, b.Path) })
}

// clearFolders looks into the folders that are to become files: what lies there
// and is to stay stands in the way. That is a conflict; where the target's side
// is taken it goes too, if it can be brought back.
func (p *Plan) clearFolders(f facts) {
	chosen := make(map[string]bool, len(p.Changes))
	for _, s := range p.Changes {
		chosen[s.Path] = true
	}
	stays := make(map[string]string) // by folder, something that does
	for _, s := range slices.Clone(p.Changes) {
		if !folder(s.Old) || folder(s.New) || s.New.Kind == vcs.KindAbsent {
			continue
		}
		for _, c := range f.all {
			if !strings.HasPrefix(c.Path, s.Path+"/") || c.Old.Kind == vcs.KindAbsent || chosen[c.Path] {
				continue
			}
			if do, _ := vcs.Restorable([]vcs.FileChange{c}); f.policy != Theirs || len(do) == 0 {
				stays[s.Path] = c.Path
				continue
			}
			p.Changes = append(p.Changes, Step{FileChange: c, Action: action(c), Owner: f.owner(c.Path)})
			p.Kept = slices.DeleteFunc(p.Kept, func(n Note) bool { return n.Path == c.Path })
		}
	}
	p.withdraw(stays, f.policy, func(what string) string {
		return "is a folder now, with " + what + " in it, which is not this run's"
	})
}

// withdraw takes steps out of the plan that can't be carried out, by path, and
// notes why.
func (p *Plan) withdraw(steps map[string]string, policy string, why func(string) string) {
	p.Changes = slices.DeleteFunc(p.Changes, func(s Step) bool {
		by, ok := steps[s.Path]
		if !ok {
			return false
		}
		note := Note{s.Path, why(by)}
		if policy == Mine {
			p.Kept = append(p.Kept, note)
		} else {
			p.Conflicts = append(p.Conflicts, note)
		}
		return true
	})
}

// folder tells that a path is one, of whatever kind.
func folder(s vcs.State) bool { return s.Kind == vcs.KindDir || s.Kind == vcs.KindRepo }

// addFolders adds the folders that steps need and that somebody else removed. A
// step whose folder somebody else has made something else of is a conflict.
func (p *Plan) addFolders(f facts) {
	files := p.files()
	made, blocked := folders(files, f.all)
	for _, c := range made {
		p.Changes = append(p.Changes, Step{FileChange: c, Action: action(c)})
		p.Kept = slices.DeleteFunc(p.Kept, func(n Note) bool { return n.Path == c.Path })
	}
	p.withdraw(blocked, f.policy, func(by string) string {
		return "its folder " + by + " is something else now, and not by this run"
	})
}

// folders returns the changes of all that make folders which the chosen ones
// need and do not make themselves, and, of the chosen, those that cannot be
// carried out because a folder of theirs is something else: by path, which.
func folders(chosen, all []vcs.FileChange) (made []vcs.FileChange, blocked map[string]string) {
	missing := make(map[string]vcs.FileChange) // folders of the target that are not there
	for _, c := range all {
		if folder(c.New) && !folder(c.Old) {
			missing[c.Path] = c
		}
	}
	for _, c := range chosen {
		delete(missing, c.Path)
	}
	if len(missing) == 0 {
		return nil, nil
	}
	blocked = make(map[string]string)
	for _, c := range chosen {
		if c.New.Kind == vcs.KindAbsent {
			continue
		}
		for i := range len(c.Path) {
			if c.Path[i] != '/' {
				continue
			}
			up, ok := missing[c.Path[:i]]
			switch {
			case !ok:
			case up.Old.Kind != vcs.KindAbsent:
				blocked[c.Path] = up.Path
			default:
				made = append(made, up)
				delete(missing, up.Path)
			}
		}
	}
	return made, blocked
}

// leave notes a path that cannot be put back, or must not.
func (p *Plan) leave(c vcs.FileChange) {
	switch {
	case c.Old.Sparse || c.New.Sparse:
	case c.New.Kind == vcs.KindUnknown:
		p.NotRestorable = append(p.NotRestorable, Note{c.Path, "not captured: " + c.New.Reason})
	case c.Old.Kind == vcs.KindUnknown && c.New.Kind != vcs.KindAbsent:
		p.Conflicts = append(p.Conflicts, Note{c.Path, "what is there now cannot be read, so it could not be brought back"})
	case c.Old.Kind == vcs.KindUnknown:
		p.Kept = append(p.Kept, Note{c.Path, "its content cannot be captured: " + c.Old.Reason})
	case c.Old.Ignored || c.New.Ignored:
		if c.Old.Kind != vcs.KindAbsent {
			p.Kept = append(p.Kept, Note{c.Path, "ignored"})
		}
	case c.Old.Kind == vcs.KindRepo:
		p.Kept = append(p.Kept, Note{c.Path, "a git repository that came later"})
	case c.Old.Kind == vcs.KindSpecial:
		p.Kept = append(p.Kept, Note{c.Path, "a socket, FIFO or device"})
	case c.New.Kind == vcs.KindSpecial:
		p.NotRestorable = append(p.NotRestorable, Note{c.Path, "was a socket, FIFO or device"})
	}
}

// ignoredChange lets an ignored file through that was captured on both sides
// and either was changed by the run or is named by the user.
func ignoredChange(c vcs.FileChange, f facts) (vcs.FileChange, bool) {
	plain := func(s vcs.State) bool { return s.Kind == vcs.KindFile || s.Kind == vcs.KindAbsent }
	if !plain(c.Old) || !plain(c.New) || !(c.Old.Ignored || c.New.Ignored) {
		return c, false
	}
	named := slices.Contains(f.paths, c.Path)
	if f.owner(c.Path) != Run && !named {
		return c, false
	}
	if c.New.Kind == vcs.KindAbsent && !named && f.owner(c.Path) != Run {
		return c, false
	}
	c.Old.Ignored, c.New.Ignored = false, false
	return c, !c.Old.Is(c.New)
}

func action(c vcs.FileChange) string {
	switch {
	case folder(c.New) && folder(c.Old):
		return Chmod
	case folder(c.New):
		return Mkdir
	case c.New.Kind == vcs.KindAbsent && folder(c.Old):
		return Rmdir
	case c.New.Kind == vcs.KindAbsent:
		return Delete
	case c.Old.Kind == vcs.KindAbsent:
		return Create
	case c.Old.Kind == c.New.Kind && c.Old.ID == c.New.ID:
		return Chmod
	}
	return Replace
}

func within(paths []string, path string) bool {
	if paths == nil {
		return true
	}
	for _, p := range paths {
		if p == "" || path == p || strings.HasPrefix(path, p+"/") || strings.HasPrefix(p, path+"/") {
			return true
		}
	}
	return false
}
