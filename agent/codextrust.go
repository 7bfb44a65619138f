package agent

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// codexHook is one of our hooks as Codex finds it, with what it is trusted by.
type codexHook struct {
	event string
	key   string // file, event and place: another hook in front of it changes the key
	hash  string
	entry any
	alone bool // in its group
}

// codexFound are our hooks in the settings read from a file.
func codexFound(path string, tree map[string]any) []codexHook {
	hooks, _ := tree["hooks"].(map[string]any)
	var found []codexHook
	for _, e := range codexEvents {
		groups, _ := hooks[e.name].([]any)
		for i := range groups {
			g, _ := groups[i].(map[string]any)
			handlers, _ := g["hooks"].([]any)
			for k := range handlers {
				h, _ := handlers[k].(map[string]any)
				if command, _ := h["command"].(string); !ours(command, Codex) {
					continue
				}
				found = append(found, codexHook{
					event: e.name, entry: groups[i], alone: len(handlers) == 1,
					key:  fmt.Sprintf("%s:%s:%d:%d", path, snake(e.name), i, k),
					hash: codexHash(e.name, g, h),
				})
			}
		}
	}
	return found
}

// codexHash is how Codex 0.171 knows a command hook again: the digest of what
// it runs and when, as JSON with sorted keys.
func codexHash(event string, g, h map[string]any) string {
	identity := fields{"event_name": snake(event), "hooks": []fields{{
		"async": false, "command": h["command"], "timeout": h["timeout"], "type": "command",
	}}}
	if matcher, _ := g["matcher"].(string); matcher != "" {
		identity["matcher"] = matcher
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(encodedLine(identity)))
}

// trustOf is the hash that the user's settings hold for a key.
func trustOf(config map[string]any, key string) string {
	hooks, _ := config["hooks"].(map[string]any)
	state, _ := hooks["state"].(map[string]any)
	entry, _ := state[key].(map[string]any)
	hash, _ := entry["trusted_hash"].(string)
	return hash
}

// trustTable marks hooks as trusted.
func trustTable(hooks []codexHook) string {
	var b strings.Builder
	for _, h := range hooks {
		fmt.Fprintf(&b, "[hooks.state.%s]\ntrusted_hash = %s\n", encodedLine(h.key), encodedLine(h.hash))
	}
	return b.String()
}

func snake(event string) string {
	var b strings.Builder
	for i, r := range event {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// plain gives any tree the types of encoding/json.
func plain(tree any) (map[string]any, error) {
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(data, &out)
}
