package redact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEveryForm(t *testing.T) {
	for _, f := range forms {
		t.Run(f.prefix, func(t *testing.T) {
			letter := "a"
			if f.rest&lower == 0 {
				letter = "A"
			}
			s := f.prefix + strings.Repeat(letter, f.least)
			got, changed := New().Text("x " + s + " y")
			assert.True(t, changed, s)
			assert.Contains(t, got, "[redacted:"+f.kind+"] y")
			short := "x " + s[:len(s)-1] + " y"
			if !strings.HasSuffix(f.prefix, "sig=") { // which is what a query looks like
				got, _ = New().Text(short)
				assert.Equal(t, short, got, "too short")
			}
		})
	}
}
