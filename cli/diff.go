package cli

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "show what differs between two checkpoints, or one and the worktree",
		Category:  "history",
		ArgsUsage: "[<checkpoint>] [<checkpoint>] [<path>...]",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "stat", Usage: "count the lines that came and went"},
			&cli.BoolFlag{Name: "patch", Aliases: []string{"p"}, Usage: "show the lines, as git diff does"},
			&cli.BoolFlag{Name: "name-only", Usage: "print the paths and nothing else"},
			&cli.IntFlag{Name: "context", Aliases: []string{"U"}, Value: 3, Usage: "with --patch, `count` unchanged lines around each change"},
		},
		Description: `Without a checkpoint the newest one is compared with the worktree as it is now,
with one that one. A word that is no checkpoint is a path; write ./c1 for a file
that is called like one. The exit code is 1 when there are differences.

Examples:
  retcon diff
  retcon diff c1 --stat
  retcon diff c1 c2 --patch
  retcon diff c1 main.go pkg
  retcon diff r1@before r1@after --name-only`,
		Action: func(ctx *cli.Context) error {
			form, err := diffForm(ctx)
			if err != nil {
				return err
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				o, err := c.sides(ctx.Context, w, ctx.Args().Slice())
				if err != nil {
					return err
				}
				found, err := w.Diff(ctx.Context, o)
				if err != nil {
					return err
				}
				d, err := newDifference(ctx.Context, w, found, form)
				if err != nil {
					return err
				}
				if err := c.answer(d); err != nil {
					return err
				}
				if len(d.Changes) > 0 {
					return answered(exitFailed)
				}
				return nil
			})
		},
	}
}

// form is how a difference is shown.
type form struct {
	stat, patch, nameOnly bool
	context               int
}

func diffForm(ctx *cli.Context) (form, error) {
	f := form{stat: ctx.Bool("stat"), patch: ctx.Bool("patch"), nameOnly: ctx.Bool("name-only"), context: ctx.Int("context")}
	n := 0
	for _, set := range []bool{f.stat, f.patch, f.nameOnly} {
		if set {
			n++
		}
	}
	if n > 1 {
		return f, misuse("--stat, --patch and --name-only exclude each other")
	}
	if f.context < 0 {
		return f, misuse(fmt.Sprintf("--context is at least 0, not %d", f.context))
	}
	if f.context == 0 {
		f.context = -1 // none, where 0 is the usual number
	}
	return f, nil
}

// sides tells checkpoints from paths: at most two words in front that name a
// checkpoint are one, everything else is a path.
func (c *console) sides(ctx context.Context, w *retcon.Workspace, args []string) (retcon.DiffOptions, error) {
	var refs []retcon.Ref
	for len(args) > 0 && len(refs) < 2 && !isPath(args[0]) {
		ref := retcon.Ref(args[0])
		if ref != retcon.Now {
			_, err := w.Resolve(ctx, ref)
			mayBePath := !looksLikeRef(args[0]) && (len(refs) > 0 || c.there(args[0]))
			if err != nil && mayBePath && explain(err).Code == "NOT_FOUND" {
				break
			}
			if err != nil {
				return retcon.DiffOptions{}, err
			}
		}
		refs, args = append(refs, ref), args[1:]
	}
	o := retcon.DiffOptions{Paths: args}
	switch len(refs) {
	case 2:
		o.To = refs[1]
		fallthrough
	case 1:
		o.From = refs[0]
	}
	return o, nil
}

func isPath(word string) bool {
	return word == "." || word == ".." || strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") || strings.HasPrefix(word, "/")
}

var refLike = regexp.MustCompile(`^(c\d+|r\d+(@.*)?|~.*|last|-\d+)$`)

// looksLikeRef: the word can only have been meant as a checkpoint.
func looksLikeRef(word string) bool { return refLike.MatchString(word) }

// difference is what two states of the worktree do not share.
type difference struct {
	From    string     `json:"from"`
	To      string     `json:"to"`
	Changes []diffLine `json:"changes"`
	Totals  totals     `json:"totals"`
	Added   int        `json:"lines_added"`
	Removed int        `json:"lines_removed"`
	Patch   string     `json:"patch,omitempty"`

	form form
}

