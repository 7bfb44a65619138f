package repo

import (
	"slices"
	"strconv"
	"strings"
)

// Config is git configuration merged from all files that apply, later ones
// winning. It cannot be written.
//
// Keys are written as git writes them: "core.ignoreCase",
// "branch.Topic.merge". Section and name are matched without regard to case,
// what stands between them exactly. A nil Config is empty.
type Config struct {
	settings []setting
}

// setting is one line of a configuration file.
type setting struct {
	key   string // canonical
	value string
	bare  bool   // without "=", which git takes for true
	dir   string // of the file it stands in
}

// Get returns the last value of key. A key without "=" has the value "".
func (c *Config) Get(key string) (value string, ok bool) {
	s, ok := c.find(key)
	return s.value, ok
}

// All returns every value of key, in the order of the files.
func (c *Config) All(key string) []string {
	if c == nil {
		return nil
	}
	key = canonical(key)
	var values []string
	for _, s := range c.settings {
		if s.key == key {
			values = append(values, s.value)
		}
	}
	return values
}

// Bool returns the last value of key as a boolean. It is not ok when the key
// is absent or its value is no boolean.
func (c *Config) Bool(key string) (value, ok bool) {
	s, found := c.find(key)
	if !found {
		return false, false
	}
	return s.bool()
}

func (c *Config) find(key string) (setting, bool) {
	if c == nil {
		return setting{}, false
	}
	key = canonical(key)
	for _, s := range slices.Backward(c.settings) {
		if s.key == key {
			return s, true
		}
	}
	return setting{}, false
}

func (s setting) bool() (value, ok bool) {
	if s.bare {
		return true, true
	}
	switch strings.ToLower(s.value) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off", "":
		return false, true
	}
	n, ok := parseInt(s.value)
	return n != 0, ok
}

// parseInt reads a number with git's optional unit.
func parseInt(s string) (int64, bool) {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	unit := int64(1)
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			unit = 1 << 10
		case 'm', 'M':
			unit = 1 << 20
		case 'g', 'G':
			unit = 1 << 30
		}
	}
	if unit != 1 {
		s = s[:len(s)-1]
	}
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil || strings.Contains(s, "_") || n > 1<<31 || n < -1<<31 {
		return 0, false
	}
	return n * unit, true
}

// canonical lowers the parts of a key that are matched without case.
func canonical(key string) string {
	first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first < 0 {
		return lower(key)
	}
	return lower(key[:first]) + key[first:last] + lower(key[last:])
}

// lower folds ASCII only: keys are bytes.
func lower(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return 'A' <= r && r <= 'Z' }) {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
