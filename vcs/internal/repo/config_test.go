package repo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listed is what git reads from a config file: "key\nvalue" or "key" alone.
func listed(g git, file string) []string {
	out := g.run("config", "-z", "--list", "-f", file)
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

func parsed(data string) (settings []string, bad int) {
	parseConfig([]byte(data), func(_ int, key, value string, bare bool) {
		if bare {
			settings = append(settings, key)
		} else {
			settings = append(settings, key+"\n"+value)
		}
	}, func(int, string) { bad++ })
	return settings, bad
}

func TestConfigSyntax(t *testing.T) {
	cases := map[string]string{
		"plain":                 "[core]\n\tbare = false\n",
		"one line":              "[core] bare = true\n",
		"no newline at end":     "[core]\nbare = true",
		"valueless":             "[a]\n\tb\n\tc =\n",
		"case":                  "[CoRe \"SubCase\"]\n\tFileMODE = True\n",
		"old subsection":        "[Branch.Topic]\nx = 1\n",
		"dotted subsection":     "[remote \"a.b.c\"]\nurl = x\n",
		"escaped subsection":    "[a \"q\\\"b\\\\c\\d\"]\nx = 1\n",
		"quotes":                "[a]\nb = \"  two  \" three \nc = x\"y\"z\n",
		"quoted comment":        "[a]\nb = \"# not\" # is\nc = x ; is\nd = y;z\n",
		"escapes":               "[a]\nb = one\\ttwo\\nthree\\\\four\\\"five\\b\n",
		"continuation":          "[a]\nb = one \\\n  two\\\nthree\n c = \\\n  x\n",
		"continuation, nothing": "[a]\nb = x \\\n\nc = 1\n",
		"continuation at end":   "[a]\nb = one\\",
		"space before a quote":  "[a]\nb = x \"\"\nc = \"\"   y\n",
		"comments":              "# one\n; two\n[a] # three\nb = 1 # four\n",
		"CRLF":                  "[a]\r\nb = one\r\nc = \"two\"\r\n d\r\n",
		"lone CR":               "[a]\nb = one\rtwo\n",
		"byte order mark":       "\xef\xbb\xbf[a]\nb = 1\n",
		"bytes":                 "[a \"\xff\"]\nb = \xfe\xff\n",
		"several":               "[a]\nb = 1\nb = 2\n[c]\n[a]\nb = 3\n",
		"bad for others":        "[branch \"x\"]\nmerge = foo\nrebase = merges\n[pack]\nwindow = 1k\n[remote \"o\"]\nfetch = ^refs/heads/x\n",
		"header and setting":    "[a]b=1\n[c \"d\"]e\n",
		"dash and digits":       "[a-1]\nb-2c = x\n",
		"space around equals":   "[a]\nb   =   x   \nc\t=\ty\t\n",
		"subsection with space": "[a   \"b\"]\nc = 1\n",
	}
	for name, data := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGit(t)
			g.write("config", data)
			got, bad := parsed(data)
			assert.Equal(t, listed(g, "config"), withSpaces(got))
			assert.Zero(t, bad)
		})
	}
}

// withSpaces gives white space inside values as git 2.39 does.
func withSpaces(settings []string) []string {
	for i, s := range settings {
		key, value, ok := strings.Cut(s, "\n")
		if ok && strings.Contains(value, "\r") {
			settings[i] = key + "\n" + strings.ReplaceAll(value, "\r", " ")
		}
	}
	return settings
}

