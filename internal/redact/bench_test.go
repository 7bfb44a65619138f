package redact_test

import (
	"strings"
	"testing"

	"github.com/retcon-dev/retcon/internal/redact"
)

func BenchmarkText(b *testing.B) {
	for name, line := range map[string]string{
		"log":  "2026-11-30T12:00:00Z level=info msg=\"listening on http://localhost:8080\" pid=412 path=/var/log/x.log\n",
		"code": "\tif err := f.Sync(); err != nil { return nil, fmt.Errorf(\"sync %s: %w\", path, err) }\n",
		"JSON": `{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":12},"content":[{"type":"text","text":"ok"}]}}` + "\n",
	} {
		b.Run(name, func(b *testing.B) {
			text := strings.Repeat(line, 1<<20/len(line))
			r := redact.New("hunter2hunter2", "correct horse battery staple")
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, changed := r.Text(text); changed {
					b.Fatal("a secret where there is none")
				}
			}
		})
	}
}
