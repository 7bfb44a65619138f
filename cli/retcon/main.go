// Command retcon is a time machine for coding agents.
package main

import (
	"os"
	"runtime/debug"

	"github.com/retcon-dev/retcon/cli"
)

func main() {
	debug.SetGCPercent(400) // most commands end before 16 MiB are worth collecting
	os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr, cli.System()))
}
