package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"
)

// commands lists every command, in the order in which the help shows them.
// Each lives in a file of its own.
func (c *console) commands() []*cli.Command {
	return []*cli.Command{
		c.initCommand(),
		c.checkpointCommand(),
		c.execCommand(),
		c.watchCommand(),
		c.agentsCommand(),
		c.hookCommand(),

		c.runCommand(),
		c.resumeCommand(),
		c.signalCommand(),
		c.cancelCommand(),
		c.lintCommand(),

		c.snapshotsCommand(),
		c.logCommand(),
		c.runsCommand(),
		c.timelineCommand(),
		c.showCommand(),
		c.diffCommand(),
		c.effectsCommand(),
		c.ackCommand(),

		c.restoreCommand(),
		c.revertCommand(),
		c.rewindCommand(),
		c.timetravelCommand(),
		c.retryTaskCommand(),
		c.rerunCommand(),
		c.undoCommand(),
		c.redoCommand(),
		c.opCommand(),

		c.gcCommand(),
		c.doctorCommand(),
		c.recoverCommand(),
		c.configCommand(),
		c.trustCommand(),

		c.mcpCommand(),
		c.versionCommand(),
		c.completionCommand(),
		c.completeCommand(),
		c.helpCommand(),
	}
}

// app assembles the commands and closes the library's traps: it must not print,
// must not exit, and must not split values at commas.
func (c *console) app() *cli.App {
	app := &cli.App{
		Name:      "retcon",
		HelpName:  "retcon",
		Usage:     "a time machine for coding agents",
		ArgsUsage: "<command>",
		Flags:     sharedFlags(),
		Commands:  c.commands(),
		Before:    c.settle,
		Action:    c.overview,

		Reader: c.in, Writer: c.out, ErrWriter: c.err,

		HideHelp:                  true, // help.go writes it; the library's goes to stdout uninvited
		HideVersion:               true,
		DisableSliceFlagSeparator: true, // -i '{"a":1,"b":2}' is one value
		OnUsageError:              usageError,
		ExitErrHandler:            func(*cli.Context, error) {}, // it would exit with the code of any *exec.ExitError
	}
	if testOnlyCommands != nil {
		app.Commands = append(app.Commands, testOnlyCommands(c)...)
	}
	for _, command := range app.Commands {
		prepare("retcon", command)
	}
	return app
}

// testOnlyCommands are commands of the tests: ones that panic, wait, or show
// what they were given.
var testOnlyCommands func(*console) []*cli.Command

// sharedFlags are declared once, here, and are valid anywhere on the line.
// A command that declared one of them again would hide it from itself.
func sharedFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "C", Usage: "run as if started in `dir`"},
		&cli.BoolFlag{Name: "json", Usage: "print one JSON document, errors too (docs/json.md)"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print the answer and nothing else"},
		&cli.BoolFlag{Name: "color", Usage: "colour the answer, whatever it is written to"},
		&cli.BoolFlag{Name: "no-color", Usage: "never colour the answer"},
		&cli.BoolFlag{Name: "version", Usage: "print which build this is"},
	}
}

// settle takes over the shared flags before the command runs.
func (c *console) settle(ctx *cli.Context) error {
	c.json, c.quiet = ctx.Bool("json"), ctx.Bool("quiet")
	if ctx.Bool("color") && ctx.Bool("no-color") {
		return misuse("--color and --no-color exclude each other")
	}
	c.colour = c.wantsColour(ctx.Bool("color"), ctx.Bool("no-color"))
	c.work = c.progress(ctx.Args().First())
	if ctx.IsSet("C") {
		return c.enter(ctx.String("C"))
	}
	return nil
}

// enter makes dir the current directory, for this command line.
func (c *console) enter(dir string) error {
	if !filepath.IsAbs(dir) {
		if c.Dir == "" {
			return &failure{Code: "NOT_FOUND", Message: "the current directory is gone", Hints: []string{"cd /"}}
		}
		dir = filepath.Join(c.Dir, dir)
	}
	switch info, err := os.Stat(dir); {
	case os.IsNotExist(err):
		return &failure{Code: "NOT_FOUND", Message: fmt.Sprintf("-C %s: no such directory", name(dir))}
	case err != nil:
		return fmt.Errorf("-C: %w", err)
	case !info.IsDir():
		return misuse(fmt.Sprintf("-C %s: not a directory", name(dir)))
	}
	c.Dir = filepath.Clean(dir)
	return nil
}

// overview answers a bare "retcon": what is here and what can be done.
func (c *console) overview(ctx *cli.Context) error {
	if ctx.Bool("version") {
		return c.answer(thisBuild())
	}
	return c.status(ctx.Context)
}

// prepare gives a command what all commands have: usage errors that print
// nothing, and a count of the arguments its usage line asks for.
func prepare(parent string, command *cli.Command) {
	full := parent + " " + command.Name
	command.HideHelp = true // "retcon restore help" is a checkpoint called help
	command.OnUsageError = usageError
	for _, sub := range command.Subcommands {
		prepare(full, sub)
	}
	if len(command.Subcommands) > 0 && command.Action == nil {
		return
	}
	least, most := arity(command.ArgsUsage)
	action := command.Action
	command.Action = func(ctx *cli.Context) error {
		switch n := ctx.NArg(); {
		case n < least:
			missing := placeholders(command.ArgsUsage)[n]
			return misuse(fmt.Sprintf("%s: %s is missing", full, missing.text), full+" --help")
		case most >= 0 && n > most:
			return misuse(fmt.Sprintf("%s: unexpected argument %q", full, ctx.Args().Get(most)), full+" --help")
		}
		return action(ctx)
	}
}

// usageError is what the library says about flags, without the help it would
// print to stdout.
func usageError(ctx *cli.Context, err error, _ bool) error {
	full := "retcon"
	if ctx.Command != nil && ctx.Command.Name != full {
		full = ctx.Command.HelpName
	}
	return misuse(err.Error(), full+" --help")
}
