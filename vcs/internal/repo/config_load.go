package repo

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/retcon-dev/retcon/vcs/internal/ignore"
)

const (
	maxConfigFile  = 64 << 20
	maxConfigDepth = 10 // of includes, as in git
)

// configLoader merges configuration files, following includes.
type configLoader struct {
	home   string
	gitDir string
	branch string // checked out, short; "" when unknown

	settings []setting
	warnings []Warning

	// remotes are the URLs that hasconfig conditions ask about. They are
	// known only when everything else has been read, so the first pass
	// notes that somebody asked.
	remotes []string
	known   bool
	asked   bool
}

// readConfig fills Config and Settings from every file that applies.
func (r *Repo) readConfig() {
	load := func(remotes []string, known bool) *configLoader {
		l := &configLoader{home: r.opts.Home, gitDir: r.GitDir, remotes: remotes, known: known}
		if head, err := r.Head(); err == nil {
			l.branch = strings.TrimPrefix(head.Ref, "refs/heads/")
		}
		for _, path := range r.configFiles() {
			l.file(path, 0)
		}
		return l
	}
	l := load(nil, false)
	if l.asked {
		l = load(remoteURLs(l.settings), true)
	}
	r.Config = &Config{settings: l.settings}
	r.Warnings = append(r.Warnings, l.warnings...)
	r.Settings = r.settings()
}

// configFiles lists the files that apply, in increasing priority.
func (r *Repo) configFiles() []string {
	var files []string
	if r.opts.SystemConfig != "" {
		files = append(files, r.opts.SystemConfig)
	}
	if xdg := r.opts.xdg(); xdg != "" {
		files = append(files, filepath.Join(xdg, "git", "config"))
	}
	if r.opts.Home != "" {
		files = append(files, filepath.Join(r.opts.Home, ".gitconfig"))
	}
	files = append(files, filepath.Join(r.CommonDir, "config"))
	if r.format.worktreeConfig {
		files = append(files, filepath.Join(r.GitDir, "config.worktree"))
	}
	return files
}

func (o Options) xdg() string {
	if o.XDGConfigHome == "" && o.Home != "" {
		return filepath.Join(o.Home, ".config")
	}
	return o.XDGConfigHome
}

func remoteURLs(settings []setting) []string {
	var urls []string
	for _, s := range settings {
		if strings.HasPrefix(s.key, "remote.") && strings.HasSuffix(s.key, ".url") {
			urls = append(urls, s.value)
		}
	}
	return urls
}

// file adds one file's settings. A missing file is an empty one.
func (l *configLoader) file(path string, depth int) {
	data, err := readRegular(path, maxConfigFile)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			l.warn(path, 0, err.Error())
		}
		return
	}
	dir := filepath.Dir(path)
	set := func(line int, key, value string, bare bool) {
		l.settings = append(l.settings, setting{key: key, value: value, bare: bare, dir: dir})
		condition, isInclude := includeCondition(key)
		if !isInclude || bare || !l.holds(condition, path, line) {
			return
		}
		target, err := expandHome(value, l.home)
		switch {
		case err != nil:
			l.warn(path, line, err.Error())
		case depth >= maxConfigDepth:
			l.warn(path, line, "includes nested too deep")
		default:
			l.file(within(dir, target), depth+1)
		}
	}
	parseConfig(data, set, func(line int, reason string) { l.warn(path, line, reason) })
}

func (l *configLoader) warn(path string, line int, reason string) {
	l.warnings = append(l.warnings, Warning{File: path, Line: line, Reason: reason})
}

// includeCondition returns what stands between includeIf and path; "" for a
// plain include.
func includeCondition(key string) (condition string, isInclude bool) {
	if key == "include.path" {
		return "", true
	}
	condition, ok := strings.CutPrefix(key, "includeif.")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(condition, ".path")
}

// holds decides a condition. One that this package does not know is false, as
// in git.
func (l *configLoader) holds(condition, path string, line int) bool {
	kind, pattern, _ := strings.Cut(condition, ":")
	switch kind {
	case "":
		return true
	case "gitdir":
		return l.inGitDir(pattern, path, line, false)
	case "gitdir/i":
		return l.inGitDir(pattern, path, line, true)
	case "onbranch":
		return l.branch != "" && matchGlob(openEnded(pattern), l.branch, false)
	case "hasconfig":
		if glob, ok := strings.CutPrefix(pattern, "remote.*.url:"); ok {
			l.asked = true
			return l.known && l.hasRemote(glob)
		}
	}
	return false
}

func (l *configLoader) inGitDir(pattern, path string, line int, fold bool) bool {
	pattern, err := expandHome(pattern, l.home)
	if err != nil {
		l.warn(path, line, err.Error())
		return false
	}
	prefix := ""
	if rest, ok := strings.CutPrefix(pattern, "./"); ok {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			l.warn(path, line, err.Error())
			return false
		}
		// What the file's own place adds is text, not a pattern.
		prefix, pattern = filepath.Dir(real)+"/", rest
	} else if !filepath.IsAbs(pattern) {
		pattern = "**/" + pattern
	}
	text := l.gitDir
	if len(text) < len(prefix) || text[:len(prefix)] != prefix && !(fold && lower(text[:len(prefix)]) == lower(prefix)) {
		return false
	}
	return matchGlob(openEnded(pattern), text[len(prefix):], fold)
}

func (l *configLoader) hasRemote(pattern string) bool {
	for _, url := range l.remotes {
		if matchGlob(pattern, url, false) {
			return true
		}
	}
	return false
}

// matchGlob matches the whole of text. Ignore patterns have the same grammar
// once they are anchored.
func matchGlob(pattern, text string, fold bool) bool {
	if strings.HasPrefix(pattern, "/") && !strings.HasPrefix(text, "/") {
		return false
	}
	anchored := ignore.Compile("/"+strings.TrimPrefix(pattern, "/"), fold)
	return anchored.MatchPath(strings.TrimPrefix(text, "/"), true)
}

// openEnded lets "dir/" mean everything below it.
func openEnded(pattern string) string {
	if strings.HasSuffix(pattern, "/") {
		return pattern + "**"
	}
	return pattern
}

// expandHome resolves a leading ~ in a configured path. Other people's homes
// and git's own installation prefix are not ours to know.
func expandHome(path, home string) (string, error) {
	switch {
	case path == "~" || strings.HasPrefix(path, "~/"):
		if home == "" {
			return "", errors.New("no home directory to expand " + path)
		}
		return home + path[1:], nil
	case strings.HasPrefix(path, "~"), strings.HasPrefix(path, "%(prefix)/"):
		return "", errors.New("cannot expand " + path)
	}
	return path, nil
}
