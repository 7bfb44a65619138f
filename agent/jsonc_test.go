package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// settingsText draws settings as somebody may have written them: with comments
// or without, on one line or on many, with hooks of their own or none.
type settingsText struct {
	t        *rapid.T
	spaces   []string
	trailing bool
}

func (g settingsText) space() string { return rapid.SampledFrom(g.spaces).Draw(g.t, "space") }

func (g settingsText) list(open, closing string, items []string) string {
	var b strings.Builder
	b.WriteString(open)
	for i, item := range items {
		b.WriteString(g.space() + item + g.space())
		if i < len(items)-1 || g.trailing {
			b.WriteString(",")
		}
	}
	b.WriteString(g.space() + closing)
	return b.String()
}

func (g settingsText) member(key, value string) string {
	return `"` + key + `"` + g.space() + ":" + g.space() + value
}

func (g settingsText) group() string {
	handler := g.list("{", "}", []string{g.member("type", `"command"`), g.member("command", `"notify-send hook // claude"`)})
	items := []string{g.member("hooks", g.list("[", "]", []string{handler}))}
	if rapid.Bool().Draw(g.t, "matcher") {
		items = append([]string{g.member("matcher", `"Bash|a\"\\b"`)}, items...)
	}
	return g.list("{", "}", items)
}

func (g settingsText) hooks(events []hookEvent) string {
	var items []string
	for _, e := range events {
		if rapid.IntRange(0, 2).Draw(g.t, "event") > 0 {
			continue
		}
		var groups []string
		for range rapid.IntRange(0, 2).Draw(g.t, "groups") {
			groups = append(groups, g.group())
		}
		items = append(items, g.member(e.name, g.list("[", "]", groups)))
	}
	return g.list("{", "}", items)
}

func (g settingsText) draw(events []hookEvent) string {
	var items []string
	for _, value := range []string{`"x"`, `-1.5e3`, `{"a":[1,{}]}`, `null`} {
		if rapid.Bool().Draw(g.t, "member") {
			items = append(items, g.member("key", value))
		}
	}
	at := rapid.IntRange(0, len(items)).Draw(g.t, "hooks at")
	if rapid.Bool().Draw(g.t, "has hooks") {
		items = append(items[:at], append([]string{g.member("hooks", g.hooks(events))}, items[at:]...)...)
	}
	return g.space() + g.list("{", "}", items) + g.space()
}

func drawSettings(t *rapid.T, events []hookEvent) string {
	g := settingsText{t: t, trailing: rapid.Bool().Draw(t, "trailing commas")}
	g.spaces = rapid.SampledFrom([][]string{
		{"", " "}, {"\n", "\n  "}, {"\n", "\n\n", "\n\t", ""}, {"\r\n", "\r\n\r\n", " "}, {"", "\n", "\n// note {\n", "/* [ */"},
	}).Draw(t, "spaces")
	return g.draw(events)
}

func jsonSetups() map[string]jsonHooks {
	return map[string]jsonHooks{"claude": claudeSetup, "gemini": geminiSetup, "codex": codexJSON}
}

func TestPutThenDropIsIdentity(t *testing.T) {
	s := Setup{Exe: "/opt/my tools/retcon"}
	for name, j := range jsonSetups() {
		j.events = j.events[:5]
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				before := drawSettings(t, j.events)
				text := before
				for range 2 {
					d, err := parseDoc([]byte(text))
					require.NoError(t, err)
					require.NoError(t, j.put(d, s))
					require.NoError(t, j.put(d, s))
					once := string(d.bytes())
					for _, e := range j.events {
						require.Equal(t, Installed, j.state(d, e, j.entry(e, s.command(j.agent, e.name))), "%s in:\n%s", e.name, once)
					}
					d, err = parseDoc([]byte(once))
					require.NoError(t, err)
					require.NoError(t, j.put(d, s))
					require.Equal(t, once, string(d.bytes()), "a second time")
					require.NoError(t, j.drop(d))
					text = string(d.bytes())
					require.Equal(t, before, text, "taken out of:\n%s", once)
				}
			})
		})
	}
}

