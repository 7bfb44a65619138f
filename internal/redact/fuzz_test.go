package redact_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/retcon-dev/retcon/internal/redact"
)

// What a secret can't be found in, it has not been left in.
func FuzzText(f *testing.F) {
	for _, seed := range [][2]string{
		{"a hunter2 b", "hunter2"},
		{`{"password":{"a":1},"b":["hunter2",81726354]}`, "81726354"},
		{"{\"a\":1}\nTOKEN='x y' --token abc\n", `{"a":1}`},
		{`{"a":"x\u0022y","hunter2":0}`, `x"y`},
		{"x[redact]ed:ab[redacted]", "[redac"},
		{"Authorization: Bearer abcdef0123456789\nmysql -p'x y' -px", "mysql"},
		{"https://a:b@c/d?token=e&f", "://a"},
		{"-----BEGIN PRIVATE" + " KEY-----\nabcd\\nefgh-----END", "KEY-"},
		{`"a\\\"b":[0.5e3,-1]`, "500"},
		{`[5.00e2,"a","b"]`, `a","b`},
		{jwt + "\n" + github + " " + aws, "eyJh"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, secret string) {
		r := redact.New(secret)
		out, changed := r.Text(text)
		if changed != (out != text) {
			t.Errorf("changed is %v: %q to %q", changed, text, out)
		}
		if again, _ := r.Text(out); again != out {
			t.Errorf("twice: %q to %q to %q", text, out, again)
		}
		secret = strings.TrimSpace(secret)
		hidden := len(secret) >= 4 && !strings.Contains(`"[redacted]"`, secret)
		if hidden && strings.Contains(out, secret) {
			t.Errorf("%q is in %q", secret, out)
		}
		if !json.Valid([]byte(text)) {
			return
		}
		if hidden {
			strict(t, decode(t, out), secret)
		}
		redacted, _ := r.Value(decode(t, text))
		if hidden {
			strict(t, redacted, secret)
		}
	})
}

func decode(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// strict looks for the secret in every string and key.
func strict(t *testing.T, v any, secret string) {
	t.Helper()
	switch v := v.(type) {
	case string, json.Number:
		if strings.Contains(fmt.Sprint(v), secret) {
			t.Errorf("%q is in %q", secret, v)
		}
	case []any:
		for _, item := range v {
			strict(t, item, secret)
		}
	case map[string]any:
		for key, item := range v {
			strict(t, key, secret)
			strict(t, item, secret)
		}
	}
}
