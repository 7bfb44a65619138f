package agent

import (
	_ "embed" // the plugin
	"path/filepath"
	"strings"
)

// openCode is opencode.
var openCode = client{
	Info: Info{
		Name: OpenCode, Title: "opencode", Binary: "opencode",
		Hint: "npm install -g opencode-ai", Verified: "1.18.33",
	},
	decode: decodeOpenCode,
	answers: map[string]form{
		"tool.execute.before": {deny: pluginDeny},
		"chat.message":        {deny: pluginDeny, note: pluginNote},
	},
	setup:    openCodePlugin,
	headless: &openCodeHeadless,
	resume:   openCodeContinue,
}

// The plugin is ours, and so are its words.

func pluginDeny(_, reason string) any { return fields{"deny": reason} }
func pluginNote(_, text string) any   { return fields{"note": text} }

//go:embed opencode_plugin.js
var pluginSource string

// openCodeEvents are those that the plugin passes on.
var openCodeEvents = []string{"event", "tool.execute.before", "tool.execute.after", "chat.message"}

var openCodePlugin = ownFiles{files: func(s Setup) ([]ownFile, error) {
	dir := s.folder(".opencode", "OPENCODE_CONFIG_DIR", ".config", "opencode")
	if xdg := s.env("XDG_CONFIG_HOME"); xdg != "" && s.Scope != Project && s.env("OPENCODE_CONFIG_DIR") == "" {
		dir = filepath.Join(xdg, "opencode")
	}
	return []ownFile{{
		path: filepath.Join(dir, "plugins", "retcon.js"), events: openCodeEvents,
		content: []byte(strings.Replace(pluginSource, `"{{exe}}"`, string(encodedLine(s.Exe)), 1)),
	}}, nil
}}
