package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"path/filepath"
	"regexp"
	"slices"
)

// ExportCommand prints a conversation that the client keeps in a database:
// the Source of a continuation. It fails with ErrUnsupported for the others.
func ExportCommand(agent, session string) ([]string, error) {
	c, err := named(agent)
	if err != nil {
		return nil, err
	}
	if c.Name != OpenCode {
		return nil, unsupported(c, "export")
	}
	return []string{"opencode", "export", session}, nil
}

var openCodeID = regexp.MustCompile(`"(?:ses|msg|prt)_[0-9A-Za-z]+"`)

// openCodeContinue has the client import what is kept of an export, under new
// ids. Its own undo would write files as well.
func openCodeContinue(p Pointer, o ContinueOptions) (Continuation, error) {
	if o.Source == nil {
		return Continuation{}, fmt.Errorf("no export: %w", ErrSource)
	}
	text, err := io.ReadAll(io.NewSectionReader(o.Source, 0, 1<<62))
	if err != nil {
		return Continuation{}, err
	}
	var export struct {
		Info     json.RawMessage   `json:"info"`
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(text, &export); err != nil {
		return Continuation{}, fmt.Errorf("%w: %w", ErrSource, err)
	}
	keep := slices.IndexFunc(export.Messages, func(m json.RawMessage) bool {
		id := messageID(m)
		return id == p.Entry && p.Entry != "" || id == p.Before && p.Before != ""
	})
	if keep < 0 {
		return Continuation{}, fmt.Errorf("%s: %w", orElse(p.Entry, p.Before), ErrSource)
	}
	if messageID(export.Messages[keep]) == p.Entry {
		keep++
	}
	export.Messages = export.Messages[:keep]
	kept, err := json.Marshal(export)
	if err != nil {
		return Continuation{}, err
	}
	session := renamedID(p.Session, o.Session)
	file := filepath.Join(o.Folder, "opencode-"+session+".json")
	k := Continuation{
		Session: session, Argv: []string{"opencode", "--session", session}, Before: [][]string{{"opencode", "import", file}},
		Files: []File{{Path: file, Content: renamedIDs(kept, o.Session)}},
	}
	if o.Headless {
		k.Argv, err = openCodeHeadless.goOn("opencode", RunOptions{Session: session})
	}
	return k, err
}

// ExportedCall finds the message of an export that a call was made in, and tells
// whether it was the only one there. A conversation is continued from whole
// messages. It fails with *NoCutError, ErrSource or ErrUnsupported.
func ExportedCall(agent string, export []byte, call string) (message string, alone bool, err error) {
	if _, err := ExportCommand(agent, ""); err != nil {
		return "", false, err
	}
	o, err := parseObject(export)
	if err != nil {
		return "", false, fmt.Errorf("%w: %w", ErrSource, err)
	}
	for _, m := range o.objects("messages") {
		calls, found := 0, false
		for _, part := range m.objects("parts") {
			if part.str("type") == "tool" {
				calls++
				found = found || part.str("callID") == call
			}
		}
		if found {
			return m.sub("info").str("id"), calls == 1, nil
		}
	}
	return "", false, &NoCutError{Call: call}
}

func messageID(m json.RawMessage) string {
	o, err := parseObject(m)
	if err != nil {
		return ""
	}
	return o.sub("info").str("id")
}

// renamedIDs gives the session, its messages and their parts new ids: those
// that the export itself carries, not those of other sessions.
func renamedIDs(export []byte, salt string) []byte {
	own := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if id, ok := v["id"].(string); ok {
				own[id] = true
			}
			for key, sub := range v {
				if key != "state" && key != "metadata" { // what tools said, not what the client did
					walk(sub)
				}
			}
		case []any:
			for _, sub := range v {
				walk(sub)
			}
		}
	}
	var tree any
	if err := json.NewDecoder(bytes.NewReader(export)).Decode(&tree); err != nil {
		panic("BUG: an export that was just written: " + err.Error())
	}
	walk(tree)
	return openCodeID.ReplaceAllFunc(export, func(quoted []byte) []byte {
		id := string(quoted[1 : len(quoted)-1])
		if !own[id] {
			return quoted
		}
		return []byte(`"` + renamedID(id, salt) + `"`)
	})
}

// renamedID is another id at the same place in the order: its second half is
// random, its first a time.
func renamedID(id, salt string) string {
	const half, tail = 16, 14
	if len(id) < half+tail {
		return id
	}
	sum := sha256.Sum256([]byte(salt + id))
	return id[:half] + fmt.Sprintf("%014s", new(big.Int).SetBytes(sum[:9]).Text(62))[:tail]
}
