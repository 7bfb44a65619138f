package cli

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:     "doctor",
		Usage:    "check that what was captured is there and can be put back",
		Category: "upkeep",
		Flags:    []cli.Flag{&cli.BoolFlag{Name: "deep", Usage: "read and hash everything in the store"}},
		Description: `Of each agent whose settings have our hooks it says when the last event came,
and calls the hook as the agent would, with an event of its own.

Examples:
  retcon doctor
  retcon doctor --deep`,
		Action: func(ctx *cli.Context) error {
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				found, err := w.Doctor(ctx.Context, retcon.DoctorOptions{Deep: ctx.Bool("deep")})
				if err != nil {
					return err
				}
				h := health{OK: found.OK, Checks: []checked{}, Unrestorable: append([]string{}, found.Unrestorable...)}
				for _, one := range found.Checks {
					h.Checks = append(h.Checks, checked{one.Name, one.OK, one.Detail, one.Hint})
				}
				agents, err := c.checkAgents(ctx.Context, w)
				if err != nil {
					return err
				}
				for _, one := range agents {
					h.Checks, h.OK = append(h.Checks, one), h.OK && one.OK
				}
				if err := c.answer(h); err != nil {
					return err
				}
				if !h.OK {
					return answered(exitFailed)
				}
				return nil
			})
		},
	}
}

// health is what the doctor found.
type health struct {
	OK     bool      `json:"ok"`
	Checks []checked `json:"checks"`

	Unrestorable []string `json:"unrestorable"`
}

type checked struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Hint   string `json:"hint"`
}

func (h health) Text(p *page) {
	var rows [][]string
	bad := 0
	for _, one := range h.Checks {
		mark := p.green("ok")
		if !one.OK {
			mark = p.red("BAD")
			bad++
		}
		rows = append(rows, []string{mark, one.Name, clean(one.Detail)})
		if one.Hint != "" {
			rows = append(rows, []string{"", "", "hint: " + clean(one.Hint)})
		}
	}
	p.table(rows)
	if len(h.Unrestorable) > 0 {
		p.printf("%s %s\n", p.red("cannot be put back whole:"), strings.Join(h.Unrestorable, " "))
	}
	if bad > 0 {
		p.printf("%s of %d\n", count(bad, "check failed", "checks failed"), len(h.Checks))
	}
}
