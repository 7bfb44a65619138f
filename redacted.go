package retcon

import "github.com/retcon-dev/retcon/internal/redact"

// Redacted takes out of a text, or of a JSON document, the secrets that can be
// known by their name or their form. Doors that lead off the machine send
// nothing else. JSON stays JSON.
func Redacted(text string) string {
	out, _ := redact.New().Text(text)
	return out
}
