package handover

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// store makes what the short way looks for in a store's folder.
func store(t *testing.T, folder string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "watch"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "ledger.db"), []byte("x"), 0o600))
	return folder
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestFind(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := func(name string) string { return filepath.Join(top, name) }
	git := store(t, at("repo/.git/retcon"))
	put(t, at("repo/a/b/file"), "")
	plain := store(t, at("plain/.retcon"))
	put(t, at("plain/sub/file"), "")
	put(t, at("linked/.git"), "gitdir: ../repo/.git/worktrees/linked\n")
	put(t, at("repo/.git/worktrees/linked/commondir"), "../..\n")
	put(t, at("repo/nested/.git/HEAD"), "")
	put(t, at("submodule/.git"), "gitdir: "+at("repo/.git/modules/s")+"\n")
	put(t, at("odd/.git"), "nothing of git's\n")
	store(t, at("both/.git/retcon"))
	store(t, at("both/.retcon"))
	require.NoError(t, os.Symlink(at("repo/a"), at("link")))
	require.NoError(t, os.Mkdir(at("repo/.git/modules"), 0o755))
	for _, test := range []struct {
		dir          string
		root, folder string // "": not found
	}{
		{at("repo"), at("repo"), git},
		{at("repo/a/b"), at("repo"), git},
		{at("link/b"), at("repo"), git},
		{at("plain/sub"), at("plain"), plain},
		{at("linked"), at("linked"), git},
		{at("repo/nested"), "", ""},
		{at("submodule"), "", ""},
		{at("odd"), "", ""},
		{at("both"), "", ""},
		{at("gone"), "", ""},
		{"repo", "", ""},
		{"", "", ""},
		{top, "", ""},
	} {
		p, found := Find(test.dir)
		assert.Equal(t, test.root != "", found, test.dir)
		if found {
			assert.Equal(t, Place{Root: test.root, Folder: test.folder}, p, test.dir)
		}
	}
	a, _ := Find(at("repo"))
	b, _ := Find(at("linked"))
	assert.NotEqual(t, a.Socket(), b.Socket(), "a socket for each worktree of a repository")
}

func TestDisabled(t *testing.T) {
	for text, want := range map[string]bool{
		"disabled = true\n":                          true,
		"max_file = '1MiB'\n\t disabled = true":      true,
		"disabled = true # for now":                  false, // the whole program knows
		"disabled = false\n":                         false,
		"# disabled = true\n":                        false,
		"[agents]\ndisabled = true\n":                false,
		"x = \"\"\"\ndisabled = true\n\"\"\"\n":      false,
		"include = ['''a''']\ndisabled = true\n":     false,
		"include = ['a',\n'b']\ndisabled = true\n":   true,
		"redact = ['x']\r\ndisabled = true\r\n":      true,
		"enabled = true\ndisabled = true\nx = [1]\n": true,
		"": false,
	} {
		p := Place{Folder: t.TempDir()}
		put(t, filepath.Join(p.Folder, "config.toml"), text)
		assert.Equal(t, want, p.Disabled(), "%q", text)
	}
	assert.False(t, Place{Folder: t.TempDir()}.Disabled(), "no settings")
}

func TestDir(t *testing.T) {
	for _, test := range []struct{ agent, payload, want string }{
		{"claude", `{"cwd":"/w"}`, "/w"},
		{"claude", ` { "a" : {"cwd":"/x"}, "b":[1,{"cwd":"/y"}], "c":"}\"{", "cwd" : "/w ü" , "d":null}`, "/w ü"},
		{"claude", `{"cwd":"/w","cwd":"/x"}`, "/x"}, // as encoding/json has it
		{"claude", `{"cwd":"/w\u0041"}`, ""},
		{"claude", `{"cwd":7}`, ""},
		{"claude", `{"cwd":"/w","cwd":7}`, ""},
		{"claude", `{"c\u0077d":"/x","cwd":"/w"}`, ""},
		{"claude", "{\"cwd\":\"/w\xff\"}", ""},
		{"claude", `{"a":"cwd"}`, ""},
		{"claude", `["cwd","/w"]`, ""},
		{"claude", `{"cwd":"/w`, ""},
		{"claude", `{"cwd"`, ""},
		{"claude", `{"cwd":`, ""},
		{"claude", ``, ""},
		{"opencode", `{"hook":"x","input":{"cwd":"/x"},"directory":"/w","worktree":"/"}`, "/w"},
		{"opencode", `{"cwd":"/w"}`, ""},
		{"cursor", `{"cwd":"/w"}`, ""},
	} {
		assert.Equal(t, test.want, Dir(test.agent, []byte(test.payload)), "%s %s", test.agent, test.payload)
	}
}

