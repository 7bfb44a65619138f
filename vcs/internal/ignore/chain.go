package ignore

// A Chain holds the rules in force inside one directory, for the names in
// that directory. It is immutable and safe for concurrent use.
type Chain struct {
	opts    Options
	parent  *Chain // nil at the root
	name    string // of the directory, "" at the root
	views   []view // in increasing priority
	verdict *Rule  // set inside an ignored directory: the rule that ignored it
}

// A view is one file of rules as seen from one directory at or below its own.
type view struct {
	file *file
	live []thread // anchored rules that may still match here or deeper
	here []int32  // those of them that may match a name of this directory, last line first
}

// Root returns the chain of the worktree's root directory. The sources come
// in increasing priority: core.excludesFile, then info/exclude. The root's
// own .gitignore, if there is one, is added with WithFile.
func Root(opts Options, sources ...Source) *Chain {
	c := &Chain{opts: opts}
	for _, s := range sources {
		c = c.with(s)
	}
	return c
}

// WithFile returns the chain of the same directory with the contents of its
// own .gitignore added, above all rules added before.
func (c *Chain) WithFile(gitignore []byte) *Chain {
	if c.verdict != nil || len(gitignore) == 0 {
		return c
	}
	return c.with(Source{Name: c.path() + ".gitignore", Data: gitignore})
}

func (c *Chain) with(s Source) *Chain {
	f := parseFile(s, c.opts.FoldCase)
	if len(f.rules) == 0 {
		return c
	}
	d := *c
	d.views = append(c.views[:len(c.views):len(c.views)], newView(f, f.start()))
	return &d
}

// Enter returns the chain of the child directory name, gitignore being the
// contents of the .gitignore in it, nil when there is none. The caller has
// asked Match and was not told Ignored. Enter with an empty name is WithFile.
func (c *Chain) Enter(name string, gitignore []byte) *Chain {
	if name == "" {
		return c.WithFile(gitignore)
	}
	d := &Chain{opts: c.opts, parent: c, name: name, views: c.views, verdict: c.verdict}
	if c.anyLive() {
		d.views = make([]view, len(c.views))
		folded := c.fold(name)
		for i, v := range c.views {
			d.views[i] = v.enter(folded)
		}
	}
	return d.WithFile(gitignore)
}

// EnterIgnored returns the chain of a child directory that is ignored, for a
// walker that has to reach tracked files in it. There and below everything
// is Ignored, and no .gitignore counts: git does not look for one either.
func (c *Chain) EnterIgnored(name string) *Chain {
	d := &Chain{opts: c.opts, parent: c, name: name, verdict: c.verdict}
	if d.verdict == nil {
		d.verdict = new(Rule)
		if decision, r := c.Explain(name, true); decision == Ignored {
			*d.verdict = r
		}
	}
	return d
}

// Match decides about one entry of the directory. A symbolic link is not a
// directory, wherever it points.
func (c *Chain) Match(name string, isDir bool) Decision {
	if c.verdict != nil {
		return Ignored
	}
	_, r := c.find(name, isDir)
	return r.decision()
}

// Explain is Match, with the rule that decided. Inside an ignored directory
// that is the rule which ignored the directory.
func (c *Chain) Explain(name string, isDir bool) (Decision, Rule) {
	if c.verdict != nil {
		return Ignored, *c.verdict
	}
	f, r := c.find(name, isDir)
	if r == nil {
		return None, Rule{}
	}
	return r.decision(), Rule{Source: f.name, Line: r.line, Pattern: r.text}
}

// find returns the rule that decides, nil when there is none: the last line
// that matches in the file of highest priority that has one.
func (c *Chain) find(name string, isDir bool) (*file, *rule) {
	name = c.fold(name)
	for i := len(c.views) - 1; i >= 0; i-- {
		f := c.views[i].file
		if n := c.views[i].last(name, isDir); n >= 0 {
			return f, &f.rules[n]
		}
	}
	return nil, nil
}

func (c *Chain) anyLive() bool {
	for i := range c.views {
		if len(c.views[i].live) > 0 {
			return true
		}
	}
	return false
}

// path is the directory's path from the root, "" or ending in a slash.
func (c *Chain) path() string {
	if c.parent == nil {
		return ""
	}
	return c.parent.path() + c.name + "/"
}

func (c *Chain) fold(name string) string {
	if c.opts.FoldCase {
		return fold(name)
	}
	return name
}

func newView(f *file, live []thread) view {
	v := view{file: f, live: live}
	for i := len(live) - 1; i >= 0; i-- {
		if t := live[i]; f.rules[t.rule].pattern.final(t.pos) {
			v.here = append(v.here, t.rule)
		}
	}
	return v
}

func (v view) enter(name string) view {
	if len(v.live) == 0 {
		return v
	}
	var live []thread
	for _, t := range v.live {
		live = v.file.rules[t.rule].pattern.step(live, t, name)
	}
	return newView(v.file, live)
}

// last returns the index of the last rule of the file that matches, or -1.
func (v view) last(name string, isDir bool) int32 {
	best := v.file.lastAnywhere(name, isDir)
	for _, n := range v.here {
		if n <= best {
			break
		}
		if v.file.rules[n].pattern.matchHere(name, isDir) {
			return n
		}
	}
	return best
}
