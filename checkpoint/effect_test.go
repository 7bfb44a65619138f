package checkpoint_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/internal/redact"
	"github.com/retcon-dev/retcon/sideeffect"
)

func TestRedactEffect(t *testing.T) {
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	in := sideeffect.Effect{Tool: "sh", Command: "mail --token " + secret + " bob", Args: json.RawMessage(`{"to": "bob", "password": "hunter22"}`),
		Output: `{"id": 12345678901234567, "key": "` + secret + `", "all": ["a", "` + secret + `"]}`,
		Fields: map[string]string{"id": "7", "token": secret, "api_key": "short"}}
	got := checkpoint.RedactEffect(redact.New(), in)
	assert.Equal(t, "mail --token [redacted] bob", strings.ReplaceAll(got.Command, "[redacted:github-token]", "[redacted]"))
	assert.JSONEq(t, `{"to": "bob", "password": null}`, string(got.Args))
	assert.Equal(t, `{"all":["a",null],"id":12345678901234567,"key":null}`, got.Output, "a marker is no value")
	assert.Equal(t, map[string]string{"id": "7"}, got.Fields)

	plain := sideeffect.Effect{Args: json.RawMessage(`{"a":1}`), Output: "done: 7", Fields: map[string]string{"id": "7"}}
	assert.Equal(t, plain, checkpoint.RedactEffect(redact.New(), plain), "what holds no secret is left alone")
	got = checkpoint.RedactEffect(redact.New(), sideeffect.Effect{Output: "token: " + secret, Args: json.RawMessage(`not JSON`)})
	assert.Empty(t, got.Output+string(got.Args))
	got = checkpoint.RedactEffect(redact.New(), sideeffect.Effect{Output: strings.Repeat("x", 70_000), Fields: map[string]string{"out": strings.Repeat("x", 70_000)}})
	assert.Empty(t, got.Output)
	assert.Empty(t, got.Fields)
}
