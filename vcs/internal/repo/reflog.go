package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// reflogEntry is one line of a reflog.
type reflogEntry struct {
	old, new string // hex; "" when there was none
	who      Ident
	when     time.Time
	message  string
}

// appendReflog adds an entry to the log of name, and creates the log where
// core.logAllRefUpdates would have git create it.
func (r *Repo) appendReflog(name string, entry reflogEntry) error {
	dir := r.refDir(name)
	path := filepath.Join(dir, "logs", name)
	flags := os.O_WRONLY | os.O_APPEND
	if r.logsNew(name) {
		flags |= os.O_CREATE
		if err := makeDirs(dir, filepath.Dir(path), r.Settings); err != nil {
			return fmt.Errorf("reflog of %s: %w", name, err)
		}
		if isDir(path) {
			removeEmptyDirs(path) // when it stays, opening fails
		}
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if errors.Is(err, fs.ErrNotExist) && flags&os.O_CREATE == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reflog of %s: %w", name, err)
	}
	_, err = f.WriteString(entry.line()) // one call: appends do not mix
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("reflog of %s: %w", name, err)
	}
	return nil
}

// logsNew reports whether a ref without a log gets one.
func (r *Repo) logsNew(name string) bool {
	switch r.Settings.LogRefUpdates {
	case "always":
		return true
	case "false":
		return false
	}
	return name == "HEAD" || strings.HasPrefix(name, "refs/heads/") ||
		strings.HasPrefix(name, "refs/remotes/") || strings.HasPrefix(name, "refs/notes/")
}

func (e reflogEntry) line() string {
	line := fmt.Sprintf("%s %s %s <%s> %d %s", idOrZero(e.old), idOrZero(e.new),
		cleanIdent(e.who.Name), cleanIdent(e.who.Email), e.when.Unix(), e.when.Format("-0700"))
	if message := strings.Join(strings.Fields(e.message), " "); message != "" {
		line += "\t" + message
	}
	return line + "\n"
}

func idOrZero(id string) string {
	if id == "" {
		return strings.Repeat("0", 40)
	}
	return id
}

// cleanIdent drops what would end the field early.
func cleanIdent(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < 0x20 || c == '<' || c == '>' {
			return -1
		}
		return c
	}, s)
	return strings.Trim(s, " .,:;\"'\\")
}
