package repo

import (
	"fmt"
	"path/filepath"
	"strings"
)

// format is what the repository says about its own layout. Only its own
// config file may say it: neither includes nor the user's configuration count.
type format struct {
	version  int64
	bare     bool
	worktree string // core.worktree

	objectFormat    string
	refStorage      string
	worktreeConfig  bool
	unknown         []string // extensions
	partialClone    string
	preciousObjects bool
	compatObjects   string
}

// Extensions as the repository declares them. They are facts for a report;
// what they mean for us is answered by [Repo.FilesOnly].
type Extensions struct {
	ObjectFormat       string // "sha1" unless said otherwise
	RefStorage         string // "files" unless said otherwise
	CompatObjectFormat string
	PartialClone       string // name of the promisor remote: objects may be missing
	WorktreeConfig     bool
	PreciousObjects    bool
	RelativeWorktrees  bool
}

// readFormat reads the repository's own config, and the worktree's where that
// is in use. core.bare and core.worktree of the shared file speak of the main
// worktree alone, unless worktrees have files of their own to say otherwise.
func (r *Repo) readFormat() {
	r.format = format{objectFormat: "sha1", refStorage: "files"}
	own := r.ownConfig(filepath.Join(r.CommonDir, "config"))
	r.format.version = own.int("core.repositoryformatversion")
	r.format.readExtensions(own)
	if r.Linked && !r.format.worktreeConfig {
		return
	}
	if r.format.worktreeConfig {
		perWorktree := r.ownConfig(filepath.Join(r.GitDir, "config.worktree"))
		own = &Config{settings: append(own.settings, perWorktree.settings...)}
	}
	r.format.bare, _ = own.Bool("core.bare") // no boolean, not bare
	r.format.worktree, _ = own.Get("core.worktree")
}

// ownConfig reads one file without includes and without warnings, which
// readConfig gives for the same file.
func (r *Repo) ownConfig(path string) *Config {
	data, err := readRegular(path, maxConfigFile)
	if err != nil {
		return &Config{}
	}
	c := &Config{}
	parseConfig(data, func(_ int, key, value string, bare bool) {
		c.settings = append(c.settings, setting{key: key, value: value, bare: bare})
	}, func(int, string) {})
	return c
}

func (c *Config) int(key string) int64 {
	s, _ := c.Get(key)
	n, _ := parseInt(s) // no number, the default
	return n
}

func (f *format) readExtensions(c *Config) {
	for _, s := range c.settings {
		name, ok := strings.CutPrefix(s.key, "extensions.")
		if !ok {
			continue
		}
		switch name {
		case "objectformat":
			f.objectFormat = strings.ToLower(s.value)
		case "refstorage":
			f.refStorage = strings.ToLower(s.value)
		case "compatobjectformat":
			f.compatObjects = s.value
		case "partialclone":
			f.partialClone = s.value
		case "worktreeconfig":
			f.worktreeConfig, _ = s.bool() // no boolean, not set
		case "preciousobjects":
			f.preciousObjects, _ = s.bool() // no boolean, not set
		case "noop", "noop-v1", "relativeworktrees", "submodulepathconfig":
			// Harmless: nothing we read or write changes its form.
		default:
			f.unknown = append(f.unknown, name)
		}
	}
}

// FilesOnly reports whether this package must leave the repository's objects,
// refs and index alone because it cannot be sure to understand them, and why.
// The worktree can be captured all the same; HEAD is then unknown, or a
// matter of record only.
func (r *Repo) FilesOnly() (reason string, yes bool) {
	f := r.format
	switch {
	case f.version > 1:
		return fmt.Sprintf("repository format version %d", f.version), true
	case f.objectFormat != "sha1":
		return "object format " + f.objectFormat, true
	case f.refStorage != "files":
		return "ref storage " + f.refStorage, true
	case f.version == 1 && len(f.unknown) > 0:
		return "unknown extension " + strings.Join(f.unknown, ", "), true
	}
	return "", false
}

// Extensions returns what the repository declares.
func (r *Repo) Extensions() Extensions {
	relative, _ := r.Config.Bool("extensions.relativeWorktrees") // absent is false
	return Extensions{
		ObjectFormat:       r.format.objectFormat,
		RefStorage:         r.format.refStorage,
		CompatObjectFormat: r.format.compatObjects,
		PartialClone:       r.format.partialClone,
		WorktreeConfig:     r.format.worktreeConfig,
		PreciousObjects:    r.format.preciousObjects,
		RelativeWorktrees:  relative,
	}
}
