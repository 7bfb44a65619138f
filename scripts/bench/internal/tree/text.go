package tree

import (
	"bytes"
	"hash/fnv"
	"math/rand/v2"
)

var syllables = []string{
	"ac", "al", "ar", "ba", "be", "co", "da", "de", "en", "er", "fo", "ga", "he", "in", "ka", "la",
	"le", "ma", "mi", "no", "on", "or", "pa", "per", "ra", "re", "sa", "si", "ta", "ti", "tor", "ve",
}

// Text returns the content of a file: lines of words, from 2 to 6 KiB of them.
// Another version of a file is one of its lines written anew, at a place that
// depends on the version, as an edit would leave it.
func Text(name string, version int) []byte {
	text := lines(seeded(name, 0), 2048+seeded(name, 0).IntN(4096))
	if version == 0 {
		return text
	}
	return Changed(text, name, version)
}

// Changed returns text with one line, or what there is of it, written anew.
func Changed(text []byte, name string, version int) []byte {
	r := seeded(name, version)
	at := 0
	if len(text) > 0 {
		at = r.IntN(len(text))
	}
	begin := bytes.LastIndexByte(text[:at], '\n') + 1
	end := len(text)
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		end = at + i + 1
	}
	out := append([]byte(nil), text[:begin]...)
	out = append(out, line(r)...)
	return append(out, text[end:]...)
}

func seeded(name string, version int) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(h.Sum64(), uint64(version)))
}

func lines(r *rand.Rand, size int) []byte {
	out := make([]byte, 0, size+80)
	for len(out) < size {
		out = append(out, line(r)...)
	}
	return out
}

func line(r *rand.Rand) []byte {
	var out []byte
	for range 4 + r.IntN(6) {
		for range 1 + r.IntN(3) {
			out = append(out, syllables[r.IntN(len(syllables))]...)
		}
		out = append(out, ' ')
	}
	out[len(out)-1] = '\n'
	return out
}
