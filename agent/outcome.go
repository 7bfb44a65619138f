package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// serverTool takes the name apart that Claude Code and those that follow it give
// a tool of an MCP server.
func serverTool(tool string) (server, name string) {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return "", ""
	}
	server, name, _ = strings.Cut(rest, "__")
	return server, name
}

// exit is a field that is an exit status; nil when there is none.
func (o object) exit(key string) *int {
	var n *int
	if json.Unmarshal(o[key], &n) != nil {
		return nil
	}
	return n
}

func exited(n int) *int { return &n }

// said is the text in what a tool answered: a text, the parts of a message, or
// an object that holds either.
func said(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []object
	if json.Unmarshal(raw, &parts) == nil {
		var all []string
		for _, p := range parts {
			if t := p.str("text"); t != "" {
				all = append(all, t)
			}
		}
		return strings.Join(all, "\n")
	}
	o, err := parseObject(raw)
	if err != nil {
		return ""
	}
	for _, key := range []string{"content", "llmContent", "output"} {
		if o[key] != nil {
			return said(o[key])
		}
	}
	return ""
}

// claudeOutcome: what a hook is told tells success from failure, and a shell's
// failure begins with its exit status. Some that are none, as of a grep that
// finds nothing, are told as a success with an interpretation.
func claudeOutcome(e *Event, response object) {
	shell := claudeShell[e.Tool]
	switch {
	case e.Kind == ToolFailed:
		e.Output = e.Error
		if e.Interrupted {
			return
		}
		if !shell {
			e.Exit = exited(1)
			return
		}
		head, rest, _ := strings.Cut(e.Error, "\n")
		if code, ok := strings.CutPrefix(head, "Exit code "); ok {
			if n, err := strconv.Atoi(code); err == nil {
				e.Exit, e.Output = exited(n), rest
			}
		}
	case e.Kind != ToolAfter || e.Background:
	case shell:
		e.Output = strings.Trim(response.str("stdout")+"\n"+response.str("stderr"), "\n")
		if !response.yes("interrupted") && response.str("returnCodeInterpretation") == "" {
			e.Exit = exited(0)
		}
	default:
		e.Output, e.Exit = said(e.ToolOutput), exited(0)
	}
}

// codexOutcome: of a shell only the output is told, see [ExitInTranscript].
func codexOutcome(e *Event, o object) {
	if e.Kind != ToolAfter {
		return
	}
	e.Output = said(e.ToolOutput)
	if e.Server != "" {
		e.Exit = exited(0)
		if response := o.sub("tool_response"); len(response) == 0 || response.yes("isError") {
			e.Exit = exited(1)
		}
	}
}

// geminiOutcome: the model is told the output of a shell, and behind it how the
// shell ended, unless that was well. Where the one ends and the other begins is
// known from what the user is shown.
func geminiOutcome(e *Event, response object) {
	if e.Kind != ToolAfter || e.Background {
		return
	}
	e.Output = response.str("returnDisplay")
	if e.Tool != "run_shell_command" {
		if e.Output == "" {
			e.Output = said(e.ToolOutput)
		}
		e.Exit = exited(0)
		if response["error"] != nil {
			e.Exit = exited(1)
		}
		return
	}
	told := strings.TrimPrefix(response.str("llmContent"), "<untrusted_context>\n")
	rest, ok := strings.CutPrefix(told, "Output: "+e.Output+"\n")
	if !ok || e.Output == "" {
		rest, ok = strings.CutPrefix(told, "Output: (empty)\n")
	}
	if !ok {
		return
	}
	code := 0
	for line := range strings.Lines(rest) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case value == "(none)":
		case name == "Error" || name == "Signal" || name == "Background PIDs":
			return
		case name == "Exit Code":
			var err error
			if code, err = strconv.Atoi(value); err != nil {
				return
			}
		}
	}
	e.Exit = exited(code)
}

// openCodeOwn are tools of its own that are named as one of a server would be.
var openCodeOwn = map[string]bool{"apply_patch": true, "plan_enter": true, "plan_exit": true}

// openCodeServer: a tool of a server is called by both names with a line between
// them. Which of several lines that is can't be told, the first is taken.
func openCodeServer(tool string) (server, name string) {
	if openCodeOwn[tool] || strings.HasPrefix(tool, "lsp_") {
		return "", ""
	}
	server, name, ok := strings.Cut(tool, "_")
	if !ok {
		return "", ""
	}
	return server, name
}

func openCodeOutcome(e *Event, output object) {
	e.Output = said(e.ToolOutput)
	switch {
	case e.Tool == "bash":
		e.Exit = output.sub("metadata").exit("exit")
	case output.yes("isError"):
		e.Exit = exited(1)
	default:
		e.Exit = exited(0)
	}
}

// exitBack is how much of a transcript's end is looked through.
const exitBack = 1 << 20

// ExitInTranscript finds how the command of a call ended, which some clients
// write down before its hook is called and tell the hook nothing of. Nil: it is
// not among what was written last.
func ExitInTranscript(agent string, r io.ReaderAt, size int64, call string) (*int, error) {
	c, err := named(agent)
	if err != nil || c.record == nil || c.record.exit == nil || call == "" {
		return nil, err
	}
	from := max(0, size-exitBack)
	text := make([]byte, size-from)
	n, err := r.ReadAt(text, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	lines := bytes.Split(text[:n], []byte("\n"))
	for _, line := range slices.Backward(lines) {
		if !bytes.Contains(line, []byte(call)) {
			continue
		}
		o, err := parseObject(line)
		if err != nil {
			continue // cut off, or still being written
		}
		if id, exit := c.record.exit(o); id == call && exit != nil {
			return exit, nil
		}
	}
	return nil, nil
}