func TestConfigBroken(t *testing.T) {
	cases := []struct {
		name, data string
		want       []string
	}{
		{"open quote", "[a]\nb = \"x\nc = 1\n", []string{"a.c\n1"}},
		{"unknown escape", "[a]\nb = \\q and more\nc = 1\n", []string{"a.c\n1"}},
		{"no equals", "[a]\nb c\nc = 1\n", []string{"a.c\n1"}},
		{"not a name", "[a]\n= 1\n9x = 2\nc = 1\n", []string{"a.c\n1"}},
		{"open header", "[a\nb = 1\n[c]\nd = 1\n", []string{"c.d\n1"}},
		{"open subsection", "[a \"b\nx = 1\n[c]\nd = 1\n", []string{"c.d\n1"}},
		{"words after subsection", "[a \"b\" c]\nx = 1\n[c]\nd = 1\n", []string{"c.d\n1"}},
		{"stray text first", "b 1\n[c]\nd = 1\n", []string{"c.d\n1"}},
		{"conflict markers", "<<<<<<< ours\n[a]\nb = 1\n=======\nb = 2\n>>>>>>> theirs\n", []string{"a.b\n1", "a.b\n2"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := newGit(t)
			g.write("config", c.data)
			_, err := g.try("config", "--list", "-f", "config")
			require.Error(t, err, "git reads it")
			got, bad := parsed(c.data)
			assert.Equal(t, c.want, got)
			assert.NotZero(t, bad)
		})
	}
	t.Run("a repository stays usable", func(t *testing.T) {
		g := newGit(t)
		id := g.commit("one")
		g.write(".git/config", g.read(".git/config")+"[broken\nx = 1\n[core]\n\tignoreCase\n\tautocrlf = \"in\n")
		r := g.open()
		head, err := r.Head()
		require.NoError(t, err)
		assert.Equal(t, id, head.ID)
		assert.True(t, r.Settings.IgnoreCase)
		require.Len(t, r.Warnings, 3)
		assert.Equal(t, filepath.Join(g.dir, ".git/config"), r.Warnings[0].File)
		assert.Equal(t, 6, r.Warnings[0].Line)
	})
}

func TestConfigBool(t *testing.T) {
	for _, value := range []string{"", "true", "YES", "on", "false", "No", "off", "0", "1", "-1", "2k", "0x10",
		"maybe", "1x", "k", " 1"} {
		g := newGit(t)
		g.run("config", "a.b", value)
		got, ok := g.open().Config.Bool("A.B")
		out, err := g.try("config", "--type=bool", "a.b")
		assert.Equal(t, err == nil, ok, "%q: %s", value, out)
		if err == nil {
			assert.Equal(t, strings.TrimSpace(out) == "true", got, "%q", value)
		}
	}
}

func TestConfigFilesAndIncludes(t *testing.T) {
	g := newGit(t)
	g.commit("one")
	g.run("remote", "add", "origin", "https://example.com/team/x.git")
	opts := Options{Home: g.home, SystemConfig: filepath.Join(g.home, "system")}
	at := g.at(g.home)
	at.write("system", "[a]\nlevel = system\nonly = system\n")
	at.write(".config/git/config", "[a]\nlevel = xdg\n")
	conditions := []string{
		"gitdir:~/../work/", "gitdir:work/", "gitdir:work/.git", "gitdir:WORK/", "gitdir/i:WORK/", "gitdir:./../work/",
		"gitdir:" + g.dir + "/.git", "gitdir:" + g.dir + "/", "gitdir:" + g.dir, "gitdir:wor", "gitdir:**/w*k/**",
		"gitdir:/nowhere/", "onbranch:main", "onbranch:ma*", "onbranch:other", "onbranch:m/", "onbranch:**",
		"hasconfig:remote.*.url:https://example.com/**", "hasconfig:remote.*.url:https://example.org/**",
		"unknown:x",
	}
	global := "[include]\npath = more\npath = ~/more2\npath = missing\n"
	for i, c := range conditions {
		name := "cond" + string(rune('a'+i))
		global += "[includeIf \"" + c + "\"]\npath = " + name + "\n"
		at.write(name, "[cond]\n"+name+" = yes\n")
	}
	at.write(".gitconfig", global+"[a]\nlevel = home\n")
	at.write("more", "[more]\none = 1\n[include]\npath = more\n") // includes itself
	at.write("more2", "[more]\ntwo = 1\n")

	r, err := Discover(g.dir, opts)
	require.NoError(t, err)

	// git itself, with the same files in place, but for the circle that it
	// dies of.
	at.write("more", "[more]\none = 1\n")
	list := make(map[string]string)
	for _, s := range listedWith(g, filepath.Join(g.home, ".gitconfig")) {
		key, value, _ := strings.Cut(s, "\n")
		list[key] = value
	}
	for i, c := range conditions {
		key := "cond.cond" + string(rune('a'+i))
		_, want := list[key]
		_, ok := r.Config.Get(key)
		assert.Equal(t, want, ok, c)
	}
	value, _ := r.Config.Get("a.level")
	assert.Equal(t, "home", value)
	value, _ = r.Config.Get("a.only")
	assert.Equal(t, "system", value)
	for _, key := range []string{"more.one", "more.two"} {
		_, ok := r.Config.Get(key)
		assert.True(t, ok, key)
	}
	assert.Len(t, r.Warnings, 1, "the circle: %v", r.Warnings)
	assert.Len(t, r.Config.All("more.one"), maxConfigDepth)

	g.run("config", "a.level", "repository")
	r, err = Discover(g.dir, opts)
	require.NoError(t, err)
	assert.Equal(t, []string{"system", "xdg", "home", "repository"}, r.Config.All("a.level"))
}