// Of a payload that is JSON, what is found is what is there.
func FuzzDir(f *testing.F) {
	for _, s := range []string{`{"cwd":"/w"}`, `{"a":[{"cwd":"x"}],"cwd":"\u0041"}`, `{"cwd":{"cwd":"/"}}`, `{"cwd":"/w","b":"\\"}`, `{`, `[]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		got := Dir("claude", payload)
		var all map[string]any
		if json.Unmarshal(payload, &all) != nil || got == "" {
			return
		}
		assert.Equal(t, got, all["cwd"], "%q", payload)
	})
}

func TestWire(t *testing.T) {
	c := Call{Agent: "claude", Event: "Stop", Home: "/h", XDGConfigHome: "", Parent: 12, Payload: bytes.Repeat([]byte("x"), 1<<20)}
	b := c.Bytes()
	got, err := ReadCall(bytes.NewReader(b))
	require.NoError(t, err)
	assert.Equal(t, c, got)
	for n := range 80 {
		_, err := ReadCall(bytes.NewReader(b[:n]))
		assert.Error(t, err, n)
	}
	_, err = ReadCall(strings.NewReader("retcon hook 2\n" + string(b[len(greeting):])))
	assert.ErrorIs(t, err, ErrGreeting)
	_, err = ReadCall(strings.NewReader(greeting + "\xff\xff\xff\xff"))
	assert.ErrorIs(t, err, ErrGreeting, "more than any field holds")
}

// server is what listens at a place: do is given each connection, once the call
// has been read.
func server(t *testing.T, p Place, do func(net.Conn, Call)) {
	t.Helper()
	path, done, ok := Address(p.Socket())
	require.True(t, ok)
	defer done()
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c, err := ReadCall(conn)
			if err == nil {
				do(conn, c)
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
}

func TestAsk(t *testing.T) {
	call := Call{Agent: "claude", Event: "Stop", Parent: 7, Payload: bytes.Repeat([]byte("p"), 3<<20)}
	for name, test := range map[string]struct {
		do     func(net.Conn)
		answer string
		done   bool
	}{
		"recorded":           {func(c net.Conn) { c.Write([]byte{Taken}); c.Write(Answered([]byte("told"))) }, "told", true},
		"nothing to tell":    {func(c net.Conn) { c.Write(append([]byte{Taken}, Answered(nil)...)) }, "", true},
		"refused":            {func(c net.Conn) { c.Write([]byte{Refused}) }, "", false},
		"gone at once":       {func(net.Conn) {}, "", false},
		"gone when taken":    {func(c net.Conn) { c.Write([]byte{Taken}) }, "", false},
		"gone in the answer": {func(c net.Conn) { c.Write(append([]byte{Taken}, Answered([]byte("told"))[:6]...)) }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := Place{Root: t.TempDir(), Folder: t.TempDir()}
			store(t, p.Folder)
			server(t, p, func(conn net.Conn, got Call) {
				assert.Equal(t, call, got)
				test.do(conn)
			})
			answer, done := Ask(p, call)
			assert.Equal(t, test.done, done)
			assert.Equal(t, test.answer, string(answer))
		})
	}
	p := Place{Root: t.TempDir(), Folder: t.TempDir()}
	_, done := Ask(p, call)
	assert.False(t, done, "nobody listens")
}

// Who does not say in time that it takes a call cannot take it any more.
func TestAskDoesNotWaitForever(t *testing.T) {
	p := Place{Root: t.TempDir(), Folder: t.TempDir()}
	store(t, p.Folder)
	late := make(chan struct{})
	wrote := make(chan error, 1)
	server(t, p, func(conn net.Conn, _ Call) {
		<-late
		_, err := conn.Write([]byte{Taken})
		wrote <- err
	})
	_, done := Ask(p, Call{Agent: "claude"})
	assert.False(t, done)
	close(late)
	assert.Error(t, <-wrote)
}

// A path that is too long for a socket is reached another way.
func TestAskInADeepFolder(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("a longer path is reached through /proc, which is not here")
	}
	p := Place{Root: "/w", Folder: filepath.Join(t.TempDir(), strings.Repeat("deep/", 30), "store")}
	store(t, p.Folder)
	require.Greater(t, len(p.Socket()), 108)
	server(t, p, func(conn net.Conn, _ Call) { conn.Write(append([]byte{Taken}, Answered([]byte("told"))...)) })
	answer, done := Ask(p, Call{})
	assert.True(t, done)
	assert.Equal(t, "told", string(answer))
}

type unread struct{}

func (unread) Read([]byte) (int, error) { return 0, errors.New("it was read") }

// hookIn runs a hook's process in the place of a payload, and returns what it
// wrote, and what went the long way.
func hookIn(t *testing.T, in io.Reader, env map[string]string, args ...string) (out string, long []byte, err error) {
	t.Helper()
	var b bytes.Buffer
	err = Hook{Args: args, Getenv: func(name string) string { return env[name] }, Parent: 7, In: in, Out: &b,
		Long: func(payload []byte) error { long = append([]byte{}, payload...); return nil }}.Run()
	return b.String(), long, err
}

func TestHook(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	p := Place{Root: root, Folder: store(t, filepath.Join(root, ".git", "retcon"))}
	payload := `{"cwd":"` + root + `"}`
	claude := []string{"hook", "claude", "Stop"}

	for _, value := range []string{"1", "yes"} {
		_, long, err := hookIn(t, unread{}, map[string]string{"RETCON_DISABLE": value}, claude...)
		require.NoError(t, err)
		assert.Nil(t, long)
	}
	_, long, err := hookIn(t, strings.NewReader(payload), map[string]string{"RETCON_DISABLE": "0"}, claude...)
	require.NoError(t, err)
	assert.Equal(t, payload, string(long), "nobody listens")

	var got Call
	server(t, p, func(conn net.Conn, c Call) {
		got = c
		conn.Write(append([]byte{Taken}, Answered([]byte("told"))...))
	})
	out, long, err := hookIn(t, strings.NewReader(payload), map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, claude...)
	require.NoError(t, err)
	assert.Nil(t, long)
	assert.Equal(t, "told", out)
	assert.Equal(t, Call{Agent: "claude", Event: "Stop", Home: "/h", XDGConfigHome: "/x", Parent: 7, Payload: []byte(payload)}, got)

	for _, name := range []string{"RETCON_DEBUG", "RETCON_RUN", "RETCON_TAPE", "RETCON_TAPE_MAX_BYTES"} {
		_, long, err = hookIn(t, strings.NewReader(payload), map[string]string{name: "1"}, claude...)
		require.NoError(t, err)
		assert.Equal(t, payload, string(long), name)
	}
	for _, args := range [][]string{nil, {"hook"}, {"hook", "claude"}, {"hook", "claude", "Stop", "more"}, {"timeline", "claude", "Stop"}, {"hook", "cursor", "stop"}} {
		_, long, err = hookIn(t, strings.NewReader(payload), nil, args...)
		require.NoError(t, err)
		assert.Equal(t, payload, string(long), args)
	}
	much := io.MultiReader(strings.NewReader(`{"a":"`), io.LimitReader(zeros{}, PayloadMax))
	_, long, err = hookIn(t, much, nil, claude...)
	require.NoError(t, err)
	assert.Len(t, long, PayloadMax)
	_, _, err = hookIn(t, unread{}, nil, claude...)
	assert.Error(t, err)

	put(t, filepath.Join(p.Folder, "config.toml"), "disabled = true\n")
	out, long, err = hookIn(t, strings.NewReader(payload), nil, claude...)
	require.NoError(t, err)
	assert.Nil(t, long)
	assert.Empty(t, out)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
