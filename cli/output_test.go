package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 10 << 10: "10 KiB",
		1<<20 - 1: "1.0 MiB", 1 << 20: "1.0 MiB", 200 << 20: "200 MiB", 1 << 62: "4.0 EiB",
	} {
		assert.Equal(t, want, size(n), n)
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2030, 5, 6, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "just now", 59 * time.Second: "59 s ago", time.Minute: "1 min ago", 119 * time.Minute: "1 h ago",
		47 * time.Hour: "47 h ago", 48 * time.Hour: "2 days ago", 40 * 24 * time.Hour: "2030-03-27",
		-time.Second: "just now", -time.Hour: "2030-05-06 13:00",
	} {
		assert.Equal(t, want, ago(now, now.Add(-d)), d)
	}
}

func TestCount(t *testing.T) {
	assert.Equal(t, "0 files", count(0, "file"))
	assert.Equal(t, "1 file", count(1, "file"))
	assert.Equal(t, "2 entries", count(int64(2), "entry", "entries"))
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"a/b.go": "a/b.go", "mit leerzeichen": "mit leerzeichen", "über.txt": "über.txt", "": `""`,
		"new\nline": `"new\nline"`, "\x1b[2J": `"\x1b[2J"`, "\xff": `"\xff"`, `say "hi"`: `"say \"hi\""`, `back\slash`: `"back\\slash"`,
		"\u202egnp.exe": `"\u202egnp.exe"`,
	} {
		assert.Equal(t, want, name(in))
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	p := &page{w: &out, colour: true}
	p.table([][]string{{"a title that is longer than the column"}, {p.bold("c1"), "12 B", "first"}, {"über", "1 KiB"}, nil, {"c", "", "x"}})
	assert.Equal(t, "a title that is longer than the column\n\x1b[1mc1\x1b[0m    12 B  first\nüber  1 KiB\n\nc           x\n", out.String())
}

func TestColour(t *testing.T) {
	terminal := func(any) (int, bool) { return 80, true }
	file := func(any) (int, bool) { return 0, false }
	for _, test := range []struct {
		name     string
		terminal func(any) (int, bool)
		vars     map[string]string
		flags    []string
		want     bool
	}{
		{"a terminal", terminal, nil, nil, true},
		{"a file", file, nil, nil, false},
		{"NO_COLOR", terminal, map[string]string{"NO_COLOR": "1"}, nil, false},
		{"NO_COLOR, empty", terminal, map[string]string{"NO_COLOR": ""}, nil, true},
		{"a dumb terminal", terminal, map[string]string{"TERM": "dumb"}, nil, false},
		{"--no-color", terminal, nil, []string{"--no-color"}, false},
		{"--color beats NO_COLOR and a file", file, map[string]string{"NO_COLOR": "1"}, []string{"--color"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := Env{Terminal: test.terminal, Getenv: func(k string) string { return test.vars[k] }}
			got := run(t, env, append([]string{"probe", "r1"}, test.flags...)...)
			assert.Equal(t, test.want, got.out == "\x1b[32mr1\x1b[0m\n", "%q", got.out)
			assert.Equal(t, !test.want, got.out == "r1\n", "%q", got.out)
		})
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// An answer that could not be written was not given.
func TestAnswerNotWritten(t *testing.T) {
	var errs bytes.Buffer
	code := Main([]string{"retcon", "version"}, strings.NewReader(""), fullDisk{}, &errs, Env{})
	assert.Equal(t, 1, code)
	assert.Equal(t, "retcon: write the answer: no space left on device\n", errs.String())
}

func TestConfirm(t *testing.T) {
	env := Env{Terminal: func(any) (int, bool) { return 80, true }}
	for typed, want := range map[string]int{"y\n": 0, "YES\n": 0, "yes": 0, "\n": 4, "": 4, "n\n": 4, "yep\n": 4} {
		var out, errs bytes.Buffer
		code := Main([]string{"retcon", "ask", "--no-color"}, strings.NewReader(typed), &out, &errs, env)
		assert.Equal(t, want, code, "%q", typed)
		assert.Equal(t, want == 0, out.String() == "gone\n", "%q", typed)
		assert.True(t, strings.HasPrefix(errs.String(), "throw it away? [y/N] "), errs.String())
	}
}

func TestProgress(t *testing.T) {
	now := time.Unix(0, 0)
	var errs bytes.Buffer
	env := Env{Now: func() time.Time { return now }, Terminal: func(any) (int, bool) { return 60, true }}
	c := &console{Env: env.orNothing(), err: &errs}

	p := c.progress("capturing")
	p.update(1, 10)
	assert.Empty(t, errs.String(), "nothing in the first second")
	p.done()
	assert.Empty(t, errs.String(), "and nothing to take away")

	now = now.Add(2 * time.Second)
	p.update(5, 10)
	p.update(6, 10)
	assert.Equal(t, "\rcapturing  50% [##########..........]\x1b[K", errs.String(), "once in a tenth of a second")
	p.done()
	assert.True(t, strings.HasSuffix(errs.String(), "\r\x1b[K"))

	errs.Reset()
	c.Terminal = func(any) (int, bool) { return 0, false }
	p = c.progress("capturing")
	now = now.Add(time.Hour)
	p.update(5, 10)
	p.done()
	assert.Empty(t, errs.String(), "nobody is watching")
}

func TestBar(t *testing.T) {
	assert.Equal(t, "x 100% [####################]", bar("x", 12, 10, 80), "more than all is all")
	assert.Equal(t, "x  30%", bar("x", 3, 10, 20))
	assert.Equal(t, "x 3", bar("x", 3, 0, 20))
	assert.Equal(t, "lon", bar("long label", 3, 10, 3))
	assert.Equal(t, "", bar("x", 3, 10, -1))
}
