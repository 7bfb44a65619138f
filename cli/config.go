package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
)

func (c *console) configCommand() *cli.Command {
	return &cli.Command{
		Name:     "config",
		Usage:    "show and change the settings of this workspace",
		Category: "upkeep",
		Description: `The settings are in config.toml, in the folder of the store. Sizes are written as
100MiB, durations as 12h. Where it says nothing, a retcon.toml at the top of the
worktree may: but for keep_tools, budget and disabled, which are yours. Rules about
what is done outside go into either file; see docs/time-travel.md.

Examples:
  retcon config
  retcon config get max_file
  retcon config set max_file 20MiB
  retcon config set include 'dist/**' '*.generated.go'
  retcon config unset max_file`,
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "show all settings", Description: "Examples:\n  retcon config list",
				Action: c.listConfig,
			},
			{
				Name: "get", Usage: "print the value of one", ArgsUsage: "<key>", Description: "Examples:\n  retcon config get max_file",
				Action: func(ctx *cli.Context) error {
					return c.withConfig(ctx, func(_ string, in, project retcon.Config) error {
						s, err := findSetting(ctx.Args().First())
						if err != nil {
							return err
						}
						return c.answer(value{s.toldOver(in, project)})
					})
				},
			},
			{
				Name: "set", Usage: "change one", ArgsUsage: "<key> <value>...",
				Description: "Examples:\n  retcon config set keep_tools 240h\n  retcon config set include 'dist/**'",
				Action: func(ctx *cli.Context) error {
					return c.changeConfig(ctx, ctx.Args().Tail())
				},
			},
			{
				Name: "unset", Usage: "go back to the default of one", ArgsUsage: "<key>", Description: "Examples:\n  retcon config unset keep_tools",
				Action: func(ctx *cli.Context) error {
					return c.changeConfig(ctx, nil)
				},
			},
		},
		Action: c.listConfig,
	}
}

func (c *console) listConfig(ctx *cli.Context) error {
	return c.withConfig(ctx, func(file string, in, project retcon.Config) error {
		s := settingsAnswer{File: newPlace(file).Path}
		for _, one := range settings {
			s.Settings = append(s.Settings, one.toldOver(in, project))
		}
		return c.answer(s)
	})
}

// withConfig reads the settings as they are in the file. The workspace is opened
// without them, so that bad ones can be mended.
func (c *console) withConfig(ctx *cli.Context, do func(file string, in, project retcon.Config) error) error {
	none := func(string) (retcon.Config, error) { return retcon.Config{}, nil }
	return c.use(ctx.Context, retcon.Options{Load: none}, func(w *retcon.Workspace) error {
		in, err := loadConfig(w.Folder())
		if err != nil {
			return err
		}
		return do(filepath.Join(w.Folder(), configName), in, w.Project().Config())
	})
}

const configName = "config.toml"

// loadConfig reads the settings in the folder of a store; none when there is no
// file. A key nobody knows is an error: a setting that is misspelt would
// silently not be in force.
func loadConfig(folder string) (retcon.Config, error) {
	file := filepath.Join(folder, configName)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return retcon.Config{}, nil
	}
	if err != nil {
		return retcon.Config{}, fmt.Errorf("config: %w", err)
	}
	in, err := parseConfig(string(text))
	if err != nil {
		return in, badConfig(file, "", err)
	}
	return in, nil
}

// badConfig is a file that cannot be used, and how it is mended.
func badConfig(file, what string, err error) error {
	hint := "${EDITOR:-vi} " + quoted(file)
	var unknown *noSetting
	if errors.As(err, &unknown) && !strings.Contains(unknown.key, ".") {
		hint = "retcon config unset " + quoted(unknown.key)
	}
	return &failure{Code: "CONFIG", Message: fmt.Sprintf("%s: %s%v", name(file), what, err), Hints: []string{hint}}
}

// noSetting is a key that nobody knows.
type noSetting struct{ key string }

func (e *noSetting) Error() string {
	if near := nearest(e.key, append(settingKeys(), ruleKeys...)); near != "" {
		return fmt.Sprintf("there is no setting %q, but %s", e.key, near)
	}
	return fmt.Sprintf("there is no setting %q", e.key)
}

func parseConfig(text string) (retcon.Config, error) {
	var in retcon.Config
	meta, err := toml.Decode(text, &in)
	if err != nil {
		return in, err
	}
	for _, key := range meta.Undecoded() {
		if !slices.ContainsFunc(free, func(at string) bool { return strings.HasPrefix(key.String(), at) }) {
			return in, &noSetting{key.String()}
		}
	}
	return in, in.Validate()
}

