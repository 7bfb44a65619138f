package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Agents call the program that starts sooner, where it would find this one.
func TestQuicker(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	program := func(name string, mode os.FileMode) {
		require.NoError(t, os.MkdirAll(filepath.Dir(at(name)), 0o755))
		require.NoError(t, os.WriteFile(at(name), nil, mode))
	}
	program("alone/retcon", 0o755)
	program("both/retcon", 0o755)
	program("both/retcon-hook", 0o755)
	program("notes/retcon", 0o755)
	program("notes/retcon-hook", 0o644)
	program("other/retcon", 0o755)
	require.NoError(t, os.Symlink(at("both/retcon-hook"), at("other/retcon-hook")))
	require.NoError(t, os.Mkdir(at("links"), 0o755))
	for _, name := range []string{"retcon", "retcon-hook"} {
		require.NoError(t, os.Symlink(at("both/"+name), at("links/"+name)))
	}
	for exe, want := range map[string]string{
		"alone/retcon": "alone/retcon",
		"both/retcon":  "both/retcon-hook",
		"links/retcon": "links/retcon-hook",
		"notes/retcon": "notes/retcon", // it can't be called
		"other/retcon": "other/retcon", // it would find another
	} {
		assert.Equal(t, at(want), quicker(at(exe)), exe)
	}
}