// What is not JSON yet, and what has nothing in it.
func TestPutIntoNothing(t *testing.T) {
	s := Setup{Exe: "retcon"}
	for _, before := range []string{"-", "", "\n", "\n\n", " ", " \n", "{}", "{}\n", "{\n}\n", "{\n\n}\n", "{ }", "{\r\n}\r\n", bom + "{}", "{\"hooks\": {}}", "{\n  \"hooks\": {\n  }\n}\n",
		"{\n  \"hooks\": {\n    \"PreToolUse\": [\n    ]\n  }\n}\n", "// only\n{\n  // a comment\n}\n", "{\"a\": 1}", "{\"a\": 1, /* b */}\n"} {
		t.Run(before, func(t *testing.T) {
			data := []byte(before)
			if before == "-" {
				data = nil
			}
			d, err := parseDoc(data)
			require.NoError(t, err)
			require.NoError(t, claudeSetup.put(d, s))
			in := d.bytes()
			d, err = parseDoc(in)
			require.NoError(t, err)
			require.NoError(t, claudeSetup.drop(d))
			assert.Equal(t, data, d.bytes(), "taken out of:\n%s", in)
		})
	}
}

func TestFreshSettingsReadWell(t *testing.T) {
	d, err := parseDoc(nil)
	require.NoError(t, err)
	j := claudeSetup
	j.events = []hookEvent{{name: "SessionStart", timeout: 10}, {name: "PreToolUse", matcher: "Bash", timeout: 10}}
	require.NoError(t, j.put(d, Setup{Exe: "retcon"}))
	assert.Equal(t, `{
  "hooks": {
    "SessionStart": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "retcon hook claude SessionStart 2>/dev/null || true",
            "timeout": 10
          }
        ]
      }
    ],
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          {
            "type": "command",
            "command": "retcon hook claude PreToolUse 2>/dev/null || true",
            "timeout": 10
          }
        ]
      }
    ]
  }
}
`, string(d.bytes()))
}

// The texts that we read are those that encoding/json reads, and some more.
func TestParseDocAgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune(`{}[]:,"\ab1-.e 	`+"\n"))).Draw(t, "text")
		var want any
		if json.Unmarshal([]byte(text), &want) != nil || strings.TrimSpace(text) == "" {
			return
		}
		d, err := parseDoc([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, d.read(d.root))
	})
}

func FuzzParseDoc(f *testing.F) {
	for _, text := range []string{`{"a": [1, 2,], /* b */}`, "{\n// c\n}", `{"a":1 "b":2}`, `[`, `{"hooks": {"PreToolUse": [null, 1, {"hooks": [{"command": "retcon hook claude X"}]}]}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := parseDoc(data)
		if err != nil || usable(d) != nil {
			return
		}
		before := string(d.bytes())
		require.NoError(t, claudeSetup.drop(d))
		dropped := string(d.bytes())
		if dropped != before {
			return // there was something of ours
		}
		require.NoError(t, claudeSetup.put(d, Setup{Exe: "retcon"}))
		require.NoError(t, claudeSetup.drop(d))
		require.Equal(t, before, string(d.bytes()))
	})
}

func TestParseDocRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1`: "line 1: expected a comma", "{\n\"a\" 1}": "line 2: expected a colon", `{a: 1}`: "line 1: expected a value", `{1: 1}`: "line 1: expected a key",
		"{}\n}": "line 2: something after the value", `[1 2]`: "line 1: expected a comma", `{"a": "b}`: "line 1: expected a value", `/* {}`: "line 1: expected a value",
		strings.Repeat("[", deep+2): "too deep",
	} {
		_, err := parseDoc([]byte(text))
		assert.EqualError(t, err, want, text)
	}
}
