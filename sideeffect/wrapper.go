package sideeffect

import (
	"path"
	"strings"
)

// A wrapper is a program whose arguments are another program to run.
type wrapper struct {
	valued  string // its options that take a value
	skip    int    // operands before the program
	assigns bool   // NAME=value may stand before the program
	often   bool   // it runs the program any number of times
	script  string // an option whose value is a script
	joined  bool   // what follows is a script, joined by spaces
	after   string // operands that must come first: "run" in "poetry run"
	hunt    bool   // the program comes somewhere among words that are not told apart
}

var wrappers = map[string][]wrapper{
	"env":         {{valued: "-u --unset -C --chdir", assigns: true, script: "-S --split-string"}},
	"sudo":        {{valued: "-u --user -g --group -h --host -p --prompt -C -D --chdir -R --chroot -T -U -r -t", assigns: true}},
	"doas":        {{valued: "-u -C", assigns: true}},
	"su":          {{script: "-c --command", valued: "-s --shell -g -G", skip: 9}},
	"runuser":     {{script: "-c --command", valued: "-u -s -g -G"}},
	"timeout":     {{valued: "-k --kill-after -s --signal", skip: 1}},
	"gtimeout":    {{valued: "-k --kill-after -s --signal", skip: 1}},
	"nohup":       {{}},
	"setsid":      {{}},
	"command":     {{}},
	"builtin":     {{}},
	"exec":        {{valued: "-a"}},
	"nice":        {{valued: "-n --adjustment"}},
	"ionice":      {{valued: "-c -n -p"}},
	"taskset":     {{skip: 1}},
	"stdbuf":      {{valued: "-i -o -e"}},
	"time":        {{valued: "-f --format -o --output"}},
	"chronic":     {{}},
	"unbuffer":    {{}},
	"caffeinate":  {{valued: "-t -w"}},
	"busybox":     {{}},
	"torsocks":    {{}},
	"proxychains": {{valued: "-f"}},
	"strace":      {{valued: "-e -o -p -s -E"}},
	"flock":       {{skip: 1, valued: "-w --timeout -E", script: "-c --command"}},
	"chroot":      {{skip: 1}},
	"xargs":       {{valued: "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs --replace --max-lines --max-chars", often: true}},
	"parallel":    {{valued: "-j --jobs -a --arg-file -N -n -I --delay --timeout --retries --joblog --colsep", often: true, joined: true}},
	"watch":       {{valued: "-n --interval", often: true, joined: true}},
	"eval":        {{joined: true}},
	"script":      {{script: "-c --command"}},
	"nix-shell":   {{script: "--run --command", valued: "-p -I"}},
	"npx":         {{valued: "-p --package", script: "-c --call"}},
	"bunx":        {{}},
	"pnpx":        {{}},
	"uvx":         {{valued: "--from --with -p --python"}},
	"pipx":        {{after: "run", valued: "--spec"}},
	"pnpm":        {{after: "dlx", valued: "--package"}, {after: "exec"}},
	"yarn":        {{after: "dlx", valued: "-p --package"}, {after: "exec"}},
	"bun":         {{after: "x"}},
	"npm":         {{after: "exec", valued: "-p --package", script: "-c --call"}, {after: "x", valued: "-p --package", script: "-c --call"}},
	"poetry":      {{after: "run"}},
	"pipenv":      {{after: "run"}},
	"pdm":         {{after: "run"}},
	"hatch":       {{after: "run"}},
	"uv":          {{after: "run", hunt: true}, {after: "tool run", valued: "--from --with"}},
	"bundle":      {{after: "exec"}},
	"mise":        {{after: "exec", hunt: true}, {after: "x", hunt: true}},
	"asdf":        {{after: "exec"}},
	"direnv":      {{after: "exec", skip: 1}},
	"dotenv":      {{hunt: true}},
	"op":          {{after: "run", hunt: true}},
	"doppler":     {{after: "run", hunt: true}},
	"conda":       {{after: "run", hunt: true}},
	"nix":         {{after: "develop", hunt: true}, {after: "shell", hunt: true}},
	"devbox":      {{after: "run", hunt: true}},
	"aws-vault":   {{after: "exec", hunt: true}},
	"docker": {{after: "run", valued: dockerValued, skip: 1, hunt: true}, {after: "exec", valued: dockerValued, skip: 1, hunt: true},
		{after: "compose run", valued: dockerValued, skip: 1, hunt: true}, {after: "compose exec", valued: dockerValued, skip: 1, hunt: true}},
	"podman":  {{after: "run", valued: dockerValued, skip: 1, hunt: true}, {after: "exec", valued: dockerValued, skip: 1, hunt: true}},
	"nerdctl": {{after: "run", valued: dockerValued, skip: 1, hunt: true}, {after: "exec", valued: dockerValued, skip: 1, hunt: true}},

	"docker-compose": {{after: "run", valued: dockerValued, skip: 1, hunt: true}, {after: "exec", valued: dockerValued, skip: 1, hunt: true}},
}

