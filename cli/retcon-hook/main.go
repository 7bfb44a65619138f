// Command retcon-hook is what agents call: it begins sooner than retcon, and
// calls it for what it does not do itself. It takes the same arguments and
// always succeeds.
package main

import (
	"os"

	"github.com/retcon-dev/retcon/cli/handover"
)

func main() {
	_ = handover.Hook{Args: os.Args[1:], Getenv: os.Getenv, Parent: os.Getppid(), In: os.Stdin, Out: os.Stdout,
		Long: handover.Exec}.Run() // recording must never be in an agent's way
}
