package cli

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
)

// checkAgents looks at every agent whose settings have hooks of ours: how they
// stand, whether an event gets through, and when the last one came.
func (c *console) checkAgents(ctx context.Context, w *retcon.Workspace) ([]checked, error) {
	heard, err := w.Deliveries(ctx)
	if err != nil {
		return nil, err
	}
	exe, err := self()
	if err != nil {
		return nil, err
	}
	var all []checked
	for _, i := range agent.Clients() {
		if !i.Hooks {
			continue
		}
		for _, scope := range []agent.Scope{agent.User, agent.Project} {
			s := agent.Setup{Home: c.Home, Env: c.Getenv, Scope: scope, Root: w.Root(), Exe: quicker(exe)}
			if scope == agent.User && c.Home == "" {
				continue
			}
			st, err := s.Status(i.Name)
			if err != nil || st.State == agent.Missing {
				continue // no hooks of ours, or settings that are none of our business
			}
			one := checked{Name: "agent " + i.Name, Hint: "retcon agents add " + i.Name}
			if scope == agent.Project {
				one.Name, one.Hint = one.Name+" in the project", one.Hint+" --project"
			}
			last, ok := heard[i.Name]
			one.OK, one.Detail = c.delivers(ctx, w, s, st)
			switch {
			case !one.OK && st.Trust != "" && st.Trust != "trusted":
				one.Hint += " --trust"
			case one.OK:
				one.Hint = ""
			}
			if ok {
				one.Detail += fmt.Sprintf("; last event %s, in %s", c.since(last.At), last.Run)
			} else {
				one.Detail += "; the agent has never called here"
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// since says how long ago something was.
func (c *console) since(at time.Time) string {
	return lasted(c.Now().Sub(at)) + " ago"
}

// delivers tells whether events of an agent arrive, and what is in their way. The
// hook that its settings name is called with an event of ours, in a workspace
// made for that.
func (c *console) delivers(ctx context.Context, w *retcon.Workspace, s agent.Setup, st agent.Status) (ok bool, detail string) {
	switch {
	case st.Disabled != "":
		return false, "the agent runs no hooks: " + st.Disabled
	case st.State == agent.Partly:
		var missing []string
		for _, e := range st.Events {
			if e.State == agent.Missing {
				missing = append(missing, e.Event)
			}
		}
		return false, "no hooks for " + strings.Join(missing, ", ")
	case st.State != agent.Installed:
		return false, "the hooks are not as they would be installed"
	case st.Trust != "" && st.Trust != "trusted":
		return false, "the agent skips hooks that are " + st.Trust
	}
	err := w.Scratch(func(dir string) error {
		p, err := s.Probe(st.Agent, "doctor", dir)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", p.Command)
		cmd.Dir, cmd.Env, cmd.Stdin = dir, c.Environ(), bytes.NewReader(p.Payload)
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", p.Command, err)
		}
		arrived, err := retcon.Arrived(ctx, retcon.Options{Dir: dir, Now: c.Now}, st.Agent)
		if err == nil && !arrived {
			err = fmt.Errorf("%s has recorded nothing", p.Command)
			if c.Getenv("RETCON_DISABLE") != "" {
				err = fmt.Errorf("hooks are switched off by RETCON_DISABLE")
			}
		}
		return err
	})
	if err != nil {
		return false, "a test event did not arrive: " + err.Error()
	}
	return true, "installed; a test event arrived"
}

// probeTimeout is how long a hook may take over a test event in an empty folder:
// longer than any client waits.
const probeTimeout = time.Minute
