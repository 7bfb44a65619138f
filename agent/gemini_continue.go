package agent

import "path/filepath"

// geminiContinue has the client import a copy that ends where the pointer
// does, under an id of its own: the client has deleted conversations whose ids
// begin alike.
func geminiContinue(p Pointer, o ContinueOptions) (Continuation, error) {
	text, err := o.kept(p)
	if err != nil {
		return Continuation{}, err
	}
	file := filepath.Join(o.Folder, "gemini-"+o.Session+".jsonl")
	k := Continuation{
		Session: o.Session, Argv: []string{"gemini", "--session-file", file},
		Files: []File{{Path: file, Content: renamed(text, "sessionId", p.Session, o.Session)}},
		Note:  "Gemini CLI 0.61 may delete a conversation that was continued; a copy is kept here",
	}
	if o.Headless {
		k.Argv, err = geminiHeadless.goOn("gemini", RunOptions{Extra: []string{"--session-file", file}})
	}
	return k, err
}
