package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) lintCommand() *cli.Command {
	return &cli.Command{
		Name:      "lint",
		Usage:     "load a workflow and look for what is probably not meant",
		Category:  "workflows",
		ArgsUsage: "<file>",
		Description: `Nothing is run. Findings are printed with their place; the exit code is 1 when
there are any.

Examples:
  retcon lint build.star`,
		Action: func(ctx *cli.Context) error {
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				found, err := w.Lint(ctx.Args().First())
				if err != nil {
					return err
				}
				l := findings{Findings: []finding{}}
				for _, f := range found {
					l.Findings = append(l.Findings, finding{f.File, f.Line, f.Col, f.Message, f.Hint})
				}
				if err := c.answer(l); err != nil || len(found) == 0 {
					return err
				}
				return answered(exitFailed)
			})
		},
	}
}

// findings are what was found in a workflow.
type findings struct {
	Findings []finding `json:"findings"`
}

type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

func (l findings) Text(p *page) {
	if len(l.Findings) == 0 {
		p.printf("nothing found\n")
	}
	for _, f := range l.Findings {
		p.printf("%s %s\n", p.bold(fmt.Sprintf("%s:%d:%d:", clean(f.File), f.Line, f.Col)), clean(f.Message))
		if f.Hint != "" {
			p.printf("hint: %s\n", clean(f.Hint))
		}
	}
}
