package cli

import (
	"errors"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/retcon-dev/retcon"
)

// stateFolder is where what a user has decided is noted, "" when there is no
// place for it. A relative path would let the directory decide.
func (c *console) stateFolder() string {
	switch state := c.Getenv("XDG_STATE_HOME"); {
	case filepath.IsAbs(state):
		return filepath.Join(state, "retcon")
	case c.Home != "":
		return filepath.Join(c.Home, ".local", "state", "retcon")
	}
	return ""
}

// mineOnly are settings that a repository does not make: how long history is
// kept, and whether any is made.
var mineOnly = []string{"keep_tools", "budget", "disabled"}

// parseProject reads the configuration of a repository.
func parseProject(text []byte) (retcon.Config, error) {
	in, err := parseConfig(string(text))
	if err == nil {
		var any map[string]any
		if _, err := toml.Decode(string(text), &any); err != nil {
			return in, err
		}
		for _, key := range mineOnly {
			if _, ok := any[key]; ok {
				return in, &retcon.ProjectError{Line: lineOf(string(text), key), Reason: key + " is for you to set, with retcon config, not for a repository"}
			}
		}
		return in, nil
	}
	bad := &retcon.ProjectError{Reason: oneLine(err.Error())}
	if m := typeError(bad.Reason); m != nil {
		bad.Line, _ = strconv.Atoi(m[1]) // digits
		bad.Reason = m[2] + ": " + m[3]
	}
	var syntax toml.ParseError
	var unknown *noSetting
	var setting *retcon.ConfigError
	switch {
	case errors.As(err, &syntax):
		bad.Line, bad.Reason = syntax.Position.Line, oneLine(syntax.Message)
	case errors.As(err, &unknown):
		bad.Line = lineOf(string(text), unknown.key)
	case errors.As(err, &setting):
		bad.Line, bad.Reason = lineOf(string(text), setting.Key), setting.Key+": "+setting.Reason
		if setting.Key == "rule" {
			bad.Line = ruleLine(string(text), setting.Reason)
			bad.Reason = "rule " + setting.Reason
		}
	}
	return retcon.Config{}, bad
}

// typeError is what the parser says of a value of another kind, in its text alone.
func typeError(text string) []string {
	return regexp.MustCompile(`^toml: line ([0-9]+) \(last key "([^"]*)"\): (.*)$`).FindStringSubmatch(text)
}

// lineOf is the first line that sets a key, 0 when none is found: the parser
// does not tell.
func lineOf(text, key string) int {
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		key = key[i+1:]
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		for rest := line; ; {
			at := strings.Index(rest, key)
			if at < 0 {
				break
			}
			before, after := rest[:at], strings.TrimLeft(rest[at+len(key):], `"' `+"\t")
			if !strings.Contains(before, "#") && (strings.HasPrefix(after, "=") || strings.HasPrefix(after, "]") || strings.HasPrefix(after, ".")) {
				return n
			}
			rest = rest[at+len(key):]
		}
	}
	return 0
}

// ruleLine is where a rule begins that an error is about: it begins with its name,
// or its number.
func ruleLine(text, reason string) int {
	rule, _, _ := strings.Cut(reason, ":")
	number, _ := strconv.Atoi(rule) // 0: a name
	n, seen := 0, 0
	begin := 0
	for line := range strings.Lines(text) {
		n++
		head := strings.ReplaceAll(strings.TrimSpace(line), " ", "")
		if strings.HasPrefix(head, "[[rule]]") {
			seen++
			begin = n
			if seen == number {
				return n
			}
		}
		if key, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == "name" && number == 0 &&
			strings.Trim(strings.TrimSpace(value), `"'`) == rule {
			return begin
		}
	}
	return 0
}

// Who has made a setting.
const (
	fromUser    = "user"
	fromProject = "repository"
	fromNobody  = "default"
)

func (s setting) from(mine, project retcon.Config) string {
	switch {
	case !isZero(s.get(mine)):
		return fromUser
	case !isZero(s.get(project)):
		return fromProject
	}
	return fromNobody
}
