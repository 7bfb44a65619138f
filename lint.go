package retcon

import "path/filepath"

// Finding is something in a workflow that is probably not what was meant.
type Finding struct {
	File    string `json:"file"` // seen from Options.Dir, as the file was named
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Lint loads a workflow and looks it over. It fails as RunWorkflow does when the
// file can't be loaded.
func (w *Workspace) Lint(file string) ([]Finding, error) {
	p, err := w.body(file)
	if err != nil {
		return nil, err
	}
	out := []Finding{}
	for _, f := range p.Lint() {
		out = append(out, Finding{File: filepath.Join(filepath.Dir(file), filepath.FromSlash(f.File)), Line: f.Line, Col: f.Col,
			Message: f.Message, Hint: f.Hint})
	}
	return out, nil
}
