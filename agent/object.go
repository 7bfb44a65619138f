package agent

import (
	"bytes"
	"encoding/json"
)

// object is a JSON object read leniently: a field that is missing, null or of
// another type is empty.
type object map[string]json.RawMessage

func parseObject(data []byte) (object, error) {
	var o object
	if err := json.Unmarshal(data, &o); err != nil || o == nil {
		return nil, ErrPayload
	}
	return o, nil
}

// str is the first of the fields that is a string with something in it.
func (o object) str(keys ...string) string {
	for _, k := range keys {
		var s string
		if json.Unmarshal(o[k], &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

func (o object) yes(key string) bool {
	var b bool
	return json.Unmarshal(o[key], &b) == nil && b
}

func (o object) number(key string) float64 {
	var n float64
	if json.Unmarshal(o[key], &n) != nil {
		return 0
	}
	return n
}

func (o object) sub(key string) object {
	s, err := parseObject(o[key])
	if err != nil {
		return object{}
	}
	return s
}

// list holds the elements of a field that is an array.
func (o object) list(key string) []json.RawMessage {
	var l []json.RawMessage
	if json.Unmarshal(o[key], &l) != nil {
		return nil
	}
	return l
}

func (o object) objects(key string) []object {
	var all []object
	for _, raw := range o.list(key) {
		if s, err := parseObject(raw); err == nil {
			all = append(all, s)
		}
	}
	return all
}

func (o object) strings(key string) []string {
	var all []string
	for _, raw := range o.list(key) {
		var s string
		if json.Unmarshal(raw, &s) == nil && s != "" {
			all = append(all, s)
		}
	}
	return all
}

// raw is the field as it is, nil when missing or null.
func (o object) raw(key string) json.RawMessage {
	if r := o[key]; len(r) > 0 && !bytes.Equal(r, []byte("null")) {
		return r
	}
	return nil
}

// paths are the files that the fields name.
func (o object) paths(keys ...string) []string {
	var all []string
	for _, k := range keys {
		if p := o.str(k); p != "" {
			all = append(all, p)
		}
	}
	return all
}