// containers are wrappers whose program sees another world.
const containers = "docker podman nerdctl docker-compose chroot"

const dockerValued = `-f --file -p --project-name --env-file --profile --project-directory -H --host -c --context -e --env -v --volume --publish
	--name -w --workdir -u --user --network --net -h --hostname --entrypoint --mount -l --label --platform -m --memory --cpus --add-host
	--link --volumes-from --restart --gpus --shm-size --ulimit --cap-add --device --dns --ip --log-driver --pull --index`

// shells run a script.
var shells = map[string]bool{
	"sh": true, "bash": true, "zsh": true, "dash": true, "ksh": true, "ash": true, "mksh": true, "rbash": true,
}

// invoke notes a program, or looks through it at the program that it runs.
func (r *reader) invoke(argv []word, text string, at place) {
	for range 32 { // more wrappers than anybody writes
		argv[0].text = program(argv[0].text)
		name := argv[0].text
		switch {
		case shells[name]:
			r.shell(argv, text, at)
			return
		case name == "find" || name == "fd":
			r.find(argv, text, at)
			return
		case strings.HasPrefix(name, "python") && moduleOf(argv) != nil:
			argv = moduleOf(argv)
			continue
		case name == "trap" && len(argv) > 1:
			r.within(argv[1].text, at.aside())
			return
		}
		inner, script, w, ok := unwrap(argv)
		at.often = at.often || ok && w.often
		at.inside = at.inside || ok && hasWord(containers, name)
		if ok && script != "" {
			r.within(script, at)
			return
		}
		if !ok || len(inner) == 0 {
			break
		}
		argv = inner
	}
	r.found = append(r.found, invocation{
		argv: argv, text: text, stdin: at.stdin,
		certain: at.certain, final: at.final, shown: at.shown, often: at.often, inside: at.inside,
	})
}

// program is the name by which a program is known.
func program(name string) string {
	if name == "" || strings.HasSuffix(name, "/") {
		return ""
	}
	return strings.TrimSuffix(path.Base(name), ".exe")
}

// shell reads what bash -c, bash <<EOF and … | bash run. A script in a file is
// not looked into.
func (r *reader) shell(argv []word, text string, at place) {
	command, file := false, false
	for i := 1; i < len(argv); i++ {
		w := argv[i].text
		switch {
		case w == "--rcfile" || w == "--init-file":
			i++
		case strings.HasPrefix(w, "--") && w != "--":
		case strings.HasPrefix(w, "-") && w != "-" && w != "--" || strings.HasPrefix(w, "+"):
			command = command || strings.Contains(w, "c")
			if strings.HasSuffix(w, "o") || strings.HasSuffix(w, "O") {
				i++ // the name of an option
			}
		case w == "--" || w == "-":
		case command:
			r.within(w, at)
			return
		default:
			file = true
			i = len(argv)
		}
	}
	if !file && at.stdin.known {
		script := at.stdin.text
		at.stdin = input{}
		r.within(script, at)
		return
	}
	r.found = append(r.found, invocation{argv: argv, text: text, often: at.often})
}

