package retcon_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/timeline"
)

// shop is a workspace whose repository says how to undo what a program of its own
// does.
type shop struct {
	*flow
	log string // what the program was called with, and what it saw
	opt retcon.Options
}

// asJSON reads a configuration as JSON: the form is the doors' business.
func asJSON(text []byte) (c retcon.Config, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, &retcon.ProjectError{Line: 3, Reason: err.Error()}
	}
	return c, c.Validate()
}

const (
	ticketRule = `{"rule": [{"name": "ticket", "command": "acme make", "find": "made (?P<id>[0-9]+)", "undo": {"command": ["acme", "unmake", "{{.id}}"]}}]}`
	otherRule  = `{"rule": [{"name": "ticket", "command": "acme make", "find": "made (?P<id>[0-9]+)", "undo": {"command": ["acme", "burn", "{{.id}}"]}}]}`
)

// newShop is a shop with a configuration, which nobody trusts.
func newShop(t *testing.T, config string) *shop {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	s := &shop{log: filepath.Join(dir, "log")}
	require.NoError(t, os.Mkdir(bin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "acme"), []byte("#!/bin/sh\necho \"$*\" >> "+s.log+
		"\necho \"token=${ACME_TOKEN-none} secret=${SECRET-none} own=${RETCON_RUN-none} run=${RETCON_EFFECT_RUN-none} key=${RETCON_EFFECT_KEY-none}\" >> "+s.log+
		".env\n[ \"$1\" = make ] && echo made 7\ntrue\n"), 0o755))
	s.opt = retcon.Options{Create: true, State: filepath.Join(dir, "state"), Parse: asJSON,
		Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "ACME_TOKEN=t0ken", "SECRET=hidden", "RETCON_RUN=r9"}}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "work"), 0o755))
	s.flow = &flow{place: &place{t: t, dir: filepath.Join(dir, "work")}}
	if config != "" {
		s.write(retcon.ProjectFile, config)
	}
	s.reopen(s.opt)
	return s
}

// reopen is what the next command finds.
func (s *shop) reopen(o retcon.Options) { s.place = openPlace(s.t, s.dir, o) }

// calls are what the program was called with since the last call.
func (s *shop) calls() string {
	b, _ := os.ReadFile(s.log)
	os.Remove(s.log)
	return strings.Join(strings.Split(strings.TrimSpace(string(b)), "\n"), ", ")
}

func (s *shop) trust() {
	s.t.Helper()
	p, err := s.Trust(ctx, retcon.TrustOptions{})
	require.NoError(s.t, err)
	require.True(s.t, p.Trusted)
	s.reopen(s.opt)
}

const makes = `
def main(ctx):
    sh("echo 1 > plan.txt", name="plan").out()
    sh("acme make", name="make").out()
`

func (s *shop) back() error {
	_, err := s.TimeTravel(ctx, retcon.TravelOptions{Run: "r1", Task: "make"})
	return err
}

// What a repository says runs when somebody trusts it, and not before.
func TestUntrustedConfigurationRunsNothing(t *testing.T) {
	s := newShop(t, ticketRule)
	require.Equal(t, "ok", s.run(makes).Status)
	s.calls()
	all, err := s.Effects(ctx, retcon.EffectsOptions{Run: "r1"})
	require.NoError(t, err)
	require.Len(t, all, 1, "what it recognises is recorded")
	assert.Equal(t, "ticket", all[0].Rule)
	assert.Contains(t, all[0].Why, "not trusted")

	err = s.back()
	var blocked *timeline.BlockedError
	require.ErrorAs(t, err, &blocked)
	told := retcon.Explain(err)
	assert.Equal(t, retcon.CodeEffectBlocked, told.Code)
	assert.Contains(t, told.Message, "trust that configuration")
	assert.Contains(t, told.Hints, "retcon trust")
	assert.Empty(t, s.calls())

	st, err := s.Status(ctx)
	require.NoError(t, err)
	assert.Contains(t, st.Next, "retcon trust")
	assert.Contains(t, strings.Join(st.Warnings, "\n"), "retcon.toml is not trusted")
	h, err := s.Doctor(ctx, retcon.DoctorOptions{})
	require.NoError(t, err)
	assert.True(t, h.OK, "not to trust is nothing that is wrong")
	assert.Equal(t, "retcon trust", check(t, h, "configuration").Hint)

	asked := 0
	p, err := s.Trust(ctx, retcon.TrustOptions{Confirm: func(p *retcon.Project) (bool, error) {
		asked++
		require.Len(t, p.Grants, 1)
		assert.Equal(t, retcon.Grant{Rule: "ticket", When: "acme make", What: "run", How: "acme unmake '{{.id}}'"}, p.Grants[0])
		return false, nil
	}})
	require.ErrorIs(t, err, timeline.ErrDeclined)
	assert.Nil(t, p)
	s.reopen(s.opt)
	require.Error(t, s.back(), "it was declined")
	s.trust()
	assert.Equal(t, 1, asked)
	require.NoError(t, s.back())
	assert.Equal(t, "unmake 7", s.calls())
	assert.Equal(t, 1, s.audited("config.trust"))
}

