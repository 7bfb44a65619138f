// Command retcon is a time machine for coding agents.
package main

import (
	"os"

	"github.com/retcon-dev/retcon/cli"
)

func main() { os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr, cli.System())) }
