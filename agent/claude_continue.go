package agent

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
)

// claudeContinue: without a person, the client branches off at an entry of the
// file itself. In a terminal it takes no such option, and once the file is gone
// there is nothing to branch off from: it is given a new file with the chain
// that is kept.
func claudeContinue(p Pointer, o ContinueOptions) (Continuation, error) {
	if o.Headless && !o.Gone {
		argv, err := claudeHeadless.goOn("claude", RunOptions{Session: p.Session})
		return Continuation{
			Argv: append(argv, "--resume-session-at", p.Entry, "--fork-session", "--session-id", o.Session), Session: o.Session,
		}, err
	}
	text, err := o.kept(p)
	if err != nil {
		return Continuation{}, err
	}
	entries, _, err := claudeRecord.read(bytes.NewReader(text), 0)
	if err != nil {
		return Continuation{}, err
	}
	last := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == p.Entry })
	if last < 0 {
		return Continuation{}, fmt.Errorf("%s: %w", p.Transcript, ErrSource)
	}
	var chain []byte
	for _, e := range claudeLive(entries[:last+1]) {
		chain = append(chain, renamed(text[e.Offset:e.End()], "sessionId", p.Session, o.Session)...)
	}
	k := Continuation{
		Session: o.Session, Argv: []string{"claude", "--resume", o.Session},
		Files: []File{{Path: filepath.Join(filepath.Dir(p.Transcript), o.Session+".jsonl"), Content: chain}},
	}
	if o.Headless {
		k.Argv, err = claudeHeadless.goOn("claude", RunOptions{Session: o.Session})
	}
	return k, err
}
