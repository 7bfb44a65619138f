package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// completeName is the hidden command that the shells call on every press of the
// tab key: "retcon __complete -- WORD... CURRENT" prints a candidate a line,
// with a tab and its description behind it.
const completeName = "__complete"

// candidate is one way to go on.
type candidate struct {
	Value, About string
}

func (c *console) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the script that teaches a shell to complete retcon",
		ArgsUsage: "{bash | zsh | fish}",
		Category:  "about",
		Description: `The script asks retcon itself what can come next, so it stays right when
retcon is replaced by a newer one.

Examples:
  retcon completion bash > ~/.local/share/bash-completion/completions/retcon
  retcon completion zsh > ~/.zfunc/_retcon
  retcon completion fish > ~/.config/fish/completions/retcon.fish`,
		Action: func(ctx *cli.Context) error {
			shell := ctx.Args().First()
			script, ok := completionScripts[shell]
			if !ok {
				return misuse(fmt.Sprintf("no completion for %q, only for bash, zsh and fish", shell), "retcon completion bash")
			}
			return c.answer(shellScript{Shell: shell, Script: script})
		},
	}
}

type shellScript struct {
	Shell  string `json:"shell"`
	Script string `json:"script"`
}

func (s shellScript) Text(p *page) { p.printf("%s", s.Script) }

func (c *console) completeCommand() *cli.Command {
	return &cli.Command{
		Name:      completeName,
		Hidden:    true,
		ArgsUsage: "[<word>...]",
		Action: func(ctx *cli.Context) error {
			var buf bytes.Buffer
			for _, found := range c.complete(ctx.Context, c.app(), ctx.Args().Slice()) {
				fmt.Fprintf(&buf, "%s\t%s\n", found.Value, found.About)
			}
			_, err := c.out.Write(buf.Bytes())
			return err
		},
	}
}

// complete says how the last of these words can go on. When it knows nothing it
// returns nothing, and the shell falls back to the names of files.
func (c *console) complete(ctx context.Context, app *cli.App, line []string) []candidate {
	current := ""
	if len(line) > 0 {
		current, line = line[len(line)-1], line[:len(line)-1]
	}
	w := split(app, line)
	if dir := lastValue(w.shared, "-C"); dir != "" {
		_ = c.enter(dir) // no such directory: there are no values either
	}
	commands, flags := app.Commands, app.Flags
	if w.command != nil {
		commands, flags = w.command.Subcommands, append(append([]cli.Flag{}, w.command.Flags...), app.Flags...)
	}

	var found []candidate
	flagWord, _, hasValue := strings.Cut(current, "=")
	switch {
	case w.pending != nil:
		found = c.valuesOf(ctx, w.pending)
	case !w.ended && isFlag(current) && hasValue:
		if f := lookup(flags, flagWord); f != nil {
			for _, v := range c.valuesOf(ctx, f) {
				found = append(found, candidate{flagWord + "=" + v.Value, v.About})
			}
		}
	case !w.ended && strings.HasPrefix(current, "-"):
		found = flagCandidates(flags)
	case len(commands) > 0 && len(w.args) == 0:
		for _, command := range commands {
			if !command.Hidden {
				found = append(found, candidate{command.Name, command.Usage})
			}
		}
	case w.command != nil:
		found = c.argument(ctx, app, w)
	}
	return beginning(found, current)
}

// argument completes the next argument of the command.
func (c *console) argument(ctx context.Context, app *cli.App, w words) []candidate {
	all := placeholders(w.command.ArgsUsage)
	if len(all) == 0 {
		return nil
	}
	next := all[min(len(w.args), len(all)-1)]
	if len(w.args) >= len(all) && !next.many {
		return nil
	}
	var found []candidate
	for _, choice := range next.choices {
		found = append(found, candidate{Value: choice})
	}
	if next.name == "command" {
		for _, command := range app.Commands {
			if !command.Hidden {
				found = append(found, candidate{command.Name, command.Usage})
			}
		}
	}
	if values := c.values[next.name]; values != nil {
		found = append(found, values(ctx)...)
	}
	return found
}

func (c *console) valuesOf(ctx context.Context, f cli.Flag) []candidate {
	placeholder, _ := flagUsage(f)
	if values := c.values[placeholder]; values != nil {
		return values(ctx)
	}
	return nil
}

func flagCandidates(flags []cli.Flag) []candidate {
	found := []candidate{{"--help", "show how it is used"}}
	for _, f := range flags {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		_, about := flagUsage(f)
		for _, n := range f.Names() {
			found = append(found, candidate{dashed(n), about})
		}
	}
	return found
}

// beginning keeps what begins with the word, and what a line can carry.
func beginning(all []candidate, word string) []candidate {
	var kept []candidate
	for _, one := range all {
		if strings.HasPrefix(one.Value, word) && !strings.ContainsAny(one.Value, "\t\n") {
			one.About = strings.Join(strings.Fields(clean(one.About)), " ")
			kept = append(kept, one)
		}
	}
	return kept
}

func lastValue(flags []string, name string) string {
	value := ""
	for i, f := range flags {
		if f == name && i+1 < len(flags) {
			value = flags[i+1]
		}
	}
	return value
}

// completionScripts ask the binary. Bash splits words at : = and @ too, which
// our places in history contain, so its script splits the line itself.
var completionScripts = map[string]string{
	"bash": `# bash completion for retcon
_retcon() {
	local line words current prefix candidate
	line="${COMP_LINE:0:COMP_POINT}"
	read -ra words <<<"$line"
	case "$line" in *[[:space:]]) words+=("") ;; esac
	current="${words[${#words[@]}-1]}"
	prefix="${current%"${current##*[:=@]}"}"
	COMPREPLY=()
	while IFS=$'\t' read -r candidate _; do
		COMPREPLY+=("${candidate#"$prefix"}")
	done < <(retcon __complete -- "${words[@]:1}" 2>/dev/null)
}
complete -o default -F _retcon retcon
`,
	"zsh": `#compdef retcon
# zsh completion for retcon
_retcon() {
	local -a candidates
	local line
	while IFS= read -r line; do
		candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done < <(retcon __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
	if (( $#candidates )); then
		_describe retcon candidates
	else
		_files
	fi
}
if [ "$funcstack[1]" = "_retcon" ]; then
	_retcon "$@"
else
	compdef _retcon retcon
fi
`,
	"fish": `# fish completion for retcon
complete -c retcon -a '(retcon __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
}
