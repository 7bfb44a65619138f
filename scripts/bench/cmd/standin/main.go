// Command standin does what a coding agent does, as far as hooks and time are
// concerned, without a model and without being one: it starts, waits for answers
// as for a model, and runs the tools that they ask for, a shell each. Before and
// after a tool, and at both ends of the prompt, it runs the hook's command, when
// it has one, with payloads that a real client was recorded to send.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/retcon-dev/retcon/scripts/bench/internal/payload"
)

func main() {
	var s standin
	flag.StringVar(&s.hook, "hook", "", "what runs for an event, without its name; none when empty")
	flag.StringVar(&s.session, "session", "", "name of the conversation")
	flag.StringVar(&s.payloads, "payloads", "", "folder of the recorded payloads")
	flag.IntVar(&s.calls, "calls", 8, "tools to run")
	flag.DurationVar(&s.latency, "latency", 0, "how long each answer takes")
	flag.Parse()
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

type standin struct {
	hook, session, payloads string
	calls                   int
	latency                 time.Duration
	dir                     string
}

func (s *standin) run() (err error) {
	if s.dir, err = os.Getwd(); err != nil {
		return err
	}
	if err := s.tell("SessionStart", "SessionStart.startup", nil); err != nil {
		return err
	}
	if err := s.tell("UserPromptSubmit", "UserPromptSubmit", nil); err != nil {
		return err
	}
	for n := range s.calls {
		time.Sleep(s.latency) // an answer that asks for a tool
		if err := s.call(n); err != nil {
			return err
		}
	}
	time.Sleep(s.latency) // the last, which asks for none
	if err := s.tell("Stop", "Stop", nil); err != nil {
		return err
	}
	return s.tell("SessionEnd", "SessionEnd", nil)
}

// call runs one tool.
func (s *standin) call(n int) error {
	id := payload.Change{"tool_use_id": fmt.Sprintf("%s-%d", s.session, n)}
	if err := s.tell("PreToolUse", "PreToolUse.Bash", id); err != nil {
		return err
	}
	tool := exec.Command("/bin/sh", "-c", `echo "$1" > "agent-$2.txt"`, "sh", s.session, fmt.Sprint(n))
	tool.Dir = s.dir
	if out, err := tool.CombinedOutput(); err != nil {
		return fmt.Errorf("tool: %w: %s", err, out)
	}
	return s.tell("PostToolUse", "PostToolUse.Bash", id)
}

// tell runs the hook's command for an event, as clients do: by a shell, and
// waiting for it.
func (s *standin) tell(event, recorded string, change payload.Change) error {
	if s.hook == "" {
		return nil
	}
	text, err := payload.Recorded(filepath.Join(s.payloads, recorded+".json"), s.dir, s.session, change)
	if err != nil {
		return err
	}
	hook := exec.Command("/bin/sh", "-c", s.hook+" hook claude "+event+" 2>/dev/null || true")
	hook.Dir, hook.Stdin = s.dir, bytes.NewReader(text)
	if out, err := hook.Output(); err != nil || len(out) > 0 {
		return fmt.Errorf("hook %s: %v: %q", event, err, out)
	}
	return nil
}
