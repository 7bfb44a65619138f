package cli

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) trustCommand() *cli.Command {
	return &cli.Command{
		Name:      "trust",
		Usage:     "let the configuration of this repository run what it names",
		Category:  "upkeep",
		ArgsUsage: "[<file>]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "list", Usage: "list what is trusted, here and elsewhere"},
			&cli.BoolFlag{Name: "remove", Usage: "do not trust it any more, whatever it holds; or `file`, as --list names it"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
		},
		Description: `A repository may have a retcon.toml at its top, with limits and with rules about
what is done outside. What in it would run a command, call an address, or take
something out of the way of a move, waits until you trust it. It is shown first.
You trust these bytes at this path: when the file changes, it waits again; what
was recorded while it was trusted can still be undone.

Agents can't trust anything. What is trusted is noted in your own folder,
$XDG_STATE_HOME/retcon/trust.

Examples:
  retcon trust --list
  retcon trust --remove`,
		Action: func(ctx *cli.Context) error {
			file := ctx.Args().First()
			switch list, remove := ctx.Bool("list"), ctx.Bool("remove"); {
			case list && remove:
				return misuse("--list and --remove exclude each other")
			case file != "" && !remove:
				return misuse("retcon trust: only what is here can be trusted; <file> is for --remove", "retcon trust --help")
			case list:
				return c.useAsPerson(ctx.Context, func(w *retcon.Workspace) error { return c.answer(newTrustedList(w.TrustedFiles())) })
			case remove:
				return c.useAsPerson(ctx.Context, func(w *retcon.Workspace) error {
					at, n, err := w.Distrust(ctx.Context, file)
					if err != nil {
						return err
					}
					return c.answer(distrusted{File: at, Removed: n})
				})
			}
			return c.useAsPerson(ctx.Context, func(w *retcon.Workspace) error {
				p, err := w.Trust(ctx.Context, retcon.TrustOptions{Confirm: c.askToTrust(ctx.Bool("yes"))})
				if err != nil {
					return err
				}
				return c.answer(newProject(p))
			})
		},
	}
}

// useAsPerson is use for what only a person may do: where the environment says
// that an agent has started this process, it is the agent who acts.
func (c *console) useAsPerson(ctx context.Context, do func(*retcon.Workspace) error) error {
	return c.use(ctx, retcon.Options{Actor: c.agentAround()}, do)
}

// marks are variables that agents set for what they start, beside those that
// name a conversation.
var marks = []struct{ variable, agent string }{
	{"CLAUDECODE", "claude"}, {"GEMINI_CLI", "gemini"}, {"OPENCODE", "opencode"}, {"CURSOR_AGENT", "cursor"},
	{"CODEX_SANDBOX", "codex"}, {"CODEX_SANDBOX_NETWORK_DISABLED", "codex"},
}

// agentAround is the agent that has started this process, as far as its
// environment tells; "" for none.
func (c *console) agentAround() string {
	for _, m := range marks {
		if c.Getenv(m.variable) != "" {
			return m.agent
		}
	}
	return ""
}

// askToTrust shows what a configuration asks for, and asks.
func (c *console) askToTrust(yes bool) func(*retcon.Project) (bool, error) {
	return func(p *retcon.Project) (bool, error) {
		if !c.json && !c.quiet {
			c.work.done()
			var text strings.Builder
			page := c.page(&text)
			_, terminal := c.Terminal(c.err)
			page.colour = c.colour && terminal
			newProject(p).asks(page)
			fmt.Fprint(c.err, text.String())
		}
		if yes {
			return true, nil
		}
		return true, c.confirm("trust "+name(p.File)+"?", c.again("--yes"))
	}
}

// untrusted says that the configuration of the repository does less than it
// could, because nobody trusts it.
func (c *console) untrusted(w *retcon.Workspace) {
	if p := w.Project(); p.Waits() && !c.quiet {
		c.remark("%s", p.Waiting())
		fmt.Fprintln(c.err, "hint: retcon trust")
	}
}