func check(t *testing.T, h *retcon.Health, name string) retcon.Check {
	t.Helper()
	for _, c := range h.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatal("no check ", name)
	return retcon.Check{}
}

// T118: what was recorded while a configuration was trusted is undone as it said
// then, also when it says something else now, or nothing.
func TestT118EditedConfigurationKeepsTheCompensation(t *testing.T) {
	for name, later := range map[string]string{"edited": otherRule, "emptied": "{}", "broken": "{", "gone": ""} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, ticketRule)
			s.trust()
			require.Equal(t, "ok", s.run(makes).Status)
			s.calls()
			if s.write(retcon.ProjectFile, later); later == "" {
				require.NoError(t, os.Remove(s.path(retcon.ProjectFile)))
			}
			s.reopen(s.opt)
			assert.False(t, s.Project().Trusted)
			require.NoError(t, s.back())
			assert.Equal(t, "unmake 7", s.calls())
		})
	}
}

// A file that has changed is not trusted any more, and says so; an effect that
// it has recorded since waits. Where it goes on to change, nobody can trust what
// it said then.
func TestChangedConfigurationWaits(t *testing.T) {
	s := newShop(t, ticketRule)
	s.trust()
	s.write(retcon.ProjectFile, otherRule)
	s.reopen(s.opt)
	assert.True(t, s.Project().Changed)
	st, err := s.Status(ctx)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(st.Warnings, "\n"), "has changed since it was trusted")
	require.Equal(t, "ok", s.run(makes).Status)
	s.calls()
	require.Error(t, s.back())

	s.write(retcon.ProjectFile, ticketRule)
	s.reopen(s.opt)
	assert.True(t, s.Project().Trusted, "these bytes were trusted before")
	err = s.back()
	require.Error(t, err)
	assert.NotContains(t, retcon.Explain(err).Hints, "retcon trust", "it would not help")
	assert.Contains(t, err.Error(), "another by now")
	assert.Empty(t, s.calls())

	s.write(retcon.ProjectFile, otherRule)
	s.reopen(s.opt)
	s.trust()
	require.NoError(t, s.back())
	assert.Equal(t, "burn 7", s.calls())
}

// What is not trusted any more does not run any more, whatever it said when an
// effect was recorded.
func TestDistrust(t *testing.T) {
	s := newShop(t, ticketRule)
	s.trust()
	require.Equal(t, "ok", s.run(makes).Status)
	s.calls()
	s.write(retcon.ProjectFile, otherRule)
	s.reopen(s.opt)
	s.trust()
	all := s.TrustedFiles()
	require.Len(t, all, 2)
	assert.NotEqual(t, all[0].Current, all[1].Current)
	file, n, err := s.Distrust(ctx, "")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(s.Root(), retcon.ProjectFile), file)
	assert.Equal(t, 2, n)
	assert.Empty(t, s.TrustedFiles())
	require.Error(t, s.back())
	assert.Empty(t, s.calls())
	_, n, err = s.Distrust(ctx, file)
	require.NoError(t, err)
	assert.Zero(t, n)
}

