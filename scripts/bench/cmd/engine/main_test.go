package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCutSteps(t *testing.T) {
	for _, test := range []struct {
		args string
		n    int
		rest string
		bad  bool
	}{
		{"--check --rounds 9", 1000, "--check --rounds 9", false},
		{"--check --steps 200 --json", 200, "--check --json", false},
		{"--steps=300", 300, "", false},
		{"-steps 300", 300, "", false},
		{"--steps 99", 0, "", true},
		{"--steps many", 0, "", true},
		{"--steps", 0, "", true},
	} {
		n, rest, err := cutSteps(strings.Fields(test.args))
		assert.Equal(t, test.n, n, test.args)
		assert.Equal(t, test.rest, strings.Join(rest, " "), test.args)
		assert.Equal(t, test.bad, err != nil, test.args)
	}
}
