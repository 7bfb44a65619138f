package retcon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/timeline"
)

// ProjectFile is the configuration that comes with a repository, at the top of a
// worktree.
const ProjectFile = "retcon.toml"

// Project is the configuration that comes with a repository. What in it runs
// nothing is in force; the rest waits until somebody trusts it.
type Project struct {
	File    string  `json:"file"`    // absolute; "" when there is none
	Digest  string  `json:"digest"`  // of the path and the bytes
	Trusted bool    `json:"trusted"` // these bytes, at this path
	Changed bool    `json:"changed"` // other bytes at this path are trusted
	Grants  []Grant `json:"grants"`  // what it may do only when it is trusted
	Err     error   `json:"-"`       // why nothing of it can be used: a *ProjectError

	config Config
}

// Config is what it sets, where the user does not; nothing when it can't be used.
func (p *Project) Config() Config { return p.config }

// Waits tells that something in it is not in force before it is trusted.
func (p *Project) Waits() bool { return p.Err == nil && !p.Trusted && len(p.Grants) > 0 }

// Waiting says, of one that Waits, that it does less than it could.
func (p *Project) Waiting() string {
	if p.Changed {
		return ProjectFile + " has changed since it was trusted, and runs nothing"
	}
	return ProjectFile + " is not trusted, and runs nothing"
}

// Grant is something that a configuration may do only when it is trusted.
type Grant struct {
	Rule string   `json:"rule"`          // its name, or its number
	When string   `json:"when"`          // what the rule is about
	What string   `json:"what"`          // GrantRun, GrantCall or GrantPass
	How  string   `json:"how"`           // what is run or called, or why nothing is in the way
	Env  []string `json:"env,omitempty"` // variables that it is given, beside the common ones
}

// What a configuration asks for.
const (
	GrantRun  = "run"  // it runs a command
	GrantCall = "call" // it calls an address, a tool or a function
	GrantPass = "pass" // it says that something is in nobody's way
)

// ProjectError says that the configuration of a repository can't be used. Nothing
// of it is in force, and everything else goes on without it.
type ProjectError struct {
	File   string
	Line   int // 0 when it is about the whole file
	Reason string
}

func (e *ProjectError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", ProjectFile, e.Reason)
	}
	return fmt.Sprintf("%s:%d: %s", ProjectFile, e.Line, e.Reason)
}

// projectMax is the size up to which a configuration is read.
const projectMax = 1 << 20

// readProject reads the configuration of the repository whose worktree is at
// root. It always returns one.
func readProject(root string, o Options) *Project {
	p := &Project{Grants: []Grant{}}
	if o.Parse == nil {
		return p
	}
	file := filepath.Join(root, ProjectFile)
	text, err := readBelow(root, ProjectFile)
	if errors.Is(err, fs.ErrNotExist) {
		return p
	}
	p.File = file
	if err == nil {
		p.Digest = projectDigest(file, text)
		p.config, err = o.Parse(text)
	}
	if err != nil {
		var bad *ProjectError
		if !errors.As(err, &bad) {
			bad = &ProjectError{Reason: bare(err).Error()}
		}
		bad.File = file
		p.Err, p.config = bad, Config{}
		return p
	}
	p.Grants = grants(p.config.Rules)
	if len(p.Grants) == 0 {
		return p
	}
	notes := trusting(o.State)
	if p.Trusted = notes.has(p.Digest); !p.Trusted {
		p.Changed = slices.ContainsFunc(notes.list(), func(t TrustedFile) bool { return t.File == file })
	}
	return p
}

