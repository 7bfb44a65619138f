package retcon

import (
	"strings"

	"github.com/retcon-dev/retcon/snapshot"
	"github.com/retcon-dev/retcon/workflow"
)

// scopeOf is the part of a task's id that says where in the body it stands:
// "p0.api" of "p0.api/test~0f3a", "" at the top.
func scopeOf(id string) string {
	scope, _, found := cutLast(id, "/")
	if !found {
		return ""
	}
	return scope
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// shortNames gives each task the shortest name that tells it from the others of
// its scope: what it is called, with the beginning of its digest, or all of its
// id.
func shortNames(rows []snapshot.Row) map[string]string {
	names := make(map[string]string, len(rows))
	for _, shorten := range []func(id string) string{called, digested} {
		owners := map[string][]string{}
		for _, r := range rows {
			name := scopeOf(r.Key) + "/" + shorten(r.Key)
			owners[name] = append(owners[name], r.Key)
		}
		for _, ids := range owners {
			if _, done := names[ids[0]]; len(ids) == 1 && !done {
				names[ids[0]] = shorten(ids[0])
			}
		}
	}
	for _, r := range rows {
		if names[r.Key] == "" {
			_, names[r.Key], _ = cutLast(r.Key, "/")
		}
	}
	return names
}

// called is a task's name in the body, with its key.
func called(id string) string {
	_, last, _ := cutLast(id, "/")
	if strings.HasSuffix(last, "]") {
		return last
	}
	_, name, _ := cutLast(workflow.TaskName(id), "/")
	return name
}

// digested is a task's name with four digits of its digest.
func digested(id string) string {
	_, last, _ := cutLast(id, "/")
	const digits = len("~0f3a")
	if i := strings.IndexByte(last, '~'); i > 0 && len(last) > i+digits {
		return last[:i+digits]
	}
	return last
}

// waitName is what a signal is sent to: the name of the wait, or all of its id
// where several have that name.
func waitName(id string, names map[string]string) string {
	name := called(id)
	for other := range names {
		if other != id && called(other) == name {
			return id
		}
	}
	return name
}
