package agent

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
)

var codexBase = regexp.MustCompile(`"history_base":\s*\{[^{}]*\}`)

// codexContinue gives the client a new rollout that ends where the pointer
// does. The old one is not touched: forks of it are read from there, by
// offset, and so is what this one may itself go on from.
func codexContinue(p Pointer, o ContinueOptions) (Continuation, error) {
	text, err := o.kept(p)
	if err != nil {
		return Continuation{}, err
	}
	base := codexBase.Find(text)
	text = bytes.ReplaceAll(text, []byte(p.Session), []byte(o.Session))
	if base != nil {
		text = bytes.Replace(text, codexBase.Find(text), base, 1)
	}
	k := Continuation{
		Session: o.Session, Argv: []string{"codex", "resume", o.Session},
		Files: []File{{Path: codexRollout(p.Transcript, o.Session), Content: text}},
	}
	if o.Headless {
		k.Argv, err = codexHeadless.goOn("codex", RunOptions{Session: o.Session})
	}
	return k, err
}

var rolloutTime = regexp.MustCompile(`^rollout-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-`)

// codexRollout is the file of another conversation beside one.
func codexRollout(path, session string) string {
	name := filepath.Base(path)
	head := rolloutTime.FindString(name)
	if head == "" {
		head, _, _ = strings.Cut(name, ".")
		head += "-"
	}
	return filepath.Join(filepath.Dir(path), head+session+".jsonl")
}