// readBelow reads a regular file in a directory. A link is followed as long as it
// stays below.
func readBelow(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not be waited for
	if err != nil {
		if link, lerr := root.Lstat(name); lerr == nil && link.Mode()&fs.ModeSymlink != 0 {
			return nil, errors.New("it is a link that leads out of the worktree, or nowhere")
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Size() > projectMax:
		return nil, fmt.Errorf("it is larger than %d bytes", projectMax)
	}
	return io.ReadAll(io.LimitReader(f, projectMax))
}

// projectDigest is what trust is given to: these bytes at this path.
func projectDigest(file string, text []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "retcon.trust\x00%d\x00%s", len(file), file)
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// grants are what rules may do only when they are trusted.
func grants(rules []Rule) []Grant {
	all := []Grant{}
	for i, r := range rules {
		g := Grant{Rule: r.Name, When: strings.Join(slices.DeleteFunc([]string{r.Command, r.Tool, r.Match}, func(s string) bool { return s == "" }), " ")}
		if g.Rule == "" {
			g.Rule = fmt.Sprint(i + 1)
		}
		pass := func(how string) {
			one := g
			one.What, one.How = GrantPass, how
			all = append(all, one)
		}
		switch {
		case r.Class == sideeffect.Read:
			pass("it is no effect")
		case r.Class == sideeffect.Exempt:
			pass("it is in nobody's way")
		}
		if r.Atomic {
			pass("an error says that nothing was done")
		}
		switch undo := r.Undo; {
		case undo.NotNeeded != "":
			pass(undo.NotNeeded)
		case undo.HTTP != nil, undo.MCP != nil, undo.Handler != "":
			g.What, g.How = GrantCall, undo.String()
			all = append(all, g)
		case len(undo.Command) > 0, undo.Shell != nil:
			g.What, g.How, g.Env = GrantRun, undo.String(), undo.Env
			all = append(all, g)
		}
	}
	return all
}

// rules are the user's, and those of the repository.
func (w *Workspace) rules() sideeffect.Rules {
	if w.known != nil {
		return *w.known
	}
	configs := []sideeffect.Config{{Trusted: true, Rules: w.mine.Rules}}
	if p := w.project; p.Err == nil && len(p.config.Rules) > 0 {
		configs = append(configs, sideeffect.Config{Source: p.Digest, Trusted: p.Trusted, Rules: p.config.Rules})
	}
	rules, err := sideeffect.NewRules(configs...)
	if err != nil {
		panic("BUG: rules that were found to be good: " + err.Error())
	}
	w.known = &rules
	return rules
}

// trusts tells whether a compensation of a configuration with this digest may
// run.
func (w *Workspace) trusts(source string) bool {
	return w.opt.Trusted != nil && w.opt.Trusted(source) || trusting(w.opt.State).has(source)
}

// Project is the configuration that comes with the repository, as it was when the
// workspace was opened.
func (w *Workspace) Project() *Project { return w.project }

// Own are the user's own settings, without the repository's.
func (w *Workspace) Own() Config { return w.mine }

// TrustOptions say what is trusted, or not any more.
type TrustOptions struct {
	// Confirm, if set, is asked before a file is trusted; timeline.ErrDeclined when
	// it says no.
	Confirm func(*Project) (bool, error)
}

// Errors of trusting.
var (
	ErrNoProject = errors.New("there is no " + ProjectFile + " here")
	ErrNoState   = errors.New("there is no folder to note in what is trusted: neither XDG_STATE_HOME nor a home directory is known")
)

// AgentTrustError refuses an agent, or a command of a run, that would decide what
// it may run itself.
type AgentTrustError struct{ Who string }

func (e *AgentTrustError) Error() string {
	return e.Who + " may not decide what is trusted: a person does, in a terminal of their own"
}

// Trust lets the configuration of the repository do what it asks for, as long as
// it stays as it is. What is trusted are the bytes that were shown.
//
// It fails with ErrNoProject, ErrNoState, *ProjectError and *AgentTrustError.
func (w *Workspace) Trust(ctx context.Context, o TrustOptions) (*Project, error) {
	if err := w.refuseAgent(ctx); err != nil {
		return nil, err
	}
	p := w.project
	switch {
	case p.File == "":
		return nil, ErrNoProject
	case p.Err != nil:
		return nil, p.Err
	case p.Trusted || len(p.Grants) == 0:
		return p, nil
	case w.opt.State == "":
		return nil, ErrNoState
	}
	if o.Confirm != nil {
		switch yes, err := o.Confirm(p); {
		case err != nil:
			return nil, err
		case !yes:
			return nil, timeline.ErrDeclined
		}
	}
	err := trusting(w.opt.State).add(TrustedFile{File: p.File, Digest: p.Digest, Since: w.opt.Now().UTC()})
	if err != nil {
		return nil, fmt.Errorf("note that %s is trusted: %w", p.File, err)
	}
	p.Trusted, p.Changed = true, false
	return p, w.update(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		return tx.Audit(w.opt.Actor, "config.trust", auditDetail(map[string]string{"file": p.File, "digest": p.Digest}))
	})
}

// Distrust takes back what was trusted of a file, whatever it held: of the one
// here when file is "". It returns how many versions there were.
func (w *Workspace) Distrust(ctx context.Context, file string) (string, int, error) {
	if err := w.refuseAgent(ctx); err != nil {
		return "", 0, err
	}
	if file == "" {
		file = filepath.Join(w.Root(), ProjectFile)
	} else if !filepath.IsAbs(file) {
		file = filepath.Join(w.opt.Dir, file)
	}
	n, err := trusting(w.opt.State).remove(file)
	if err != nil {
		return file, n, fmt.Errorf("note that %s is not trusted: %w", file, err)
	}
	if file == w.project.File {
		w.project.Trusted, w.project.Changed = false, false
	}
	if n == 0 {
		return file, 0, nil
	}
	return file, n, w.update(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		return tx.Audit(w.opt.Actor, "config.distrust", auditDetail(map[string]string{"file": file}))
	})
}

