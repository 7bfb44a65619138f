package value

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Error says which part of something can't be a value, or can't become what
// was asked for. Path is like args.env["a.b"][3], and "" for the whole.
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Err.Error()
	}
	return cut(e.Path) + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// In says that err happened in the part of a whole that is called name: an
// argument, say. Other errors than *Error become one.
func In(name string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return &Error{Path: join(name, e.Path), Err: e.Err}
	}
	return &Error{Path: name, Err: err}
}

func inKey(key string, err error) error { return In(step(key), err) }
func inItem(i int, err error) error     { return In(index(i), err) }

// problem is an *Error about the whole.
func problem(format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...)}
}

// join appends a path to what it starts from.
func join(base, path string) string {
	switch {
	case base == "" || path == "":
		return base + path
	case path[0] == '[':
		return base + path
	}
	return base + "." + path
}

// step is a key as a path.
func step(key string) string {
	if !plain(key) {
		return "[" + quote(key) + "]"
	}
	return key
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// plain reports whether a key can stand in a path as it is.
func plain(key string) bool {
	for i, r := range key {
		switch {
		case r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
		case i > 0 && (r == '-' || r == '$' || '0' <= r && r <= '9'):
		default:
			return false
		}
	}
	return key != ""
}

func quote(s string) string { return strconv.Quote(s) }

// goodKey refuses a key that is not text: no JSON could show it.
func goodKey(key string) error {
	if !utf8.ValidString(key) {
		return problem("the key %s is not UTF-8 text", quote(key))
	}
	return nil
}

// deepest is how far what comes from outside may be nested. What is deeper is
// likely to contain itself.
const deepest = 500

var errDeep = errors.New("nested too deeply, or contains itself")

func tooDeep(depth int) error {
	if depth > deepest {
		return &Error{Err: errDeep}
	}
	return nil
}