// listedWith is everything git reads when global is the user's file.
func listedWith(g git, global string) []string {
	g.t.Helper()
	script := filepath.Join(g.home, "list")
	require.NoError(g.t, os.WriteFile(script, []byte("[alias]\nlisted = !GIT_CONFIG_GLOBAL="+global+" git config -z --list\n"), 0o644))
	out := g.run("-c", "include.path="+script, "listed")
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

func TestSettings(t *testing.T) {
	g := newGit(t)
	set := func(config string) Settings {
		g.write(".git/config", config)
		r, err := Discover(g.dir, Options{Home: "/home/u"})
		require.NoError(t, err)
		return r.Settings
	}
	base := set("")
	assert.Equal(t, Settings{FileMode: true, Symlinks: true, ExcludesFile: "/home/u/.config/git/ignore",
		AttributesFile: "/home/u/.config/git/attributes", AutoCRLF: "false", EOL: "native",
		SparseCheckoutCone: true, SharedRepository: "umask", LogRefUpdates: "true"}, base)

	full := set(`[core]
	ignoreCase
	filemode = false
	symlinks = no
	excludesFile = ~/ig
	attributesfile = rel/attr
	autocrlf = INPUT
	eol = lf
	sparseCheckout = true
	sparseCheckoutCone = false
	sharedRepository = 0640
	logAllRefUpdates = always
[index]
	skipHash = true
[user]
	name = "A U"
	email = a@b
`)
	assert.Equal(t, Settings{IgnoreCase: true, ExcludesFile: "/home/u/ig", AttributesFile: g.dir + "/rel/attr",
		AutoCRLF: "input", EOL: "lf", SparseCheckout: true, SharedRepository: "0640", SkipHash: true,
		UserName: "A U", UserEmail: "a@b", LogRefUpdates: "always"}, full)

	for value, want := range map[string]string{"": "umask", "true": "group", "1": "group", "2": "all", "all": "all",
		"world": "all", "false": "umask", "0": "umask", "0660": "0660", "0040": "umask", "nonsense": "umask"} {
		assert.Equal(t, want, set("[core]\nsharedRepository = "+value+"\n").SharedRepository, value)
	}
	assert.Equal(t, "true", set("[core]\nautocrlf = yes\n").AutoCRLF)
	assert.Equal(t, "", set("[core]\nexcludesFile =\n").ExcludesFile)
	assert.True(t, set("[feature]\nmanyFiles = true\n").SkipHash)
}

func FuzzConfig(f *testing.F) {
	f.Add("[a \"b\\\"\"]\nc = \"x\\\ny\" # z\r\n[d]\ne")
	f.Add("[")
	f.Add("[a]\nb = \\")
	f.Fuzz(func(t *testing.T, data string) {
		lines := strings.Count(data, "\n") + 1
		check := func(line int) {
			if line < 1 || line > lines {
				t.Fatalf("line %d of %d", line, lines)
			}
		}
		parseConfig([]byte(data), func(line int, key, _ string, _ bool) {
			check(line)
			if !strings.Contains(key, ".") {
				t.Fatalf("key %q", key)
			}
		}, func(line int, _ string) { check(line) })
	})
}
