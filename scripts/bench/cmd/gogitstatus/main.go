// Command gogitstatus asks go-git what has changed in a worktree.
package main

import (
	"fmt"
	"os"

	git "github.com/go-git/go-git/v5"
)

func main() {
	if err := status(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func status(dir string) error {
	r, err := git.PlainOpen(dir)
	if err != nil {
		return err
	}
	w, err := r.Worktree()
	if err != nil {
		return err
	}
	s, err := w.Status()
	if err != nil {
		return err
	}
	fmt.Print(s)
	return nil
}
