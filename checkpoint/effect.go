package checkpoint

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/retcon-dev/retcon/internal/redact"
	"github.com/retcon-dev/retcon/sideeffect"
)

// effectMax is how much is kept of what a tool was given, and of what it
// answered. What is longer is left out: a part of it would be no JSON.
const effectMax = 64 << 10

// RedactEffect takes the secrets out of an effect, to be stored. What is left
// can be used to undo it or is missing: a marker is no value. A field that held
// a secret is gone.
func RedactEffect(r *redact.Redactor, e sideeffect.Effect) sideeffect.Effect {
	e.Command, _ = r.Text(e.Command)
	e.Output = hidden(r, e.Output)
	e.Args = json.RawMessage(hidden(r, string(e.Args)))
	if len(e.Args) == 0 || !json.Valid(e.Args) {
		e.Args = nil
	}
	fields := make(map[string]string, len(e.Fields))
	for name, value := range e.Fields {
		if _, secret := r.Text(name + "=" + value); !secret && len(value) <= effectMax {
			fields[name] = value
		}
	}
	e.Fields = fields
	return e
}

// hidden is a document without its secrets. Text that holds one is left out:
// what stands around it may be part of it.
func hidden(r *redact.Redactor, s string) string {
	if len(s) > effectMax {
		return ""
	}
	clean, changed := r.Text(s)
	if !changed {
		return s
	}
	d := json.NewDecoder(strings.NewReader(clean))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return ""
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(without(v)) != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

// without puts nothing in the place of what was redacted.
func without(v any) any {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, "[redacted") {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = without(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = without(v[k])
		}
	}
	return v
}
