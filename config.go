package retcon

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/sideeffect"
	"github.com/retcon-dev/retcon/vcs"
)

// Config is what a user can set for a workspace. Zero means the default.
type Config struct {
	MaxFile       int64    `toml:"max_file" json:"max_file"`               // bytes; a larger file is noted, not captured
	IgnoredMax    int64    `toml:"ignored_max" json:"ignored_max"`         // bytes; a larger ignored file is left alone
	IgnoredPerDir int      `toml:"ignored_per_dir" json:"ignored_per_dir"` // of a folder with more ignored files none is captured
	Include       []string `toml:"include" json:"include"`                 // patterns of ignored paths to capture like any other

	KeepTools time.Duration `toml:"keep_tools" json:"keep_tools"` // how long all that tools and watchers made is kept
	Budget    int64         `toml:"budget" json:"budget"`         // bytes the store may take; gc thins history to keep to it

	Debounce time.Duration `toml:"debounce" json:"debounce"`   // how long watch waits for quiet
	MaxDelay time.Duration `toml:"max_delay" json:"max_delay"` // and how long at most

	Disabled bool `toml:"disabled" json:"disabled"` // hooks of agents record nothing

	// Rules say what else is an effect, and how it is undone.
	Rules []Rule `toml:"rule" json:"rule"`
}

// Rule recognises an effect.
type Rule = sideeffect.RuleConfig

// Defaults is what zero fields of a Config mean. A Budget of 0 is none.
func Defaults() Config {
	return Config{MaxFile: vcs.DefaultMaxFile, IgnoredMax: vcs.DefaultIgnoredMax, IgnoredPerDir: vcs.DefaultIgnoredPerDir,
		Include: []string{}, KeepTools: checkpoint.DefaultKeepTools, Debounce: vcs.DefaultDebounce, MaxDelay: vcs.DefaultMaxDelay}
}

// ConfigError is a setting that makes no sense.
type ConfigError struct {
	Key, Reason string
}

func (e *ConfigError) Error() string { return fmt.Sprintf("config: %s: %s", e.Key, e.Reason) }

// Validate returns a *ConfigError about the first setting that makes no sense.
func (c Config) Validate() error {
	for _, n := range []struct {
		key   string
		value int64
	}{
		{"max_file", c.MaxFile}, {"ignored_max", c.IgnoredMax}, {"ignored_per_dir", int64(c.IgnoredPerDir)},
		{"keep_tools", int64(c.KeepTools)}, {"budget", c.Budget}, {"debounce", int64(c.Debounce)}, {"max_delay", int64(c.MaxDelay)},
	} {
		if n.value < 0 {
			return &ConfigError{Key: n.key, Reason: "is below zero"}
		}
	}
	if c.KeepTools != 0 && c.KeepTools < time.Hour {
		return &ConfigError{Key: "keep_tools", Reason: "is less than an hour"}
	}
	if c.MaxDelay != 0 && c.MaxDelay < c.Debounce {
		return &ConfigError{Key: "max_delay", Reason: "is less than debounce"}
	}
	if slices.Contains(c.Include, "") {
		return &ConfigError{Key: "include", Reason: "holds an empty pattern"}
	}
	if _, err := sideeffect.NewRules(sideeffect.Config{Trusted: true, Rules: c.Rules}); err != nil {
		return &ConfigError{Key: "rule", Reason: strings.TrimPrefix(err.Error(), "rule ")}
	}
	return nil
}

// over is c where it says something, and the configuration of a repository where
// it does not. How long history is kept, and whether any is made, a repository
// does not say.
func (c Config) over(project Config) Config {
	c.MaxFile = cmp.Or(c.MaxFile, project.MaxFile)
	c.IgnoredMax = cmp.Or(c.IgnoredMax, project.IgnoredMax)
	c.IgnoredPerDir = cmp.Or(c.IgnoredPerDir, project.IgnoredPerDir)
	if len(c.Include) == 0 {
		c.Include = project.Include
	}
	if c.MaxDelay == 0 && c.Debounce == 0 { // one without the other may make no sense
		c.Debounce, c.MaxDelay = project.Debounce, project.MaxDelay
	}
	return c
}

// or fills the fields that are zero.
func (c Config) or(d Config) Config {
	if c.KeepTools == 0 {
		c.KeepTools = d.KeepTools
	}
	if c.Debounce == 0 {
		c.Debounce = d.Debounce
	}
	if c.MaxDelay == 0 {
		c.MaxDelay = max(d.MaxDelay, c.Debounce)
	}
	return c
}

// limits are the settings that a worktree is opened with.
type limits vcs.Options

func (c Config) limits(o vcs.Options) limits {
	o.MaxFile, o.IgnoredMax, o.IgnoredPerDir, o.Include = c.MaxFile, c.IgnoredMax, c.IgnoredPerDir, c.Include
	return limits(o)
}

// same tells that a worktree opened with c need not be opened again.
func (l limits) same(c Config) bool {
	return l.MaxFile == c.MaxFile && l.IgnoredMax == c.IgnoredMax && l.IgnoredPerDir == c.IgnoredPerDir &&
		slices.Equal(l.Include, c.Include)
}