// An agent can't give itself rights, by whatever it is known to be one.
func TestAgentsTrustNothing(t *testing.T) {
	s := newShop(t, ticketRule)
	_, err := s.RunWorkflow(ctx, retcon.RunOptions{File: s.body("def main(ctx):\n    sh('true', name='x')\n")})
	require.NoError(t, err)
	_, err = s.Hook(ctx, retcon.HookOptions{Agent: "generic", Event: "prompt", Payload: []byte(`{"session": "s1", "prompt": "go"}`), Client: os.Getpid()})
	require.NoError(t, err)
	_, err = s.Hook(ctx, retcon.HookOptions{Agent: "generic", Event: "tool-before", Payload: []byte(`{"session": "s1", "call": "c", "tool": "sh"}`), Client: os.Getpid()})
	require.NoError(t, err)
	for name, change := range map[string]func(*retcon.Options){
		"the actor":        func(o *retcon.Options) { o.Actor = "claude" },
		"a run's command":  func(o *retcon.Options) { o.OwnRun = "r1" },
		"another's":        func(o *retcon.Options) { o.OwnRun = "r99" },
		"a conversation":   func(o *retcon.Options) { o.OwnSessions = []retcon.OwnSession{{Agent: "codex", Session: "unknown"}} },
		"started by a run": func(o *retcon.Options) { o.Above = []int{1, os.Getpid()} },
	} {
		o := s.opt
		change(&o)
		s.reopen(o)
		_, err := s.Trust(ctx, retcon.TrustOptions{})
		var refused *retcon.AgentTrustError
		require.ErrorAs(t, err, &refused, name)
		assert.Equal(t, retcon.CodeSelfOperation, retcon.Explain(err).Code)
		_, _, err = s.Distrust(ctx, "")
		require.ErrorAs(t, err, &refused, name)
		assert.Empty(t, s.TrustedFiles())
	}
	o := s.opt
	o.Above = []int{1}
	s.reopen(o)
	s.trust()
}

// A configuration that can't be read stops what it decides about, and nothing is
// lost by it: captures, moves and hooks go on.
func TestBrokenConfiguration(t *testing.T) {
	s := newShop(t, "")
	s.write("a.txt", "1")
	_, err := s.Checkpoint(ctx, retcon.CheckpointOptions{Label: "good"})
	require.NoError(t, err)
	s.write(retcon.ProjectFile, "{\n")
	s.write("a.txt", "2")
	s.reopen(s.opt)
	_, err = s.RunWorkflow(ctx, retcon.RunOptions{File: s.body(threeSteps)})
	told := retcon.Explain(err)
	assert.Equal(t, retcon.CodeConfig, told.Code)
	assert.True(t, strings.HasPrefix(told.Message, "retcon.toml:3: "), told.Message)
	assert.NotContains(t, told.Message, "\n")
	assert.Contains(t, told.Hints[0], s.path(retcon.ProjectFile))
	_, err = s.Trust(ctx, retcon.TrustOptions{})
	assert.Equal(t, retcon.CodeConfig, retcon.Explain(err).Code)

	answer, err := s.Hook(ctx, retcon.HookOptions{Agent: "generic", Event: "prompt", Payload: []byte(`{"session": "s1", "prompt": "hello"}`)})
	require.NoError(t, err, "an agent is not in anybody's way")
	assert.Empty(t, answer)
	runs, err := s.Runs(ctx, 0)
	require.NoError(t, err)
	assert.Len(t, runs, 1)
	_, err = s.Checkpoint(ctx, retcon.CheckpointOptions{})
	require.NoError(t, err)
	h, err := s.Doctor(ctx, retcon.DoctorOptions{})
	require.NoError(t, err)
	c := check(t, h, "configuration")
	assert.False(t, c.OK)
	assert.Contains(t, c.Detail, "retcon.toml:3: ")
	_, err = s.Restore(ctx, retcon.RestoreOptions{Ref: "good"})
	require.NoError(t, err, "the way back to a good one is open")
	assert.Equal(t, "1", s.read("a.txt"))
}

