//go:build !linux

package vcs

// A roamer is a thread with a working directory of its own, which is Linux's.
type roamer struct{}

func roam() *roamer { return nil }

func (*roamer) to(fd int) int { return fd }

func (*roamer) end() {}
