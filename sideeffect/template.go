package sideeffect

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A template is text with places for values: "{{.name}}". A value goes in as it
// is; nothing in it is looked at again.

var placeholder = pattern(`\{\{\.([A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)\}\}`)

// pattern is a regular expression that is compiled when it is first used: most
// commands of the program recognise nothing, and should not wait for it.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// checkTemplate finds braces that are no placeholder.
func checkTemplate(s string) error {
	if rest := placeholder().ReplaceAllString(s, ""); strings.Contains(rest, "{{") || strings.Contains(rest, "}}") {
		return fmt.Errorf("%q: a placeholder is written {{.name}}", s)
	}
	if strings.ContainsRune(s, 0) {
		return fmt.Errorf("%q holds a NUL", s)
	}
	return nil
}

// names are the placeholders of a template.
func names(s string) (found []string) {
	for _, m := range placeholder().FindAllStringSubmatch(s, -1) {
		found = append(found, m[1])
	}
	return found
}

// A filling puts values into templates and remembers what was missing.
type filling struct {
	value   func(name string) (string, bool)
	missing []string
	wrong   error
}

// text fills one template; each value passes through mend first, if there is one.
func (f *filling) text(s string, mend func(value string, before string) (string, error)) string {
	var b strings.Builder
	end := 0
	for _, at := range placeholder().FindAllStringSubmatchIndex(s, -1) {
		b.WriteString(s[end:at[0]])
		end = at[1]
		name := s[at[2]:at[3]]
		v, ok := f.value(name)
		if !ok {
			f.lack(name)
			continue
		}
		if mend != nil {
			var err error
			if v, err = mend(v, s[:at[0]]); err != nil {
				f.fail(fmt.Errorf("value of %s: %w", name, err))
			}
		}
		b.WriteString(v)
	}
	b.WriteString(s[end:])
	return b.String()
}

// tree fills the strings inside a JSON value.
func (f *filling) tree(v any) any {
	switch v := v.(type) {
	case string:
		return f.text(v, nil)
	case []any:
		filled := make([]any, len(v))
		for i := range v {
			filled[i] = f.tree(v[i])
		}
		return filled
	case []map[string]any:
		filled := make([]any, len(v))
		for i := range v {
			filled[i] = f.tree(v[i])
		}
		return filled
	case map[string]any:
		filled := make(map[string]any, len(v))
		for k := range v {
			filled[k] = f.tree(v[k])
		}
		return filled
	}
	return v
}

func (f *filling) lack(name string) {
	if !slices.Contains(f.missing, name) {
		f.missing = append(f.missing, name)
	}
}

func (f *filling) fail(err error) {
	if f.wrong == nil {
		f.wrong = err
	}
}

// mendArg refuses what would be cut off.
func mendArg(v, _ string) (string, error) {
	if strings.ContainsRune(v, 0) {
		return "", errors.New("it holds a NUL")
	}
	return v, nil
}

// value looks a placeholder up: a field, a part of args or output, or what every
// effect has.
func (e Effect) value(name string) (string, bool) {
	if v, ok := e.Fields[name]; ok {
		return v, true
	}
	first, rest, _ := strings.Cut(name, ".")
	switch first {
	case "args":
		return lookup(string(e.Args), rest)
	case "output":
		if rest != "" {
			return lookupOutput(e.Output, rest)
		}
		v := strings.TrimSpace(e.Output)
		return v, v != "" && !strings.Contains(v, "\n")
	}
	fixed := map[string]string{"key": e.Key, "tool": e.Tool, "command": e.Command}
	v, ok := fixed[name]
	return v, ok && v != ""
}

// lookupOutput looks into an answer of a tool, and into the envelope that an
// MCP server puts around its own.
func lookupOutput(output, path string) (string, bool) {
	if v, ok := lookup(output, path); ok {
		return v, true
	}
	if v, ok := lookup(output, "structuredContent."+path); ok {
		return v, true
	}
	if _, several := lookup(output, "content.1.type"); several {
		return "", false // which of them would be a guess
	}
	text, _ := lookup(output, "content.0.text")
	return lookup(text, path)
}

// lookup finds a string, number or boolean in a JSON document.
func lookup(document, path string) (string, bool) {
	d := json.NewDecoder(strings.NewReader(document))
	d.UseNumber()
	var at any
	if d.Decode(&at) != nil || d.More() {
		return "", false
	}
	for step := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			i, ok := index(step, len(v))
			if !ok {
				return "", false
			}
			at = v[i]
		default:
			return "", false
		}
	}
	switch v := at.(type) {
	case string:
		return v, v != ""
	case json.Number:
		return v.String(), true
	case bool:
		return fmt.Sprint(v), true
	}
	return "", false
}

func index(s string, n int) (int, bool) {
	i := 0
	for _, c := range s {
		if c < '0' || c > '9' || i >= n {
			return 0, false
		}
		i = i*10 + int(c-'0')
	}
	return i, s != "" && i < n
}
