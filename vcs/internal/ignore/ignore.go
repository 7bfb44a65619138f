// Package ignore decides which names of a worktree git would ignore.
//
// A [Chain] holds the rules in force inside one directory. [Root] makes the
// first from the rule files that are not in the worktree, [Chain.Enter] and
// [Chain.WithFile] make the others while a walker descends, and [Chain.Match]
// answers for one entry. Every rule is compiled once, when its file is added;
// a directory without rules of its own costs next to nothing.
//
// The answers are git's, its oddities included: patterns and names are bytes,
// only ASCII letters fold, and a pattern git cannot parse matches nothing.
// One difference is deliberate. Before version 2.52 git took "foo**/bar" to
// match "foobar" too; newer versions and its manual do not, nor do we.
//
// The package computes. It does not open files, know which of them git reads
// (a .gitignore that is a symbolic link is not one of them), or know what is
// tracked: a tracked file is never ignored, whatever its name.
package ignore

// Options are those of one worktree. The zero value compares case exactly.
type Options struct {
	FoldCase bool // core.ignoreCase
}

// A Source is one file of ignore rules, whole.
type Source struct {
	Name string // for Explain only, e.g. ".git/info/exclude"
	Data []byte // not kept, may be reused by the caller
}

// A Decision is what the rules say about one entry.
type Decision uint8

const (
	None     Decision = iota // no rule speaks of it: not ignored
	Ignored                  // ignored; a directory is not to be entered
	Included                 // a negated rule speaks of it: not ignored
)

func (d Decision) String() string {
	switch d {
	case Ignored:
		return "ignored"
	case Included:
		return "included"
	}
	return "none"
}

// A Rule is the line that decided, as `git check-ignore -v` prints it. The
// zero Rule means that no line did.
type Rule struct {
	Source  string // name of the Source, or path of the .gitignore from the root
	Line    int    // from 1
	Pattern string // without trailing blanks, with its "!" and final "/"
}
