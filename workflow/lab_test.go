package workflow_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/checkpoint"
	"github.com/retcon-dev/retcon/ledger"
	"github.com/retcon-dev/retcon/ledger/ledgertest"
	"github.com/retcon-dev/retcon/vcs"
	"github.com/retcon-dev/retcon/workflow"
	"github.com/retcon-dev/retcon/workflow/internal/value"
)

var ctx = context.Background()

// lab is a folder that workflows run in.
type lab struct {
	testing.TB
	root string
	opt  workflow.Options
	mu   sync.Mutex
	said []string // what went on, a line each

	newest int64 // run
}

func newLab(t testing.TB) *lab {
	t.Helper()
	root := filepath.Join(t.TempDir(), "work")
	require.NoError(t, os.Mkdir(root, 0o755))
	return openLab(t, root)
}

// openLab opens a folder that may have been worked in before.
func openLab(t testing.TB, root string) *lab {
	t.Helper()
	l := &lab{TB: t, root: root}
	w, err := vcs.Open(l.root, vcs.Options{Create: true})
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	db := ledgertest.OpenAt(t, filepath.Join(w.Folder(), "ledger.db"), ledger.Options{})
	l.opt = workflow.Options{Ledger: db, Recorder: &checkpoint.Recorder{Ledger: db, Worktree: w, Host: "here"},
		Owner: checkpoint.Self("test"), Actor: "user", Now: time.Now, Env: []string{"PATH=" + os.Getenv("PATH")},
		On: l.on}
	return l
}

func (l *lab) on(p workflow.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch p.Kind {
	case workflow.Started, workflow.Settled, workflow.Retried:
		l.said = append(l.said, strings.TrimSpace(fmt.Sprintf("%s %s %s", p.Kind, p.Task, p.Failure)))
	}
}

// ran lists the tasks that were begun, since the last call, without digests.
func (l *lab) ran() (tasks []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.said {
		if t, ok := strings.CutPrefix(s, "started "); ok {
			tasks = append(tasks, bare(t))
		}
	}
	l.said = nil
	return tasks
}

// bare is an id without its digest.
func bare(id string) string {
	at := strings.LastIndexByte(id, '~')
	if at < 0 {
		return id
	}
	rest := id[at+1:]
	if i := strings.IndexByte(rest, '#'); i >= 0 {
		return id[:at] + rest[i:]
	}
	return id[:at]
}

// load loads a program from sources: the first is the main one. Each is
// "name: text".
func (l *lab) load(sources ...string) *workflow.Program {
	l.Helper()
	p, err := load(sources...)
	require.NoError(l, err)
	return p
}

func load(sources ...string) (*workflow.Program, error) {
	files := map[string]string{}
	main := ""
	for _, s := range sources {
		name, text, ok := strings.Cut(s, ":\n")
		if !ok || strings.ContainsAny(name, " \n") {
			name, text = "main.star", s
		}
		files[name] = text
		if main == "" {
			main = name
		}
	}
	return workflow.LoadFile(main, func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	})
}

func (l *lab) start(source string) *workflow.Result {
	l.Helper()
	r, err := workflow.Start(ctx, l.opt, l.load(source), "", nil)
	require.NoError(l, err)
	return r
}

func (l *lab) resume(run int64, sources ...string) *workflow.Result {
	l.Helper()
	var o workflow.ResumeOptions
	if len(sources) > 0 {
		o.Program = l.load(sources...)
	}
	r, err := workflow.Resume(ctx, l.opt, run, o)
	require.NoError(l, err)
	return r
}

func (l *lab) file(name string) string {
	l.Helper()
	b, err := os.ReadFile(filepath.Join(l.root, name))
	require.NoError(l, err)
	return string(b)
}

func (l *lab) write(name, text string) {
	l.Helper()
	path := filepath.Join(l.root, name)
	require.NoError(l, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(l, os.WriteFile(path, []byte(text), 0o644))
}

// dump prints the log of a run.
func (l *lab) dump(run int64) {
	l.Helper()
	require.NoError(l, l.opt.Ledger.View(ctx, func(tx *ledger.Tx) error {
		b, err := tx.RunHead(run)
		if err != nil {
			return err
		}
		events, err := tx.Events(b.ID, ledger.EventQuery{Limit: 100000})
		for _, e := range events {
			l.Logf("%d.%d %s %s %s", e.Seq, e.Idx, e.Type, bare(e.Task), e.Body)
		}
		return err
	}))
}

// shownValue is a value on one line, with strings as they are.
func shownValue(v any) string {
	switch v := v.(type) {
	case []value.V:
		var parts []string
		for _, item := range v {
			parts = append(parts, shownValue(item))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case value.Dict:
		var parts []string
		for k, item := range v.All() {
			parts = append(parts, k+":"+shownValue(item))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return fmt.Sprint(v)
}
