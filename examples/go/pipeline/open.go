package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/vcs"
	"github.com/retcon-dev/retcon/workflow"
)

// open makes the current directory a place to run workflows in: its worktree,
// and the ledger that the command line looks at too.
func open() (workflow.Options, func() error, error) {
	dir, err := os.Getwd()
	if err != nil {
		return workflow.Options{}, nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return workflow.Options{}, nil, err
	}
	w, err := vcs.Open(dir, vcs.Options{})
	if err != nil {
		return workflow.Options{}, nil, err
	}
	db, err := ledger.Open(filepath.Join(w.Folder(), "ledger.db"), ledger.Options{})
	if err != nil {
		return workflow.Options{}, nil, errors.Join(err, w.Close())
	}
	o := workflow.Options{
		Ledger:   db,
		Recorder: &checkpoint.Recorder{Ledger: db, Worktree: w, Host: host},
		Owner:    checkpoint.Self("user"),
		Actor:    "user",
		Now:      time.Now,
		Env:      os.Environ(),
	}
	return o, func() error { return errors.Join(db.Close(), w.Close()) }, nil
}
