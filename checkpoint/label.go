package checkpoint

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LabelSyntaxError refuses a label that could not be told from another kind of
// reference, or not be typed.
type LabelSyntaxError struct {
	Label, Reason string
}

func (e *LabelSyntaxError) Error() string {
	return fmt.Sprintf("%q can't be a label: %s", e.Label, e.Reason)
}

// CheckLabel refuses, with a *LabelSyntaxError, what can't be a label.
func CheckLabel(label string) error {
	no := func(reason string) error { return &LabelSyntaxError{Label: label, Reason: reason} }
	switch {
	case label == "":
		return no("it is empty")
	case len(label) > 200:
		return no("it is longer than 200 bytes")
	case !utf8.ValidString(label):
		return no("it is not UTF-8")
	case strings.ContainsFunc(label, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return no("it holds a space or control character")
	case strings.ContainsAny(label, "@~"):
		return no("it holds a character that references are made with")
	case label[0] == '-':
		return no("it begins like a flag")
	case label == "last", label == "now":
		return no("the word has a meaning of its own")
	case numbered(label, 'c'), numbered(label, 'r'):
		return no("it reads like a number of retcon's")
	}
	return nil
}

// numbered tells a letter with nothing but digits behind it.
func numbered(s string, letter byte) bool {
	return len(s) > 1 && s[0] == letter && strings.Trim(s[1:], "0123456789") == ""
}
