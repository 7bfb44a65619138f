package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/urfave/cli/v2"
)

func init() { verbatim["wrap"] = true }

// probes are commands that only tests have. probe shows what reached it.
func probes(c *console) []*cli.Command {
	return []*cli.Command{
		{
			Name: "probe", Aliases: []string{"p"}, Usage: "show what reached the command", Category: "tests",
			ArgsUsage: "<run> [<path>...]",
			Flags: []cli.Flag{
				&cli.IntFlag{Name: "n", Aliases: []string{"number"}, Usage: "a `count`"},
				&cli.StringFlag{Name: "label", Aliases: []string{"m"}, Usage: "a `run` to name"},
				&cli.StringFlag{Name: "i", Usage: "some `json`"},
				&cli.StringSliceFlag{Name: "only", Usage: "a `path`, again and again"},
				&cli.BoolFlag{Name: "yes", Usage: "do not ask"},
				&cli.BoolFlag{Name: "1", Usage: "a flag that looks like a number", Hidden: true},
			},
			Action: func(ctx *cli.Context) error {
				return c.answer(probed{
					Args: ctx.Args().Slice(), N: ctx.Int("n"), Label: ctx.String("label"), I: ctx.String("i"),
					Only: ctx.StringSlice("only"), Yes: ctx.Bool("yes"), One: ctx.Bool("1"),
					JSON: c.json, Quiet: c.quiet, Dir: c.Dir,
				})
			},
		},
		{Name: "wrap", Usage: "show a command line", ArgsUsage: "[--] <program> [<argument>...]",
			Flags: []cli.Flag{&cli.StringFlag{Name: "m", Usage: "a `name`"}},
			Action: func(ctx *cli.Context) error {
				return c.answer(probed{Args: ctx.Args().Slice(), Label: ctx.String("m"), JSON: c.json})
			}},
		{Name: "group", Usage: "a group", Subcommands: []*cli.Command{
			{Name: "log", Usage: "one of the group", Flags: []cli.Flag{&cli.IntFlag{Name: "n"}},
				Action: func(ctx *cli.Context) error {
					return c.answer(probed{Args: []string{"group log"}, N: ctx.Int("n"), JSON: c.json})
				}},
			{Name: "show", Usage: "another", ArgsUsage: "<operation>",
				Action: func(ctx *cli.Context) error { return c.answer(probed{Args: ctx.Args().Slice()}) }},
		}},
		{Name: "panics", Action: func(*cli.Context) error { panic("out of cheese") }},
		{Name: "child", ArgsUsage: "<code>", Action: func(ctx *cli.Context) error {
			return exec.Command("sh", "-c", "exit "+ctx.Args().First()).Run()
		}},
		{Name: "answers", ArgsUsage: "<code>", Action: func(ctx *cli.Context) error {
			var code int
			_, err := fmt.Sscan(ctx.Args().First(), &code)
			return errors.Join(err, answered(code))
		}},
		{Name: "fails", Action: func(*cli.Context) error { return fmt.Errorf("open %s: %w", "evil\x1b[2J", os.ErrPermission) }},
		{Name: "locked", Action: func(*cli.Context) error {
			return fmt.Errorf("rewind: %w", &failure{Code: "LOCKED", Message: `run "r7" is locked by pid 4121`, Hints: []string{"retcon recover r7"}})
		}},
		{Name: "ask", Action: func(*cli.Context) error {
			if err := c.confirm("throw it away?", "retcon ask --yes"); err != nil {
				return err
			}
			return c.answer(probed{Args: []string{"gone"}})
		}},
		{Name: "wait", Action: func(ctx *cli.Context) error {
			if err := c.answer(probed{Args: []string{"waiting"}}); err != nil {
				return err
			}
			p, err := os.FindProcess(os.Getpid())
			if err != nil {
				return err
			}
			if err := p.Signal(os.Interrupt); err != nil {
				return err
			}
			<-ctx.Done()
			return fmt.Errorf("capture: %w", context.Cause(ctx.Context))
		}},
	}
}

type probed struct {
	Args  []string
	N     int
	Label string
	I     string
	Only  []string
	Yes   bool
	One   bool
	JSON  bool
	Quiet bool
	Dir   string
}

func (v probed) Text(p *page) {
	for _, a := range v.Args {
		p.printf("%s\n", p.green(name(a)))
	}
}