// unread says that the configuration of the repository can't be used, where that
// is nothing to stop for.
func (c *console) unread(w *retcon.Workspace) {
	if p := w.Project(); p.Err != nil {
		c.remark("%s; nothing of it is in force", explain(p.Err).Message)
	}
}

// project is the configuration that comes with a repository.
type project struct {
	File    string  `json:"file"`
	Digest  string  `json:"digest"`
	Trusted bool    `json:"trusted"`
	Changed bool    `json:"changed"`
	Grants  []grant `json:"grants"`
}

// grant is something it may do only when it is trusted.
type grant struct {
	Rule string   `json:"rule"`
	When string   `json:"when"`
	What string   `json:"what"`
	How  string   `json:"how"`
	Env  []string `json:"env"`
}

func newProject(p *retcon.Project) project {
	told := project{File: p.File, Digest: p.Digest, Trusted: p.Trusted, Changed: p.Changed, Grants: []grant{}}
	for _, g := range p.Grants {
		told.Grants = append(told.Grants, grant{Rule: g.Rule, When: g.When, What: g.What, How: g.How, Env: append([]string{}, g.Env...)})
	}
	return told
}

// asks shows what becomes active.
func (p project) asks(page *page) {
	page.printf("%s  %s\n", page.bold(name(p.File)), page.dim(p.Digest[:12]))
	if p.Changed {
		page.printf("%s\n", page.yellow("it has changed since it was trusted"))
	}
	for _, g := range p.Grants {
		page.printf("  rule %s, about %s\n", visible(g.Rule, ""), visible(g.When, ""))
		lead := map[string]string{retcon.GrantRun: "runs:   ", retcon.GrantCall: "calls:  ", retcon.GrantPass: "passes: "}[g.What]
		page.printf("    %s%s\n", lead, visible(g.How, "            | "))
		if len(g.Env) > 0 {
			page.printf("      with: %s\n", strings.Join(g.Env, " "))
		}
		if g.What == retcon.GrantRun && ofWorktree(g.How) {
			page.printf("      %s\n", page.yellow("a file of the worktree, which may change without asking"))
		}
	}
}

// ofWorktree tells that a command is a path below the worktree.
func ofWorktree(how string) bool {
	program, _, _ := strings.Cut(how, " ")
	return strings.Contains(program, "/") && !strings.HasPrefix(program, "/")
}

// visible is a text in which nothing hides: what can't be seen is escaped, and a
// further line begins with lead.
func visible(s, lead string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' && lead != "":
			b.WriteString("\n" + lead)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (p project) Text(page *page) {
	switch {
	case p.Trusted:
		page.printf("trusted: %s\n", name(p.File))
	default:
		page.printf("%s asks for nothing that needs trust\n", name(p.File))
	}
}

type trustedList struct {
	Trusted []trustedFile `json:"trusted"`
}

// trustedFile is a configuration that is trusted.
type trustedFile struct {
	File    string    `json:"file"`
	Digest  string    `json:"digest"`
	Since   time.Time `json:"since"`
	Current bool      `json:"current"`
}

func newTrustedList(all []retcon.TrustedFile) trustedList {
	l := trustedList{Trusted: []trustedFile{}}
	for _, t := range all {
		l.Trusted = append(l.Trusted, trustedFile(t))
	}
	return l
}

func (l trustedList) Text(p *page) {
	if len(l.Trusted) == 0 {
		p.printf("nothing is trusted\n")
	}
	var rows [][]string
	for _, t := range l.Trusted {
		is := "as it is"
		if !t.Current {
			is = p.yellow("as it was")
		}
		rows = append(rows, []string{name(t.File), t.Digest[:12], is, p.ago(t.Since)})
	}
	p.table(rows)
}

// distrusted is a file that is not trusted any more.
type distrusted struct {
	File    string `json:"file"`
	Removed int    `json:"removed"`
}

func (d distrusted) Text(p *page) {
	if d.Removed == 0 {
		p.printf("%s was not trusted\n", name(d.File))
		return
	}
	p.printf("not trusted any more: %s\n", name(d.File))
}