func TestConfigurationIsRead(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "evil.toml")
	require.NoError(t, os.WriteFile(outside, []byte(ticketRule), 0o644))
	for _, test := range []struct {
		name  string
		make  func(path string) error
		wrong string // "": it is read
	}{
		{"a file", func(path string) error { return os.WriteFile(path, []byte(ticketRule), 0o644) }, ""},
		{"a link below", func(path string) error {
			return os.Symlink("real.toml", path)
		}, ""},
		{"a link to the outside", func(path string) error { return os.Symlink(outside, path) }, "a link that leads out"},
		{"a link up", func(path string) error { return os.Symlink("../evil.toml", path) }, "a link that leads out"},
		{"a link to nothing", func(path string) error { return os.Symlink("none", path) }, "or nowhere"},
		{"a folder", func(path string) error { return os.Mkdir(path, 0o755) }, "no regular file"},
		{"a pipe", func(path string) error { return syscall.Mkfifo(path, 0o644) }, "no regular file"},
		{"too large", func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("\n"), 1<<20+1), 0o644) }, "larger than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newShop(t, "")
			s.write("real.toml", ticketRule)
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(s.dir), "evil.toml"), []byte(ticketRule), 0o644))
			require.NoError(t, test.make(s.path(retcon.ProjectFile)))
			s.reopen(s.opt)
			p := s.Project()
			if test.wrong == "" {
				require.NoError(t, p.Err)
				assert.Len(t, p.Grants, 1)
				return
			}
			require.ErrorContains(t, p.Err, test.wrong)
			assert.Empty(t, p.Grants)
			_, err := s.Trust(ctx, retcon.TrustOptions{})
			require.Error(t, err)
		})
	}
}

// The user's settings go before the repository's, and some are the user's alone.
func TestConfigurationSettings(t *testing.T) {
	s := newShop(t, `{"max_file": 100, "include": ["dist/**"], "keep_tools": 3600000000000, "budget": 7, "disabled": true, "ignored_max": 5}`)
	c := s.Config()
	assert.EqualValues(t, 100, c.MaxFile)
	assert.Equal(t, []string{"dist/**"}, c.Include)
	assert.EqualValues(t, 5, c.IgnoredMax)
	assert.Zero(t, c.KeepTools)
	assert.Zero(t, c.Budget)
	assert.False(t, c.Disabled)
	assert.False(t, s.Project().Waits(), "what runs nothing needs no trust")
	o := s.opt
	o.Config = retcon.Config{MaxFile: 50, Include: []string{"gen/**"}}
	s.reopen(o)
	assert.EqualValues(t, 50, s.Config().MaxFile)
	assert.Equal(t, []string{"gen/**"}, s.Config().Include)
	assert.EqualValues(t, 5, s.Config().IgnoredMax)
	s.write("large.bin", strings.Repeat("x", 80))
	p, err := s.Checkpoint(ctx, retcon.CheckpointOptions{})
	require.NoError(t, err)
	var missing []string
	for _, m := range p.NotCaptured {
		missing = append(missing, m.Path)
	}
	assert.Contains(t, missing, "large.bin")
}

// A user's rule goes before the repository's, and needs no trust.
func TestOwnRulesGoFirst(t *testing.T) {
	s := newShop(t, otherRule)
	s.trust()
	o := s.opt
	mine, err := asJSON([]byte(strings.Replace(ticketRule, `"name": "ticket"`, `"name": "mine"`, 1)))
	require.NoError(t, err)
	o.Config = mine
	s.reopen(o)
	require.Equal(t, "ok", s.run(makes).Status)
	s.calls()
	require.NoError(t, s.back())
	assert.Equal(t, "unmake 7", s.calls())
}