// ruleKeys are what a rule may say.
var ruleKeys = []string{"rule", "rule.name", "rule.command", "rule.tool", "rule.match", "rule.class", "rule.find", "rule.atomic", "rule.undo",
	"rule.undo.command", "rule.undo.shell", "rule.undo.http", "rule.undo.mcp", "rule.undo.handler", "rule.undo.not_needed",
	"rule.undo.impossible", "rule.undo.gone", "rule.undo.env"}

// free are the beginnings of keys below which anything may stand: values that are
// handed on.
var free = []string{"rule.undo.http.body.", "rule.undo.mcp.args."}

// changeConfig sets a key to values, or takes it out when there are none.
func (c *console) changeConfig(ctx *cli.Context, values []string) error {
	s, err := findSetting(ctx.Args().First())
	line := ""
	if err != nil {
		if values != nil {
			return err
		}
		s.key = ctx.Args().First() // of no use in the file: it may go
	}
	if values != nil {
		literal, err := s.literal(values)
		if err != nil {
			return misuse(fmt.Sprintf("%s: %v", s.key, err), "retcon config set --help")
		}
		line = s.key + " = " + literal
	}
	none := func(string) (retcon.Config, error) { return retcon.Config{}, nil }
	return c.use(ctx.Context, retcon.Options{Load: none}, func(w *retcon.Workspace) error {
		file := filepath.Join(w.Folder(), configName)
		old, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("config: %w", err)
		}
		text := withLine(string(old), s.key, line)
		if s.get == nil && text == string(old) {
			_, err := findSetting(s.key)
			return err
		}
		in, err := parseConfig(text)
		var setting *retcon.ConfigError
		if errors.As(err, &setting) {
			return misuse(setting.Error(), "retcon config list")
		}
		if err != nil {
			return badConfig(file, "after this change ", err)
		}
		if err := replaceFile(file, text); err != nil {
			return fmt.Errorf("config: %w", err)
		}
		if s.get == nil {
			return c.answer(value{settingLine{Key: s.key}})
		}
		return c.answer(value{s.told(in)})
	})
}

// withLine returns the text with the line of a key replaced by another, or taken
// out. Everything else, comments too, stays as it was written.
func withLine(text, key, line string) string {
	var kept []string
	done := line == ""
	for old := range strings.Lines(text) {
		word, _, found := strings.Cut(old, "=")
		if found && strings.TrimSpace(word) == key {
			if !done {
				kept, done = append(kept, line+"\n"), true
			}
			continue
		}
		if !strings.HasSuffix(old, "\n") {
			old += "\n"
		}
		kept = append(kept, old)
	}
	if !done {
		kept = append([]string{line + "\n"}, kept...) // before the first table, should there be one
	}
	return strings.Join(kept, "")
}

// replaceFile writes a file whole or not at all.
func replaceFile(file, text string) error {
	f, err := os.CreateTemp(filepath.Dir(file), configName+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if serr := f.Sync(); err == nil {
		err = serr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name()) // what is left over is only a file in a folder of ours
	}
	return err
}

// setting is one key, and how it is read and shown.
type setting struct {
	key   string
	unit  string // bytes, ms, or ""
	about string
	get   func(retcon.Config) any // int64, time.Duration or []string
}

var settings = []setting{
	{"max_file", "bytes", "a larger file is noted, not captured", func(c retcon.Config) any { return c.MaxFile }},
	{"ignored_max", "bytes", "a larger ignored file is left alone", func(c retcon.Config) any { return c.IgnoredMax }},
	{"ignored_per_dir", "", "of a folder with more ignored files none is captured", func(c retcon.Config) any { return int64(c.IgnoredPerDir) }},
	{"include", "", "ignored paths to capture like any other", func(c retcon.Config) any { return c.Include }},
	{"keep_tools", "ms", "how long all that tools and watchers made is kept", func(c retcon.Config) any { return c.KeepTools }},
	{"budget", "bytes", "what the store may take; 0 is no limit", func(c retcon.Config) any { return c.Budget }},
	{"debounce", "ms", "how long watch waits for quiet", func(c retcon.Config) any { return c.Debounce }},
	{"max_delay", "ms", "how long watch waits at most", func(c retcon.Config) any { return c.MaxDelay }},
	{"disabled", "", "hooks of agents record nothing", func(c retcon.Config) any { return c.Disabled }},
}

func settingKeys() (keys []string) {
	for _, s := range settings {
		keys = append(keys, s.key)
	}
	return keys
}

func findSetting(key string) (setting, error) {
	i := slices.Index(settingKeys(), key)
	if i >= 0 {
		return settings[i], nil
	}
	hint := "retcon config list"
	if near := nearest(key, settingKeys()); near != "" {
		hint = "retcon config get " + near
	}
	return setting{}, &failure{Code: "NOT_FOUND", Message: fmt.Sprintf("there is no setting %q", key), Hints: []string{hint}}
}

