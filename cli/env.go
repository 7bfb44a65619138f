package cli

import (
	"os"
	"time"

	"golang.org/x/term"
)

// Env is what a command line can learn of its surroundings. Main reads nothing
// but this, so that a test decides what there is. The zero value is a process
// with no directory, no variables and no terminal.
type Env struct {
	Dir     string              // the current directory; empty when it is gone
	Home    string              // the home directory; empty when there is none
	Getenv  func(string) string // one variable, "" when it is not set
	Environ func() []string     // all of them, for the programs that are started
	Now     func() time.Time

	// Terminal says whether a stream is a terminal, and how many columns it has.
	Terminal func(stream any) (columns int, ok bool)
}

// System is the surroundings of this process.
func System() Env {
	dir, _ := os.Getwd()        // empty: the commands that need one say so
	home, _ := os.UserHomeDir() // likewise
	return Env{Dir: dir, Home: home, Getenv: os.Getenv, Environ: os.Environ, Now: time.Now, Terminal: terminal}
}

func terminal(stream any) (columns int, ok bool) {
	f, isFile := stream.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		columns = 80 // a terminal that does not know its size
	}
	return columns, true
}

// orNothing fills the fields that were left out.
func (e Env) orNothing() Env {
	if e.Getenv == nil {
		e.Getenv = func(string) string { return "" }
	}
	if e.Environ == nil {
		e.Environ = func() []string { return nil }
	}
	if e.Now == nil {
		e.Now = time.Now
	}
	if e.Terminal == nil {
		e.Terminal = func(any) (int, bool) { return 0, false }
	}
	return e
}
