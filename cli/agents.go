package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
)

func (c *console) agentsCommand() *cli.Command {
	scope := func(more ...cli.Flag) []cli.Flag {
		return append([]cli.Flag{
			&cli.BoolFlag{Name: "user", Usage: "in your own settings, for all projects (the default)"},
			&cli.BoolFlag{Name: "project", Usage: "in the settings of this project, in a file that is not tracked where there is one"},
		}, more...)
	}
	return &cli.Command{
		Name:     "agents",
		Usage:    "have coding agents record their sessions here",
		Category: "capture",
		Description: `Hooks are put into an agent's own settings. What is there already keeps every
byte, and remove takes out exactly what add has put in.

Examples:
  retcon agents list
  retcon agents add claude
  retcon agents status claude
  retcon agents remove claude`,
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "show the agents there are, and which of them are heard of", Description: "Examples:\n  retcon agents list",
				Action: c.listAgents,
			},
			{
				Name: "add", Usage: "install the hooks of one", ArgsUsage: "<agent>",
				Flags:       scope(&cli.BoolFlag{Name: "trust", Usage: "mark the hooks as trusted, too, where the agent asks for that"}),
				Description: "Examples:\n  retcon agents add claude\n  retcon agents add codex --trust\n  retcon agents add gemini --project",
				Action: func(ctx *cli.Context) error {
					return c.setup(ctx, func(s agent.Setup, name string) (answer, error) {
						done, err := s.Install(name)
						return newAgentChange(name, done), err
					})
				},
			},
			{
				Name: "remove", Usage: "take the hooks of one out again", ArgsUsage: "<agent>", Flags: scope(),
				Description: "Examples:\n  retcon agents remove claude",
				Action: func(ctx *cli.Context) error {
					return c.setup(ctx, func(s agent.Setup, name string) (answer, error) {
						done, err := s.Remove(name)
						return newAgentChange(name, done), err
					})
				},
			},
			{
				Name: "status", Usage: "show how the hooks of one stand, and when the last event arrived", ArgsUsage: "<agent>", Flags: scope(),
				Description: "Examples:\n  retcon agents status claude",
				Action: func(ctx *cli.Context) error {
					return c.setup(ctx, func(s agent.Setup, name string) (answer, error) {
						return c.agentStatus(ctx.Context, s, name)
					})
				},
			},
		},
	}
}

// setup does something with an agent's settings, and answers.
func (c *console) setup(ctx *cli.Context, do func(s agent.Setup, name string) (answer, error)) error {
	name := ctx.Args().First()
	if _, err := agent.Known(name); err != nil {
		return agentFailure(err)
	}
	if ctx.Bool("user") && ctx.Bool("project") {
		return misuse("--user and --project exclude each other")
	}
	s := agent.Setup{Home: c.Home, Env: c.Getenv, Scope: agent.User, Trust: ctx.Bool("trust")}
	var err error
	if s.Exe, err = self(); err != nil {
		return err
	}
	s.Exe = quicker(s.Exe)
	if ctx.Bool("project") {
		s.Scope = agent.Project
		err := c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
			s.Root = w.Root()
			return nil
		})
		if err != nil {
			return err
		}
	} else if c.Home == "" {
		return &failure{Code: "NOT_FOUND", Message: "there is no home directory", Hints: []string{"retcon agents add " + name + " --project"}}
	}
	told, err := do(s, name)
	if err != nil {
		return agentFailure(err)
	}
	return c.answer(told)
}

// self is how a hook shall call this program: by the name on PATH where that
// leads here, so that it goes on to when the program is replaced.
func self() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	found, err := exec.LookPath("retcon")
	if err != nil || !filepath.IsAbs(found) || !sameFile(found, exe) {
		return exe, nil
	}
	return found, nil
}

// quicker is what hooks call in the place of this program: retcon-hook, which
// starts sooner, where it lies beside it under whatever name it was found by, and
// finds this program beside itself.
func quicker(exe string) string {
	hook := filepath.Join(filepath.Dir(exe), "retcon-hook")
	info, err := os.Stat(hook)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return exe
	}
	real, err := filepath.EvalSymlinks(hook)
	if err != nil || !sameFile(filepath.Join(filepath.Dir(real), "retcon"), exe) {
		return exe
	}
	return hook
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// agentFailure chooses how an error about settings is told.
func agentFailure(err error) error {
	var settings *agent.SettingsError
	var link *agent.LinkError
	f := &failure{Code: "REFUSED", Message: err.Error()}
	switch {
	case errors.Is(err, agent.ErrUnknown), errors.Is(err, agent.ErrUnsupported):
		f.Code, f.Hints = "NOT_FOUND", []string{"retcon agents list"}
	case errors.Is(err, agent.ErrProjectOnly):
		f.Hints = []string{"retcon agents add copilot --project"}
	case errors.As(err, &settings):
		f.Hints = []string{"${EDITOR:-vi} " + quoted(settings.Path)}
	case errors.As(err, &link), errors.Is(err, agent.ErrTaken):
	default:
		return err
	}
	return f
}