// TrustedFiles are all configurations that the user trusts, wherever they are.
func (w *Workspace) TrustedFiles() []TrustedFile {
	all := trusting(w.opt.State).list()
	for i, t := range all {
		text, err := readBelow(filepath.Dir(t.File), filepath.Base(t.File))
		all[i].Current = err == nil && projectDigest(t.File, text) == t.Digest
	}
	return all
}

// refuseAgent fails with an *AgentTrustError when the caller is an agent, or a
// command that a run has started.
func (w *Workspace) refuseAgent(ctx context.Context) error {
	if w.opt.Actor != User {
		return &AgentTrustError{Who: w.opt.Actor}
	}
	if w.opt.OwnRun != "" {
		return &AgentTrustError{Who: "a command of " + w.opt.OwnRun}
	}
	for _, s := range w.opt.OwnSessions {
		return &AgentTrustError{Who: s.Agent}
	}
	if len(w.opt.Above) == 0 {
		return nil
	}
	return w.view(ctx, func(tx *ledger.Tx, _ ledger.Worktree) error {
		above, err := w.runsAbove(tx)
		if err == nil && len(above) > 0 {
			err = &AgentTrustError{Who: "a command of " + runRef(above[0])}
		}
		return err
	})
}

func auditDetail(about map[string]string) string { return string(encodedBody(about)) }

// explainTrust knows configurations that nobody trusts, or that can't be used.
func explainTrust(err error, e *Explained) bool {
	var bad *ProjectError
	var agent *AgentTrustError
	switch {
	case errors.As(err, &bad):
		return e.is(CodeConfig, "${EDITOR:-vi} "+shellWord(bad.File))
	case errors.As(err, &agent):
		return e.is(CodeSelfOperation, "retcon trust --list")
	case errors.Is(err, ErrNoProject):
		return e.is(CodeNotFound, "retcon trust --list")
	}
	return false
}

// TrustedFile is a configuration that the user trusts.
type TrustedFile struct {
	File    string    `json:"file"`
	Digest  string    `json:"digest"`
	Since   time.Time `json:"since"`
	Current bool      `json:"current"` // it is still what was trusted
}

// trusting is the folder of the notes about what is trusted, one file for each
// digest; "" for nobody's.
type trusting string

func (t trusting) folder() string { return filepath.Join(string(t), "trust") }

// has tells that a digest is trusted. A note that others could have written is
// none.
func (t trusting) has(digest string) bool {
	if t == "" || len(digest) != 2*sha256.Size || strings.Trim(digest, "0123456789abcdef") != "" {
		return false
	}
	private := func(path string, kind fs.FileMode) bool {
		info, err := os.Lstat(path)
		return err == nil && info.Mode().Type() == kind && info.Mode().Perm()&0o022 == 0
	}
	return private(t.folder(), fs.ModeDir) && private(filepath.Join(t.folder(), digest), 0)
}

// add notes a digest, whole or not at all.
func (t trusting) add(f TrustedFile) error {
	if err := os.MkdirAll(t.folder(), 0o700); err != nil {
		return err
	}
	if err := os.Chmod(t.folder(), 0o700); err != nil {
		return err
	}
	note, err := os.CreateTemp(t.folder(), ".new-*") // 0600
	if err != nil {
		return err
	}
	_, err = note.Write(append(encodedBody(f), '\n'))
	err = errors.Join(err, note.Sync(), note.Close())
	if err == nil {
		err = os.Rename(note.Name(), filepath.Join(t.folder(), f.Digest))
	}
	if err != nil {
		os.Remove(note.Name()) // what is left over is no note
	}
	return err
}

// list are the notes that hold, by their file.
func (t trusting) list() []TrustedFile {
	all := []TrustedFile{}
	if t == "" {
		return all
	}
	entries, err := os.ReadDir(t.folder())
	if err != nil {
		return all // none were made
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(t.folder(), e.Name()))
		var f TrustedFile
		if err == nil && json.Unmarshal(b, &f) == nil && f.Digest == e.Name() && t.has(f.Digest) {
			f.Current = false
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b TrustedFile) int { return strings.Compare(a.File, b.File) })
	return all
}

// remove takes back all notes about a file.
func (t trusting) remove(file string) (n int, err error) {
	for _, f := range t.list() {
		if f.File == file {
			err = errors.Join(err, os.Remove(filepath.Join(t.folder(), f.Digest)))
			n++
		}
	}
	return n, err
}
