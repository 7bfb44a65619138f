package repo

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// Settings are the configuration keys that decide how a worktree is read and
// written, with git's defaults where nothing is configured.
type Settings struct {
	IgnoreCase bool // core.ignoreCase
	FileMode   bool // core.fileMode: the executable bit means something
	Symlinks   bool // core.symlinks

	// Absolute paths, whether or not there is such a file; "" when there is
	// nowhere to look.
	ExcludesFile   string // core.excludesFile
	AttributesFile string // core.attributesFile

	AutoCRLF string // core.autocrlf: "true", "input" or "false"
	EOL      string // core.eol: "lf", "crlf" or "native"

	SparseCheckout     bool // core.sparseCheckout
	SparseCheckoutCone bool // core.sparseCheckoutCone

	// SharedRepository is core.sharedRepository as git spells it: "umask",
	// "group", "all", or an octal mode.
	SharedRepository string

	SkipHash      bool   // index.skipHash: the index ends in zeros
	UserName      string // user.name
	UserEmail     string // user.email
	LogRefUpdates string // core.logAllRefUpdates: "true", "false" or "always"
}

func (r *Repo) settings() Settings {
	c := r.Config
	return Settings{
		IgnoreCase:         c.boolOr("core.ignorecase", false),
		FileMode:           c.boolOr("core.filemode", true),
		Symlinks:           c.boolOr("core.symlinks", true),
		ExcludesFile:       r.userFile("core.excludesfile", "ignore"),
		AttributesFile:     r.userFile("core.attributesfile", "attributes"),
		AutoCRLF:           c.boolOrWord("core.autocrlf", "input", "false"),
		EOL:                c.eol(),
		SparseCheckout:     c.boolOr("core.sparsecheckout", false),
		SparseCheckoutCone: c.boolOr("core.sparsecheckoutcone", true),
		SharedRepository:   c.shared(),
		SkipHash:           c.boolOr("index.skiphash", c.boolOr("feature.manyfiles", false)),
		UserName:           c.text("user.name"),
		UserEmail:          c.text("user.email"),
		LogRefUpdates:      c.boolOrWord("core.logallrefupdates", "always", "true"),
	}
}

// ExcludeFile is the path of the repository's own info/exclude.
func (r *Repo) ExcludeFile() string { return filepath.Join(r.CommonDir, "info", "exclude") }

// AttributesFile is the path of the repository's own info/attributes, which
// has the last word over every .gitattributes.
func (r *Repo) AttributesFile() string { return filepath.Join(r.CommonDir, "info", "attributes") }

// userFile resolves a configured path; without one it is the named file in
// the user's git folder.
func (r *Repo) userFile(key, name string) string {
	s, ok := r.Config.find(key)
	if ok && !s.bare {
		value := strings.TrimPrefix(s.value, ":(optional)")
		if value == "" {
			return ""
		}
		path, err := expandHome(value, r.opts.Home)
		if err != nil {
			r.Warnings = append(r.Warnings, Warning{File: s.dir, Reason: key + ": " + err.Error()})
			return ""
		}
		return filepath.Clean(within(r.Root, path))
	}
	if xdg := r.opts.xdg(); xdg != "" {
		return filepath.Join(xdg, "git", name)
	}
	return ""
}

func (c *Config) text(key string) string {
	s, _ := c.Get(key)
	return s
}

func (c *Config) boolOr(key string, otherwise bool) bool {
	if value, ok := c.Bool(key); ok {
		return value
	}
	return otherwise
}

// boolOrWord returns "true", "false" or, when that is the value, word.
func (c *Config) boolOrWord(key, word, otherwise string) string {
	if s, ok := c.Get(key); ok && strings.EqualFold(s, word) {
		return word
	}
	if value, ok := c.Bool(key); ok {
		return strconv.FormatBool(value)
	}
	return otherwise
}

func (c *Config) eol() string {
	switch s := strings.ToLower(c.text("core.eol")); s {
	case "lf", "crlf":
		return s
	}
	return "native"
}

func (c *Config) shared() string {
	s, ok := c.find("core.sharedrepository")
	if !ok {
		return "umask"
	}
	switch {
	case s.bare:
		return "group"
	case s.value == "umask", s.value == "group", s.value == "all":
		return s.value
	case s.value == "world", s.value == "everybody":
		return "all"
	}
	switch n, err := strconv.ParseUint(s.value, 8, 32); {
	case err != nil:
		if yes, _ := s.bool(); yes { // no boolean, git's default
			return "group"
		}
		return "umask"
	case n == 0:
		return "umask"
	case n == 1:
		return "group"
	case n == 2:
		return "all"
	case n&0o600 != 0o600:
		return "umask"
	default:
		return "0" + strconv.FormatUint(n&0o666, 8)
	}
}

// sharedMode applies core.sharedRepository to the mode of something written
// into the git directory, which the umask has already had its way with.
func (s Settings) sharedMode(mode fs.FileMode) fs.FileMode {
	var tweak fs.FileMode
	replace := false
	switch s.SharedRepository {
	case "umask", "":
		return mode
	case "group":
		tweak = 0o660
	case "all":
		tweak = 0o664
	default:
		n, err := strconv.ParseUint(s.SharedRepository, 8, 32)
		if err != nil {
			return mode
		}
		tweak, replace = fs.FileMode(n), true
	}
	if mode&0o200 == 0 {
		tweak &^= 0o222
	}
	if mode&0o100 != 0 || mode.IsDir() {
		tweak |= (tweak & 0o444) >> 2
	}
	if replace {
		return mode&^0o777 | tweak
	}
	return mode | tweak
}
