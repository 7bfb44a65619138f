package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// verbatim names the commands whose arguments are another program's command
// line. Their own flags end at the first argument, as with env or nice, so that
// "retcon exec claude --json" gives --json to claude.
var verbatim = map[string]bool{"exec": true, "hook": true, completeName: true}

// words is a command line taken apart. The flag library stops looking for flags
// at the first argument; people and agents write them anywhere. So the line is
// split here by what the commands declare, and put together again in the order
// the library wants: line.
type words struct {
	shared []string // flags of the app
	path   []string // the words that lead to the command
	flags  []string // flags of the command
	args   []string // everything else

	command *cli.Command // nil: none was named
	help    bool         // --help or -h stands somewhere
	ended   bool         // flags are over: what follows is an argument
	unknown string       // the first flag that nobody declares
	pending cli.Flag     // the last word is a flag, and its value is missing
}

// split takes a command line apart. It never fails: check says what is wrong.
//
// Until the command is found, words name it; after that they are arguments, and
// so is everything behind "--". A flag belongs to the command if the command
// declares it, otherwise to the app. "-" is an argument, and so is a negative
// number, unless there is such a flag.
func split(app *cli.App, rest []string) words {
	var w words
	var flags []cli.Flag // of the command; the app's are shared
	commands := app.Commands
	for len(rest) > 0 {
		word := rest[0]
		switch {
		case word == "--":
			w.args = append(w.args, rest[1:]...)
			w.ended = true
			return w
		case isFlag(word) && (word == "--help" || word == "-h"):
			w.help = true
			rest = rest[1:]
		case isFlag(word) || declared(flags, app.Flags, word):
			rest = w.flag(flags, app.Flags, rest)
		default:
			rest = rest[1:]
			if found := named(commands, word); found != nil && len(w.args) == 0 {
				w.path, w.command = append(w.path, word), found
				flags, commands = found.Flags, found.Subcommands
				continue
			}
			w.args = append(w.args, word)
			if w.command != nil && verbatim[w.command.Name] {
				w.args = append(w.args, rest...)
				w.ended = true
				return w
			}
		}
	}
	return w
}

// flag takes the flag at the head of rest, with its value, and returns what
// follows it.
func (w *words) flag(own, shared []cli.Flag, rest []string) []string {
	word, to, n := rest[0], &w.flags, 1
	f := lookup(own, word)
	if f == nil {
		if f = lookup(shared, word); f != nil {
			to = &w.shared
		} else if w.unknown == "" {
			w.unknown, _, _ = strings.Cut(word, "=")
		}
	}
	if takesValue(f) && !strings.Contains(word, "=") {
		if n = 2; len(rest) < n {
			w.pending, n = f, 1
		}
	}
	*to = append(*to, rest[:n]...)
	return rest[n:]
}

// line is the command line in the library's order.
func (w words) line(app *cli.App) []string {
	line := slices.Concat([]string{app.Name}, w.shared, w.path, w.flags)
	if len(w.args) > 0 {
		line = append(append(line, "--"), w.args...)
	}
	return line
}

// check says what is wrong with the words before any command sees them.
func (w words) check(app *cli.App) error {
	commands, own := app.Commands, app.Flags
	if w.command != nil {
		commands, own = w.command.Subcommands, slices.Concat(w.command.Flags, app.Flags)
	}
	name := w.name(app)
	if len(w.args) > 0 && (w.command == nil || len(commands) > 0) {
		what := fmt.Sprintf("%q is not a command", w.args[0])
		if w.command != nil {
			what += fmt.Sprintf(" of %s", name)
		}
		if near := nearest(w.args[0], commandNames(commands)); near != "" {
			return misuse(what, name+" "+near)
		}
		return misuse(what, name+" --help")
	}
	if w.unknown != "" {
		what := fmt.Sprintf("%s has no flag %s", name, w.unknown)
		if near := nearest(strings.TrimLeft(w.unknown, "-"), flagNames(own)); near != "" {
			return misuse(what, name+" "+dashed(near))
		}
		return misuse(what, name+" --help")
	}
	if w.help {
		return nil
	}
	if w.pending != nil {
		return misuse(fmt.Sprintf("%s needs a value", dashed(w.pending.Names()[0])), name+" --help")
	}
	if w.command != nil && len(commands) > 0 && w.command.Action == nil {
		return misuse(fmt.Sprintf("%s needs one of: %s", name, strings.Join(commandNames(commands), ", ")), name+" --help")
	}
	return nil
}

