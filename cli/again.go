package cli

import (
	"slices"
	"strings"
)

// again is this command line with one more flag, as it can be pasted.
func (c *console) again(flag string) string {
	at := len(c.line)
	if i := slices.Index(c.line, "--"); i >= 0 {
		at = i
	}
	words := slices.Concat([]string{"retcon"}, c.line[:at], []string{flag}, c.line[at:])
	for i, w := range words {
		words[i] = quoted(w)
	}
	return strings.Join(words, " ")
}

// quoted is a word as a shell reads it back. A tilde is quoted: zsh takes ~start
// for the home of a user.
func quoted(word string) string {
	special := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_./=:@%+,-", r))
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