// moduleOf is the program in python -m program.
func moduleOf(argv []word) []word {
	for i := 1; i+1 < len(argv); i++ {
		if argv[i].text == "-m" && isProgram(argv[i+1].text) {
			return append([]word{}, argv[i+1:]...)
		}
		if !argv[i].option() {
			return nil
		}
	}
	return nil
}

// find looks through find … -exec program … ;
func (r *reader) find(argv []word, text string, at place) {
	for i := 1; i < len(argv); i++ {
		switch argv[i].text {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
		default:
			continue
		}
		end := i + 1
		for end < len(argv) && argv[end].text != ";" && argv[end].text != "+" {
			end++
		}
		if end > i+1 {
			r.invoke(append([]word{}, argv[i+1:end]...), text, at.aside())
		}
		i = end
	}
}

// unwrap takes one wrapper off.
func unwrap(argv []word) (inner []word, script string, w wrapper, ok bool) {
	for _, w := range wrappers[argv[0].text] {
		rest, matches := afterWords(argv[1:], w)
		if !matches {
			continue
		}
		inner, script = w.open(rest)
		return inner, script, w, len(inner) > 0 || script != ""
	}
	if i := dashes(argv); i > 0 && i+1 < len(argv) && isProgram(argv[i+1].text) && !hasWord(plainArgs, argv[0].text) {
		return append([]word{}, argv[i+1:]...), "", wrapper{}, toolNamed(argv[0].text) == nil
	}
	return nil, "", wrapper{}, false
}

// plainArgs are programs whose arguments are never a program, whatever they are
// called.
const plainArgs = looking + " rm cp mv mkdir touch rg ag sed awk tee diff chmod chown ln tar install read unset export"

// afterWords skips the operands that make a program a wrapper.
func afterWords(args []word, w wrapper) ([]word, bool) {
	for want := range strings.FieldsSeq(w.after) {
		for len(args) > 0 && args[0].option() {
			if hasWord(w.valued, args[0].text) && len(args) > 1 {
				args = args[1:]
			}
			args = args[1:]
		}
		if len(args) == 0 || args[0].text != want {
			return nil, false
		}
		args = args[1:]
	}
	return args, true
}

// open finds the program, or the script, among a wrapper's arguments.
func (w wrapper) open(args []word) (inner []word, script string) {
	if w.hunt {
		return w.first(args), ""
	}
	skip := w.skip
	for i := 0; i < len(args); i++ {
		a := args[i].text
		flag, value, attached := strings.Cut(a, "=")
		switch {
		case a == "--":
		case args[i].option():
			if hasWord(w.script, flag) {
				if attached {
					return nil, value
				}
				if i+1 < len(args) {
					return nil, args[i+1].text
				}
			}
			if hasWord(w.valued, a) {
				i++
			}
		case w.assigns && attached && !strings.Contains(flag, "/"):
		case skip > 0:
			skip--
		case w.joined:
			return nil, join(args[i:])
		default:
			return append([]word{}, args[i:]...), ""
		}
	}
	return nil, ""
}

// first is the first word that is a known program, after as many operands as are
// skipped: the name of an image may be that of a program.
func (w wrapper) first(args []word) []word {
	skip := w.skip
	for i := 0; i < len(args); i++ {
		switch {
		case hasWord(w.valued, args[i].text):
			i++
		case args[i].option():
		case skip > 0:
			skip--
		case isProgram(args[i].text):
			return append([]word{}, args[i:]...)
		}
	}
	return nil
}

// join makes a script of words, as eval does.
func join(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

func dashes(argv []word) int {
	for i := range argv {
		if argv[i].text == "--" {
			return i
		}
	}
	return -1
}

// isProgram: the word is a program that this package knows.
func isProgram(text string) bool {
	name := path.Base(text)
	return toolNamed(name) != nil || len(wrappers[name]) > 0 || shells[name]
}

// hasWord reports whether a list of words separated by spaces holds one.
func hasWord(list, one string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == one {
			return true
		}
	}
	return false
}
