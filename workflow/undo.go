package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

// compensation reads undo= where it is data: a line for the shell, a list of
// words, or a dict with a request. It is stored with the effect, so that what is
// edited later does not take it away.
func (d *declaring) compensation(v starlark.Value) (c sideeffect.Compensation, err error) {
	got, err := d.data("undo", v)
	if err != nil {
		return c, err
	}
	const hint = `undo="tracker close {{.out}}", or ["tracker", "close", "{{.out}}"], or {"method": "DELETE", "url": "https://…/{{.output.id}}"}`
	if len(value.Refs(got)) > 0 {
		return c, &BodyError{Message: "undo: it is stored before there is an outcome, and can't be given one", Hint: hint}
	}
	switch got := got.(type) {
	case string:
		c.Shell, err = script(got)
	case []value.V:
		for _, word := range got {
			c.Command = append(c.Command, shown(word))
		}
	case value.Dict:
		c, err = compensationOf(got)
	default:
		err = fmt.Errorf("a line for the shell, a list of words, a dict with a request, or a function of the task's value")
	}
	if err == nil && c.IsZero() {
		err = fmt.Errorf("it does nothing")
	}
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return c, &BodyError{Message: "undo: " + strings.TrimPrefix(err.Error(), "compensation: "), Hint: hint}
	}
	return c, nil
}

// compensationOf reads a dict: a request if it has a url, otherwise a
// compensation as JSON has it.
func compensationOf(d value.Dict) (c sideeffect.Compensation, err error) {
	b := value.JSON(d)
	if _, ok := d.Get("url"); !ok {
		return c, json.Unmarshal(b, &c)
	}
	c.HTTP = &sideeffect.Request{Method: "POST"}
	strict := json.NewDecoder(bytes.NewReader(b))
	strict.DisallowUnknownFields()
	strict.UseNumber()
	return c, strict.Decode(c.HTTP)
}

// script takes the placeholders out of a line for the shell: a value is never
// part of the text. Where it stands in quotes, those are closed around it.
func script(line string) (*sideeffect.Script, error) {
	s := &sideeffect.Script{}
	var text strings.Builder
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		if strings.HasPrefix(line[i:], "{{") {
			end := strings.Index(line[i:], "}}")
			if end < 0 {
				return nil, fmt.Errorf("%q: a placeholder does not end", line)
			}
			s.Args = append(s.Args, line[i:i+end+2])
			fmt.Fprintf(&text, map[byte]string{0: `"${%d}"`, '"': `${%d}`, '\'': `'"${%d}"'`}[quote], len(s.Args))
			i += end + 1
			continue
		}
		c := line[i]
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(line):
			text.WriteByte(c)
			i++
			c = line[i]
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		}
		text.WriteByte(c)
	}
	s.Text = text.String()
	return s, nil
}
