package cli

import (
	"testing"

	"github.com/retcon-dev/retcon"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWithLine(t *testing.T) {
	for _, test := range []struct{ name, text, line, want string }{
		{"an empty file", "", "k = 1", "k = 1\n"},
		{"replaced where it stood", "a = 1\nk = 2 # why\nb = 3\n", "k = 4", "a = 1\nk = 4\nb = 3\n"},
		{"written otherwise", "  k=2\n", "k = 4", "k = 4\n"},
		{"twice", "k = 1\nk = 2\n", "k = 3", "k = 3\n"},
		{"taken out", "a = 1\nk = 2\n", "", "a = 1\n"},
		{"not there to be taken out", "a = 1\n", "", "a = 1\n"},
		{"a key that begins alike", "kk = 1\n", "k = 2", "k = 2\nkk = 1\n"},
		{"before a table", "[t]\nx = 1\n", "k = 2", "k = 2\n[t]\nx = 1\n"},
		{"no newline at the end", "a = 1", "k = 2", "k = 2\na = 1\n"},
		{"in a comment", "# k = 1\n", "k = 2", "k = 2\n# k = 1\n"},
	} {
		assert.Equal(t, test.want, withLine(test.text, "k", test.line), test.name)
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "17": 17, "17B": 17, "1KiB": 1024, "1.5 KiB": 1536, "20M": 20 << 20, "20mib": 20 << 20, "2GB": 2 << 30, "1TiB": 1 << 40,
	} {
		got, err := parseSize(in)
		require.NoError(t, err, in)
		assert.Equal(t, want, got, in)
	}
	for _, in := range []string{"", "much", "-1", "1 XB", "1KK", "KiB", "NaN", "Inf", "9999EiB", "0x"} {
		_, err := parseSize(in)
		assert.Error(t, err, in)
	}
}

// Whatever patterns are set come back.
func TestIncludeRoundTrip(t *testing.T) {
	include, err := findSetting("include")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.StringN(1, 20, -1), 1, 3).Draw(t, "patterns")
		literal, err := include.literal(want)
		require.NoError(t, err)
		in, err := parseConfig("include = " + literal + "\n")
		require.NoError(t, err, literal)
		require.Equal(t, want, in.Include)
	})
}

func TestEverySettingIsToldAndRead(t *testing.T) {
	for _, s := range settings {
		line := s.told(mustParse(t, ""))
		assert.False(t, line.Set, s.key)
		if s.key == "include" {
			continue // empty
		}
		literal, err := s.literal([]string{line.text})
		require.NoError(t, err, s.key)
		again := s.told(mustParse(t, s.key+" = "+literal))
		assert.Equal(t, line.text, again.text, s.key)
	}
}

func mustParse(t *testing.T, text string) retcon.Config {
	t.Helper()
	in, err := parseConfig(text)
	require.NoError(t, err, text)
	return in
}
