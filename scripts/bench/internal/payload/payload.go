// Package payload makes payloads of hooks from those that a real client was
// recorded to send.
package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
)

// recordedIn is where the client worked whose payloads were recorded.
const recordedIn = "/home/dev/project"

// Change are the members of a payload that are not as they were recorded.
type Change map[string]any

// Recorded is a payload that was recorded in a file, about a directory and a
// session.
func Recorded(file, dir, session string, change Change) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	here, err := json.Marshal(dir)
	if err != nil {
		return nil, err
	}
	text = bytes.ReplaceAll(text, []byte(recordedIn), here[1:len(here)-1])
	var all Change
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	delete(all, "transcript_path") // of a file that is not there
	all["session_id"] = session
	maps.Copy(all, change)
	return json.Marshal(all)
}