// Notes of what is trusted are the user's own, and one that others could have
// written counts for nothing.
func TestTrustIsPrivate(t *testing.T) {
	s := newShop(t, ticketRule)
	s.trust()
	folder := filepath.Join(s.opt.State, "trust")
	info, err := os.Stat(folder)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	notes, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, notes, 1)
	note := filepath.Join(folder, notes[0].Name())
	info, err = os.Stat(note)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, os.Chmod(note, 0o666))
	s.reopen(s.opt)
	assert.False(t, s.Project().Trusted)
	require.NoError(t, os.Chmod(note, 0o600))
	require.NoError(t, os.Chmod(folder, 0o777))
	s.reopen(s.opt)
	assert.False(t, s.Project().Trusted)
	require.NoError(t, os.Chmod(folder, 0o700))
	s.reopen(s.opt)
	assert.True(t, s.Project().Trusted)

	o := s.opt
	o.State = ""
	s.reopen(o)
	assert.False(t, s.Project().Trusted)
	_, err = s.Trust(ctx, retcon.TrustOptions{})
	require.ErrorIs(t, err, retcon.ErrNoState)
}

// Another worktree of the same content is another path, and not trusted.
func TestTrustIsOfAPath(t *testing.T) {
	a := newShop(t, ticketRule)
	a.trust()
	b := newShop(t, ticketRule)
	o := b.opt
	o.State = a.opt.State
	b.reopen(o)
	assert.False(t, b.Project().Trusted)
	assert.False(t, b.Project().Changed)
}

// What would be listed as asked for covers all that a file may not do by itself.
func TestGrants(t *testing.T) {
	s := newShop(t, `{"rule": [
		{"name": "a", "command": "a", "undo": {"shell": {"text": "b $1", "args": ["{{.command}}"]}, "env": ["TOKEN"]}},
		{"tool": "mcp__x__*", "undo": {"mcp": {"server": "x", "tool": "del", "args": {"id": "{{.args.id}}"}}}},
		{"command": "c", "undo": {"http": {"method": "DELETE", "url": "https://h/{{.args.x}}", "headers": {"Authorization": "{{.env.T}}"}, "body": {"a": 1}}}},
		{"command": "d", "undo": {"handler": "go"}},
		{"command": "e", "class": "read"},
		{"command": "f", "class": "exempt"},
		{"command": "g", "undo": {"not_needed": "it expires"}},
		{"command": "h", "atomic": true},
		{"command": "i", "undo": {"impossible": "it is gone"}},
		{"command": "j", "class": "maybe"}]}`)
	var got []string
	for _, g := range s.Project().Grants {
		got = append(got, strings.Join([]string{g.Rule, g.When, g.What, g.How, strings.Join(g.Env, " ")}, "|"))
	}
	assert.Equal(t, []string{
		`a|a|run|sh -c 'b $1' sh '{{.command}}'|TOKEN`,
		`2|mcp__x__*|call|x.del {"id":"{{.args.id}}"}|`,
		`3|c|call|DELETE https://h/{{.args.x}} 'Authorization: {{.env.T}}' {"a":1}|`,
		`4|d|call|handler go|`,
		`5|e|pass|it is no effect|`,
		`6|f|pass|it is in nobody's way|`,
		`7|g|pass|it expires|`,
		`8|h|pass|an error says that nothing was done|`,
	}, got)
}

// A handler sees no secret but those that it names.
func TestHandlersSeeNoSecrets(t *testing.T) {
	for _, test := range []struct{ name, env, want string }{
		{"none is named", "", "token=none secret=none own=none run=r1"},
		{"one is named", `, "env": ["ACME_TOKEN"]`, "token=t0ken secret=none own=none run=r1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newShop(t, strings.Replace(ticketRule, `"{{.id}}"]`, `"{{.id}}"]`+test.env, 1))
			s.trust()
			require.Equal(t, "ok", s.run(makes).Status)
			e, err := s.Effect(ctx, 1)
			require.NoError(t, err)
			require.NoError(t, os.Remove(s.log+".env"))
			require.NoError(t, s.back())
			b, err := os.ReadFile(s.log + ".env")
			require.NoError(t, err)
			assert.Equal(t, test.want+" key="+e.Key+"\n", string(b))
		})
	}
}