// literal is the TOML of a value as typed.
func (s setting) literal(values []string) (string, error) {
	if s.key == "include" {
		var all []string
		for _, v := range values {
			all = append(all, tomlString(v))
		}
		return "[" + strings.Join(all, ", ") + "]", nil
	}
	if len(values) != 1 {
		return "", errors.New("takes one value")
	}
	switch s.unit {
	case "ms":
		d, err := time.ParseDuration(values[0])
		if err != nil {
			return "", fmt.Errorf("%q is not a duration such as 500ms, 10s or 720h", values[0])
		}
		return tomlString(d.String()), nil
	case "bytes":
		n, err := parseSize(values[0])
		if err != nil {
			return "", err
		}
		return strconv.FormatInt(n, 10), nil
	}
	if s.key == "disabled" {
		if v := values[0]; v != "true" && v != "false" {
			return "", fmt.Errorf("%q is neither true nor false", v)
		}
		return values[0], nil
	}
	n, err := strconv.ParseInt(values[0], 10, 32)
	if err != nil {
		return "", fmt.Errorf("%q is not a number", values[0])
	}
	return strconv.FormatInt(n, 10), nil
}

// tomlString writes a basic string of TOML.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// parseSize reads what size writes, and a plain number of bytes.
func parseSize(s string) (int64, error) {
	number := strings.TrimRight(s, "KMGTPEikmgtbB ")
	unit := strings.ToUpper(strings.TrimSpace(s[len(number):]))
	unit = strings.TrimSuffix(strings.TrimSuffix(unit, "B"), "I")
	v, err := strconv.ParseFloat(number, 64)
	shift := 0
	if unit != "" {
		if shift = 10 * (1 + strings.Index("KMGTPE", unit)); len(unit) != 1 || shift == 0 {
			err = errors.New("no unit")
		}
	}
	if v *= float64(int64(1) << shift); err != nil || v < 0 || v >= 1<<62 || v != v {
		return 0, fmt.Errorf("%q is not a size such as 20MiB", s)
	}
	return int64(v), nil
}

// settingLine is one setting as it is told.
type settingLine struct {
	Key     string `json:"key"`
	Value   any    `json:"value"`
	Default any    `json:"default"`
	Set     bool   `json:"set"`
	Unit    string `json:"unit"`
	About   string `json:"about"`
	From    string `json:"from"` // user, repository or default

	text string // as one would type it
}

func (s setting) told(in retcon.Config) settingLine { return s.toldOver(in, retcon.Config{}) }

// toldOver is told where the repository may have made the setting.
func (s setting) toldOver(in, project retcon.Config) settingLine {
	have, usual := s.get(in), s.get(retcon.Defaults())
	set, from := !isZero(have), s.from(in, project)
	switch from {
	case fromProject:
		have = s.get(project)
	case fromNobody:
		have = usual
	}
	line := settingLine{Key: s.key, Value: have, Default: usual, Set: set, Unit: s.unit, About: s.about, From: from}
	switch v := have.(type) {
	case time.Duration:
		line.text = shortDuration(v)
		line.Value, line.Default = v.Milliseconds(), usual.(time.Duration).Milliseconds()
	case []string:
		var words []string
		for _, p := range v {
			words = append(words, quoted(p))
		}
		line.text = strings.Join(words, " ")
	case bool:
		line.text = strconv.FormatBool(v)
	case int64:
		line.text = strconv.FormatInt(v, 10)
		if short := strings.ReplaceAll(size(v), " ", ""); s.unit == "bytes" && v > 0 {
			if n, err := parseSize(short); err == nil && n == v {
				line.text = short // only when nothing is lost
			}
		}
	}
	return line
}

func isZero(v any) bool {
	switch v := v.(type) {
	case time.Duration:
		return v == 0
	case []string:
		return len(v) == 0
	case int64:
		return v == 0
	case bool:
		return !v
	}
	return false
}

// shortDuration is a duration without the units that are zero: 720h, 1h30m.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// value answers get, set and unset.
type value struct{ settingLine }

func (v value) Text(p *page) {
	if v.text == "" {
		p.printf("-\n")
		return
	}
	p.printf("%s\n", v.text)
}

type settingsAnswer struct {
	File     string        `json:"file"`
	Settings []settingLine `json:"settings"`
}

func (s settingsAnswer) Text(p *page) {
	var rows [][]string
	for _, one := range s.Settings {
		text := one.text
		if text == "" {
			text = "-"
		}
		if one.Set {
			text = p.bold(text)
		}
		about := p.dim(one.About)
		if one.From == fromProject {
			about += "  (" + retcon.ProjectFile + ")"
		}
		rows = append(rows, []string{one.Key, text, about})
	}
	p.table(rows)
	p.printf("\nfile: %s\n", name(s.File))
}