// diffLine is a change, with its lines counted when that was asked for.
type diffLine struct {
	change
	Lines *lines `json:"lines,omitempty"`
}

type lines struct {
	Added   int   `json:"added"`
	Removed int   `json:"removed"`
	Binary  bool  `json:"binary"`
	OldSize int64 `json:"old_size_bytes"`
	NewSize int64 `json:"new_size_bytes"`
}

func newDifference(ctx context.Context, w *retcon.Workspace, found *retcon.Diff, f form) (difference, error) {
	d := difference{From: found.From, To: found.To, Changes: []diffLine{}, form: f}
	at := map[string]int{}
	for _, one := range found.Changes {
		line := diffLine{change: newChange(one)}
		at[one.Path] = len(d.Changes)
		d.Changes = append(d.Changes, line)
		d.Totals.add(line.Change)
	}
	switch {
	case f.stat:
		counted, err := w.Stat(ctx, found)
		if err != nil {
			return d, err
		}
		for _, s := range counted {
			if i, ok := at[s.Path]; ok {
				d.Changes[i].Lines = &lines{Added: s.Added, Removed: s.Removed, Binary: s.Binary, OldSize: s.OldSize, NewSize: s.NewSize}
			}
			d.Added, d.Removed = d.Added+s.Added, d.Removed+s.Removed
		}
	case f.patch:
		var text strings.Builder
		if err := w.Patch(ctx, &text, found, retcon.PatchOptions{Context: f.context}); err != nil {
			return d, err
		}
		d.Patch = text.String()
	}
	return d, nil
}

func (d difference) Text(p *page) {
	switch {
	case d.form.patch:
		p.patch(d.Patch)
		return
	case d.form.nameOnly:
		for _, one := range d.Changes {
			p.printf("%s\n", name(one.Path))
		}
		return
	}
	if len(d.Changes) == 0 {
		p.printf("no differences between %s and %s\n", d.From, d.To)
		return
	}
	if d.form.stat {
		d.stat(p)
		return
	}
	for _, one := range d.Changes {
		one.line(p)
	}
	p.printf("%s -> %s: %s\n", d.From, d.To, d.Totals)
}

func (d difference) stat(p *page) {
	var rows [][]string
	for _, one := range d.Changes {
		cell := p.dim(one.detail())
		if l := one.Lines; l != nil {
			switch {
			case l.Binary:
				cell = fmt.Sprintf("binary, %s -> %s", size(max(l.OldSize, 0)), size(max(l.NewSize, 0)))
			case l.Added+l.Removed > 0:
				cell = strings.TrimSpace(p.green(signed("+", l.Added)) + " " + p.red(signed("-", l.Removed)))
				if detail := one.detail(); detail != "" {
					cell += "  " + p.dim("("+detail+")")
				}
			}
		}
		rows = append(rows, []string{one.sign(p) + " " + name(one.Path), cell})
	}
	p.table(rows)
	p.printf("%s -> %s: %s; %s added, %s removed\n", d.From, d.To, d.Totals, count(d.Added, "line"), count(d.Removed, "line"))
}

func signed(sign string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s%d", sign, n)
}

// patch colours a patch. What a patch holds is the content of files: on a
// terminal it is kept from driving it, elsewhere it is as it is.
func (p *page) patch(text string) {
	if !p.colour && p.width == 0 {
		p.printf("%s", text)
		return
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		cells := strings.Split(line, "\t")
		for i := range cells {
			cells[i] = clean(cells[i])
		}
		shown := strings.Join(cells, "\t")
		switch {
		case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
			shown = p.bold(shown)
		case strings.HasPrefix(line, "+"):
			shown = p.green(shown)
		case strings.HasPrefix(line, "-"):
			shown = p.red(shown)
		case strings.HasPrefix(line, "@@"):
			shown = p.dim(shown)
		}
		p.printf("%s\n", shown)
	}
}
