package agent

import (
	"bytes"
	"fmt"
)

// ownFiles are hooks that a client reads from files of our own: one for all
// events, or one for each. A file is known to be ours by a line in it.
type ownFiles struct {
	files func(s Setup) ([]ownFile, error)
}

// ownFile is one of them.
type ownFile struct {
	path    string
	content []byte
	events  []string
	program bool // must be executable
}

// ownMark is in every file that is wholly ours.
const ownMark = "Installed by retcon agents add"

func (o ownFiles) edits(s Setup, in bool) ([]edit, []string, error) {
	files, err := o.files(s)
	if err != nil {
		return nil, nil, err
	}
	var edits []edit
	for _, f := range files {
		before, err := current(f.path)
		if err != nil {
			return nil, nil, err
		}
		e := edit{path: f.path, before: before, ours: true, program: f.program}
		foreign := before != nil && !bytes.Contains(before, []byte(ownMark))
		switch {
		case in && foreign:
			return nil, nil, fmt.Errorf("%s: %w", f.path, ErrTaken)
		case in:
			e.after = f.content
		case foreign:
			continue
		}
		edits = append(edits, e)
	}
	return edits, nil, nil
}

func (o ownFiles) status(s Setup) (Status, error) {
	files, err := o.files(s)
	if err != nil {
		return Status{}, err
	}
	var st Status
	for _, f := range files {
		now, err := current(f.path)
		if err != nil {
			return Status{}, err
		}
		state := Edited
		switch {
		case !bytes.Contains(now, []byte(ownMark)):
			state = Missing
		case bytes.Equal(now, f.content):
			state = Installed
		}
		st.Paths = append(st.Paths, f.path)
		for _, e := range f.events {
			st.Events = append(st.Events, EventStatus{Event: e, State: state})
		}
	}
	return st, nil
}
