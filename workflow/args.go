package workflow

import "github.com/retcon-dev/retcon/workflow/internal/value"

// substitute is v with an outcome in place of each handle, and with the whole
// of what was kept elsewhere.
func substitute(v value.V, out func(task string) value.V, blob func(value.Blob) value.V) value.V {
	switch v := v.(type) {
	case value.Ref:
		return out(v.Task)
	case value.Blob:
		return blob(v)
	case []value.V:
		list := make([]value.V, len(v))
		for i, item := range v {
			list[i] = substitute(item, out, blob)
		}
		return list
	case value.Dict:
		done := make(map[string]value.V, v.Len())
		for key, item := range v.All() {
			done[key] = substitute(item, out, blob)
		}
		return value.NewDict(done)
	}
	return v
}

// text is an argument that is a string, "" when it is not there.
func text(d value.Dict, key string) string {
	v, _ := d.Get(key)
	s, _ := v.(string)
	return s
}

func flag(d value.Dict, key string) bool {
	v, _ := d.Get(key)
	b, _ := v.(bool)
	return b
}

// shown is a value as text for a command or a prompt: a string as it is,
// anything else as JSON.
func shown(v value.V) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return string(value.JSON(v))
}
