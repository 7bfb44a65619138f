package repo

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Private describes a git directory for another directory's files: commands
// run there find the history of the repository it is made from, and write
// nowhere but into it.
type Private struct {
	Dir     string               // to be made
	Head    Head                 // detached where there is an ID, else the unborn branch
	Objects []string             // object directories to read from, as an alternates file names them
	Has     func(id string) bool // refs to anything else are left out
}

// pinned are the keys whose value, wherever it was set, is written down: they
// say how files are read and who commits. Remotes, hooks and aliases stay where
// they are.
var pinned = []string{"core.filemode", "core.ignorecase", "core.symlinks", "core.precomposeunicode", "core.protecthfs",
	"core.protectntfs", "core.autocrlf", "core.eol", "core.safecrlf", "core.trustctime", "core.checkstat", "core.quotepath",
	"core.sparsecheckout", "core.sparsecheckoutcone", "user.", "author.", "committer.", "filter."}

// WritePrivate makes a git directory of its own from r: branches, tags and the
// rules for files as they are now, without index, reflogs, stash and remotes.
// It writes HEAD last, without which the directory is none. r is only read.
func (r *Repo) WritePrivate(p Private) error {
	if err := r.writable(); err != nil {
		return err
	}
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(p.Dir, sub), 0o700); err != nil {
			return err
		}
	}
	packed, symbolic, err := r.allRefs(p.Has)
	if err != nil {
		return err
	}
	head := p.Head.ID
	if head == "" {
		if p.Head.Ref == "" {
			p.Head.Ref = "refs/heads/main"
		}
		head = "ref: " + p.Head.Ref
		delete(packed, p.Head.Ref)
	}
	files := map[string][]byte{
		"objects/info/alternates": []byte(strings.Join(p.Objects, "\n") + "\n"),
		"packed-refs":             packedFile(packed),
		"config":                  r.privateConfig(),
	}
	for name, target := range symbolic {
		files[name] = []byte("ref: " + target + "\n")
	}
	for _, copied := range []struct{ from, to string }{
		{r.ExcludeFile(), "info/exclude"},
		{r.AttributesFile(), "info/attributes"},
		{filepath.Join(r.GitDir, "info", "sparse-checkout"), "info/sparse-checkout"},
		{filepath.Join(r.CommonDir, "shallow"), "shallow"},
	} {
		data, err := readRegular(copied.from, maxPackedRefs)
		switch {
		case err == nil:
			files[copied.to] = data
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(p.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(p.Dir, "HEAD"), []byte(head+"\n"), 0o600)
}

// allRefs returns the shared refs that has knows, and the symbolic ones. What
// cannot be read is left out: it is a copy for looking things up.
func (r *Repo) allRefs(has func(string) bool) (ids, symbolic map[string]string, err error) {
	ids, symbolic = make(map[string]string), make(map[string]string)
	data, err := r.packedRefs()
	if err != nil {
		return nil, nil, err
	}
	for line := range bytes.Lines(data) {
		id, ok := leadingHex(line)
		if ok && len(line) > len(id)+1 {
			ids[strings.TrimRight(string(line[len(id)+1:]), "\r\n")] = id
		}
	}
	top := filepath.Join(r.CommonDir, "refs")
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // removed meanwhile, or not for us
		}
		name := "refs/" + filepath.ToSlash(path[len(top)+1:])
		v, err := r.readRef(name)
		switch {
		case err != nil: // no ref
		case v.symbolic != "":
			symbolic[name] = v.symbolic
		case v.id != "":
			ids[name] = v.id
		}
		return nil
	})
	for name, id := range ids {
		if !validRefName(name) || !strings.HasPrefix(name, "refs/") || r.refDir(name) != r.CommonDir ||
			name == "refs/stash" || !has(id) {
			delete(ids, name)
		}
	}
	return ids, symbolic, err
}

func packedFile(refs map[string]string) []byte {
	b := []byte("# pack-refs with: sorted \n")
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		b = fmt.Appendf(b, "%s %s\n", refs[name], name)
	}
	return b
}

// privateConfig pins what this repository and its user have configured. It
// keeps no rubbish collection: that would repack what is about to go away.
func (r *Repo) privateConfig() []byte {
	var b bytes.Buffer
	put := func(s setting) {
		section, name := s.key, ""
		if i := strings.LastIndexByte(s.key, '.'); i >= 0 {
			section, name = s.key[:i], s.key[i+1:]
		}
		if top, sub, ok := strings.Cut(section, "."); ok {
			fmt.Fprintf(&b, "[%s \"%s\"]\n", top, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sub))
		} else {
			fmt.Fprintf(&b, "[%s]\n", section)
		}
		if s.bare {
			fmt.Fprintf(&b, "\t%s\n", name)
			return
		}
		fmt.Fprintf(&b, "\t%s = %s\n", name, quoteConfig(s.value))
	}
	version := "0"
	promisor := r.format.partialClone
	if promisor != "" {
		version = "1"
	}
	put(setting{key: "core.repositoryformatversion", value: version})
	put(setting{key: "core.bare", value: "false"})
	put(setting{key: "gc.auto", value: "0"})
	for _, key := range []struct{ name, path string }{
		{"core.excludesfile", r.Settings.ExcludesFile}, {"core.attributesfile", r.Settings.AttributesFile},
	} {
		if _, set := r.Config.find(key.name); set && key.path != "" {
			put(setting{key: key.name, value: key.path})
		}
	}
	keys := pinned
	if promisor != "" {
		put(setting{key: "extensions.partialclone", value: promisor})
		keys = append(slices.Clone(pinned), "remote."+promisor+".")
	}
	for _, s := range r.Config.settings {
		for _, key := range keys {
			if s.key == key || strings.HasSuffix(key, ".") && strings.HasPrefix(s.key, key) {
				put(s)
				break
			}
		}
	}
	return b.Bytes()
}

func quoteConfig(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(s) + `"`
}