// name is how the command is called: "retcon op log".
func (w words) name(app *cli.App) string {
	return strings.Join(append([]string{app.Name}, w.path...), " ")
}

// isFlag: it begins with a dash, and is neither "-" nor a negative number.
func isFlag(word string) bool {
	if len(word) < 2 || word[0] != '-' {
		return false
	}
	_, err := strconv.ParseFloat(word, 64)
	return err != nil || word[1] == 'i' || word[1] == 'I' || word[1] == 'n' || word[1] == 'N' // -inf and -nan are no numbers of ours
}

// declared: a word that looks like a number, but is a flag of somebody's.
func declared(own, shared []cli.Flag, word string) bool {
	return len(word) > 1 && word[0] == '-' && (lookup(own, word) != nil || lookup(shared, word) != nil)
}

// lookup finds a flag by any of its names, with one dash or two.
func lookup(flags []cli.Flag, word string) cli.Flag {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-"), "=")
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

func named(commands []*cli.Command, word string) *cli.Command {
	for _, c := range commands {
		if c.HasName(word) {
			return c
		}
	}
	return nil
}

// asksForJSON: before the flags are parsed, and in case they cannot be.
func asksForJSON(args []string) bool {
	for _, a := range args {
		switch a {
		case "--":
			return false
		case "--json", "-json", "--json=true":
			return true
		}
	}
	return false
}

// arity reads how many arguments a usage asks for: "<a> [<b>] [<path>...]" is
// one or more. No limit is -1.
func arity(usage string) (least, most int) {
	for _, p := range placeholders(usage) {
		if !p.optional {
			least++
		}
		if most++; p.many {
			return least, -1
		}
	}
	return least, most
}

// placeholder is one argument of a usage.
type placeholder struct {
	text     string   // as written, without brackets for optional: "<path>..."
	name     string   // "path"
	choices  []string // {bash | zsh | fish}
	optional bool
	many     bool
}

// placeholders reads the arguments of a usage line, written in the words of the
// help: <name>, {a | b}, [optional], and ... for any number.
func placeholders(usage string) []placeholder {
	var all []placeholder
	for usage = strings.TrimSpace(usage); usage != ""; usage = strings.TrimSpace(usage) {
		var p placeholder
		var word string
		switch open := usage[0]; open {
		case '[', '{':
			end := strings.IndexByte(usage, open+2) // ']' and '}' stand two behind their partners
			if end < 0 {
				panic("BUG: usage is not closed: " + usage)
			}
			word, usage = usage[:end+1], usage[end+1:]
			if strings.HasPrefix(usage, "...") {
				p.many, usage = true, usage[3:]
			}
		default:
			word, usage, _ = strings.Cut(usage, " ")
		}
		if word == "--" || word == "[--]" {
			continue
		}
		if word[0] == '[' {
			p.optional, word = true, strings.TrimSpace(word[1:len(word)-1])
		}
		if strings.HasSuffix(word, "...") {
			p.many = true
		}
		p.text = word
		word = strings.TrimSuffix(word, "...")
		if strings.HasPrefix(word, "{") {
			for choice := range strings.SplitSeq(strings.Trim(word, "{}"), "|") {
				p.choices = append(p.choices, strings.TrimSpace(choice))
			}
		}
		p.name = strings.Trim(word, "<>{}")
		all = append(all, p)
	}
	return all
}
