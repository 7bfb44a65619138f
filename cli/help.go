package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

func (c *console) helpCommand() *cli.Command {
	return &cli.Command{
		Name:        "help",
		Usage:       "show what retcon can do, or how a command is used",
		ArgsUsage:   "[<command>...]",
		Category:    "about",
		Description: "Examples:\n  retcon help\n  retcon help version",
		Action: func(ctx *cli.Context) error {
			app := c.app()
			w := split(app, ctx.Args().Slice())
			w.help = true
			if err := w.check(app); err != nil {
				return err
			}
			return c.help(app, w)
		},
	}
}

// help writes the help of what the words name. It is asked for, so it goes to
// stdout; an error never brings it along.
func (c *console) help(app *cli.App, w words) error {
	if w.command == nil {
		return c.answer(newOverview(app))
	}
	return c.answer(newUsage(app, w))
}

// overview is the help of the program.
type overview struct {
	Name     string     `json:"name"`
	Usage    string     `json:"usage"`
	Commands []verbLine `json:"commands"`
	Flags    []flagLine `json:"flags"`
	Groups   []string   `json:"-"` // categories, in the order of the commands
}

type verbLine struct {
	Name  string `json:"name"`
	Usage string `json:"usage"`
	Group string `json:"group"`
}

type flagLine struct {
	Flag  string `json:"flag"`
	Usage string `json:"usage"`
}

func newOverview(app *cli.App) overview {
	o := overview{Name: app.Name, Usage: app.Usage, Flags: flagLines(app.Flags)}
	seen := map[string]bool{}
	for _, command := range app.Commands {
		if command.Hidden {
			continue
		}
		o.Commands = append(o.Commands, verbLine{command.Name, command.Usage, command.Category})
		if !seen[command.Category] {
			seen[command.Category] = true
			o.Groups = append(o.Groups, command.Category)
		}
	}
	return o
}

func (o overview) Text(p *page) {
	p.printf("%s: %s\n\nusage: %s <command> [<argument>...] [--flag...]\n", p.bold(o.Name), o.Usage, o.Name)
	var rows [][]string
	for _, group := range o.Groups {
		rows = append(rows, nil, []string{group + ":"})
		for _, v := range o.Commands {
			if v.Group == group {
				rows = append(rows, []string{"  " + v.Name, v.Usage})
			}
		}
	}
	p.table(rows)
	p.printf("\nflags of every command:\n")
	p.table(flagRows(o.Flags))
	p.printf("\nretcon <command> --help says more about one of them.\n")
}

// usage is the help of one command.
type usage struct {
	Name        string     `json:"name"`
	Usage       string     `json:"usage"`
	Synopsis    string     `json:"synopsis"`
	Description string     `json:"description"`
	Commands    []verbLine `json:"commands,omitempty"`
	Flags       []flagLine `json:"flags"`
}

func newUsage(app *cli.App, w words) usage {
	u := usage{
		Name:        w.name(app),
		Usage:       w.command.Usage,
		Description: w.command.Description,
		Flags:       flagLines(w.command.Flags),
	}
	u.Synopsis = u.Name
	for _, sub := range w.command.Subcommands {
		if !sub.Hidden {
			u.Commands = append(u.Commands, verbLine{Name: sub.Name, Usage: sub.Usage})
		}
	}
	switch {
	case len(u.Commands) > 0 && w.command.Action != nil:
		u.Synopsis += " [<command>]"
	case len(u.Commands) > 0:
		u.Synopsis += " <command>"
	}
	if w.command.ArgsUsage != "" {
		u.Synopsis += " " + w.command.ArgsUsage
	}
	return u
}

func (u usage) Text(p *page) {
	p.printf("%s: %s\n\nusage: %s [--flag...]\n", p.bold(u.Name), u.Usage, u.Synopsis)
	if u.Description != "" {
		p.printf("\n%s\n", strings.TrimSpace(u.Description))
	}
	if len(u.Commands) > 0 {
		p.printf("\ncommands:\n")
		var rows [][]string
		for _, v := range u.Commands {
			rows = append(rows, []string{"  " + v.Name, v.Usage})
		}
		p.table(rows)
	}
	if len(u.Flags) > 0 {
		p.printf("\nflags:\n")
		p.table(flagRows(u.Flags))
	}
	p.printf("\nFlags of every command are listed by: retcon help\nexit codes:")
	column := len("exit codes:")
	for i, code := range strings.Split(exitTable, " · ") {
		if i > 0 {
			p.printf(" ·")
			column += 2
		}
		if column+1+len(code) > 76 {
			p.printf("\n ")
			column = 1
		}
		p.printf(" %s", code)
		column += 1 + len(code)
	}
	p.printf("\n")
}

// flagLines describes flags in the notation of the help: --label <name>.
func flagLines(flags []cli.Flag) []flagLine {
	lines := []flagLine{}
	for _, f := range flags {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		value, text := flagUsage(f)
		var names []string
		for _, n := range f.Names() {
			names = append(names, dashed(n))
		}
		line := strings.Join(names, ", ")
		if takesValue(f) {
			line += fmt.Sprintf(" <%s>", value)
		}
		lines = append(lines, flagLine{line, text})
	}
	return lines
}

// flagUsage takes the placeholder out of a flag's description, where it stands
// in backquotes: "run as if started in `dir`".
func flagUsage(f cli.Flag) (value, text string) {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return "value", ""
	}
	before, rest, found := strings.Cut(d.GetUsage(), "`")
	if !found {
		return "value", before
	}
	value, after, _ := strings.Cut(rest, "`")
	return value, before + "<" + value + ">" + after
}

func flagRows(lines []flagLine) [][]string {
	var rows [][]string
	for _, l := range lines {
		rows = append(rows, []string{"  " + l.Flag, l.Usage})
	}
	return rows
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func commandNames(commands []*cli.Command) []string {
	var names []string
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

func flagNames(flags []cli.Flag) []string {
	names := []string{"help"}
	for _, f := range flags {
		names = append(names, f.Names()...)
	}
	return names
}

// nearest finds the name that was probably meant: one that the word begins, or
// one at most two letters away. Otherwise it says nothing: a far-fetched guess
// is worse than none.
func nearest(word string, names []string) string {
	best, distance := "", 3
	for _, n := range names {
		d := edits(word, n)
		if len(word) > 1 && strings.HasPrefix(n, word) {
			d = 1
		}
		if d < distance && d < len(word) {
			best, distance = n, d
		}
	}
	return best
}

// edits counts the letters to insert, remove or replace between a and b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
