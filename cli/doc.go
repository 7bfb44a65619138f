// Package cli turns command lines into calls on the front door, and answers
// into text or JSON.
//
// A command is one file: a builder, a method of console that returns its
// *cli.Command, listed in commands in app.go. The base around them:
//
//	main.go      Main: one command line in, one exit code out
//	env.go       what the process knows of its surroundings
//	args.go      flags and arguments in any order
//	app.go       the list of commands, and what is the same for all
//	help.go      help, written from the commands themselves
//	errors.go    errors, hints and the table of exit codes
//	output.go    answers as text or JSON, and the style of the text
//	terminal.go  what only makes sense with a person watching
//	complete.go  completion for shells, with the values of values.go
//
// and what several commands share:
//
//	workspace.go opening the workspace with these surroundings
//	path.go      names of files in documents
//	taken.go     a checkpoint as it is told
//	state.go     a difference as it is told
//	move.go      a move, planned or carried out
//
// This is the only package that reads the environment, the home directory, the
// terminal and the clock; below it they are fields. It does not know how a
// worktree is captured or what a ledger looks like, and it does not exit:
// cli/retcon does.
package cli
