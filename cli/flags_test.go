package cli

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/urfave/cli/v2"
)

// The library answers a missing required flag with its help on stdout, so
// commands check theirs themselves. A shared flag that a command declared again
// would be hidden from itself, and those of a group would be lost.
func TestFlagsOfCommands(t *testing.T) {
	var shared []string
	for _, f := range sharedFlags() {
		shared = append(shared, f.Names()...)
	}
	seen := 0
	var check func(path string, c *cli.Command)
	check = func(path string, c *cli.Command) {
		path += " " + c.Name
		for _, f := range c.Flags {
			seen++
			r, ok := f.(cli.RequiredFlag)
			assert.False(t, ok && r.IsRequired(), "%s: --%s", path, f.Names()[0])
			for _, name := range f.Names() {
				assert.False(t, slices.Contains(shared, name), "%s: --%s", path, name)
			}
		}
		if len(c.Subcommands) > 0 && c.Action == nil {
			assert.Empty(t, c.Flags, path)
		}
		for _, sub := range c.Subcommands {
			check(path, sub)
		}
	}
	c := &console{Env: Env{}.orNothing()}
	for _, command := range c.app().Commands {
		check("retcon", command)
	}
	assert.Greater(t, seen, 50)
}