// agentChange is what was done to an agent's settings.
type agentChange struct {
	Agent   string   `json:"agent"`
	Touched []touch  `json:"touched"`
	Notes   []string `json:"notes"`
}

// touch is a file that was written or removed.
type touch struct {
	Path string `json:"path"`
	Done string `json:"done"`
}

func newAgentChange(name string, done agent.Change) agentChange {
	told := agentChange{Agent: name, Touched: []touch{}, Notes: []string{}}
	for _, t := range done.Touched {
		told.Touched = append(told.Touched, touch{Path: t.Path, Done: t.Done})
	}
	told.Notes = append(told.Notes, done.Notes...)
	return told
}

func (a agentChange) Text(p *page) {
	if len(a.Touched) == 0 {
		p.printf("nothing to do\n")
	}
	for _, t := range a.Touched {
		p.printf("%s %s\n", t.Done, name(t.Path))
	}
	for _, n := range a.Notes {
		p.printf("note: %s\n", clean(n))
	}
}

// agentStatus is how the hooks of an agent stand.
type agentStatus struct {
	Agent    string         `json:"agent"`
	State    string         `json:"state"`
	Paths    []string       `json:"paths"`
	Events   []agentEvent   `json:"events"`
	Disabled string         `json:"disabled"`
	Trust    string         `json:"trust"`
	Last     *agentDelivery `json:"last"`
}

type agentEvent struct {
	Event string `json:"event"`
	State string `json:"state"`
}

// agentDelivery is the newest event that has arrived in this workspace.
type agentDelivery struct {
	Run string    `json:"run"`
	At  time.Time `json:"at"`
}

func (c *console) agentStatus(ctx context.Context, s agent.Setup, name string) (answer, error) {
	st, err := s.Status(name)
	if err != nil {
		return nil, err
	}
	told := agentStatus{Agent: name, State: string(st.State), Paths: append([]string{}, st.Paths...), Events: []agentEvent{},
		Disabled: st.Disabled, Trust: st.Trust}
	for _, e := range st.Events {
		told.Events = append(told.Events, agentEvent{Event: e.Event, State: string(e.State)})
	}
	heard, err := c.deliveries(ctx)
	if d, ok := heard[name]; ok {
		told.Last = &agentDelivery{Run: d.Run, At: d.At}
	}
	return told, err
}

// deliveries are the agents that have been heard of in this workspace; none
// where there is no workspace.
func (c *console) deliveries(ctx context.Context) (heard map[string]retcon.Delivery, err error) {
	if !c.hasStore() {
		return nil, nil
	}
	err = c.use(ctx, retcon.Options{}, func(w *retcon.Workspace) error {
		heard, err = w.Deliveries(ctx)
		return err
	})
	return heard, err
}

func (a agentStatus) Text(p *page) {
	p.printf("%s: %s\n", a.Agent, a.State)
	for _, path := range a.Paths {
		p.printf("  %s\n", name(path))
	}
	var missing []string
	for _, e := range a.Events {
		if e.State != string(agent.Installed) {
			missing = append(missing, e.Event+" "+e.State)
		}
	}
	if len(missing) > 0 && a.State != string(agent.Missing) {
		p.printf("  %s\n", strings.Join(missing, ", "))
	}
	if a.Disabled != "" {
		p.printf("  the agent runs no hooks: %s\n", clean(a.Disabled))
	}
	if a.Trust != "" {
		p.printf("  the agent takes them for %s\n", a.Trust)
	}
	p.printf("  %s\n", a.Last.text(p))
}

func (d *agentDelivery) text(p *page) string {
	if d == nil {
		return "no event has arrived in this workspace"
	}
	return "last event " + p.ago(d.At) + ", in " + d.Run
}

// agentList is all agents.
type agentList struct {
	Agents []listedAgent `json:"agents"`
}

type listedAgent struct {
	Agent    string         `json:"agent"`
	Title    string         `json:"title"`
	Verified string         `json:"verified"`
	Hooks    bool           `json:"hooks"`
	Last     *agentDelivery `json:"last"`
}

func (c *console) listAgents(ctx *cli.Context) error {
	heard, err := c.deliveries(ctx.Context)
	if err != nil {
		return err
	}
	told := agentList{Agents: []listedAgent{}}
	for _, i := range agent.Clients() {
		one := listedAgent{Agent: i.Name, Title: i.Title, Verified: i.Verified, Hooks: i.Hooks}
		if d, ok := heard[i.Name]; ok {
			one.Last = &agentDelivery{Run: d.Run, At: d.At}
		}
		told.Agents = append(told.Agents, one)
	}
	return c.answer(told)
}

func (l agentList) Text(p *page) {
	var rows [][]string
	for _, a := range l.Agents {
		verified := "not verified on a running client"
		if a.Verified != "" {
			verified = "verified with " + a.Verified
		}
		last := ""
		if a.Last != nil {
			last = a.Last.text(p)
		}
		rows = append(rows, []string{p.bold(a.Agent), a.Title, p.dim(verified), last})
	}
	p.table(rows)
}
