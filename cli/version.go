package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// build says which program this is.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // built from a tree that differs from the commit
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func (c *console) versionCommand() *cli.Command {
	return &cli.Command{
		Name:        "version",
		Usage:       "print which build this is",
		Category:    "about",
		Description: "Examples:\n  retcon version\n  retcon version --json",
		Action:      func(*cli.Context) error { return c.answer(thisBuild()) },
	}
}

// thisBuild is what the Go linker recorded; nothing is stamped in by hand.
func thisBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) Text(p *page) {
	p.printf("retcon %s", b.Version)
	if b.Commit != "" {
		p.printf(" (%.12s", b.Commit)
		if b.Modified {
			p.printf(", modified")
		}
		p.printf(")")
	}
	p.printf(" %s %s/%s\n", b.Go, b.OS, b.Arch)
}
