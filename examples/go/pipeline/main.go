// Pipeline looks at every text file of a folder, side by side, and writes a
// report, as a workflow with typed tasks. Run it in a folder that retcon knows:
//
//	retcon init
//	go run github.com/retcon-dev/retcon/examples/go/pipeline
//
// When it fails it goes on with what is left: run it again with the run it has
// printed, or with its name.
//
//	go run github.com/retcon-dev/retcon/examples/go/pipeline r3
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/workflow"
)

// Count is what is known of a file.
type Count struct {
	File  string
	Words int
}

// Report is what is known of all of them.
type Report struct {
	Files   int
	Words   int
	Longest string
}

// pipeline is the workflow. It does the same whenever it is called with the
// same outcomes: what it needs of the world are tasks.
var pipeline = workflow.GoProgram{Name: "pipeline", Version: "1", Body: func(w *workflow.Context) (any, error) {
	files := workflow.Do(w, "list", list, "*.txt", workflow.TaskOptions{Fx: workflow.FxRead}).Out()

	counts := make([]*workflow.Task[Count], len(files)) // readers: they run side by side
	for i, file := range files {
		counts[i] = workflow.Do(w, "count", count, file, workflow.TaskOptions{
			Key: file, Fx: workflow.FxRead, Retry: workflow.Retry{Max: 2},
		})
	}
	var all []Count
	for _, c := range counts {
		all = append(all, c.Out())
	}

	report := workflow.Do(w, "sum", sum, all, workflow.TaskOptions{}).Out()
	workflow.Do(w, "write", write, report, workflow.TaskOptions{Fx: workflow.FxWrite}).Out()
	return report, nil
}}

// list returns the files that match a pattern, in order.
func list(ctx context.Context, pattern string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(workflow.Dir(ctx), pattern))
	for i, file := range files {
		files[i] = filepath.Base(file)
	}
	sort.Strings(files)
	return files, err
}

func count(ctx context.Context, file string) (Count, error) {
	text, err := os.ReadFile(filepath.Join(workflow.Dir(ctx), file))
	if err != nil {
		return Count{}, err
	}
	words := len(strings.Fields(string(text)))
	if words == 0 {
		return Count{}, fmt.Errorf("%s is empty", file)
	}
	return Count{File: file, Words: words}, nil
}

// sum has nothing to do with files: it is kept as long as it is given the same.
func sum(_ context.Context, counts []Count) (Report, error) {
	r := Report{Files: len(counts)}
	longest := 0
	for _, c := range counts {
		r.Words += c.Words
		if c.Words > longest {
			longest, r.Longest = c.Words, c.File
		}
	}
	return r, nil
}

func write(ctx context.Context, r Report) (string, error) {
	text := fmt.Sprintf("%d words in %d files, most of them in %s\n", r.Words, r.Files, r.Longest)
	return text, os.WriteFile(filepath.Join(workflow.Dir(ctx), "report.md"), []byte(text), 0o644)
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pipeline:", err)
		os.Exit(1)
	}
}

// run starts the pipeline in the current directory, or goes on with a run of it.
func run(ctx context.Context, args []string) (err error) {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	w, err := retcon.Open(ctx, retcon.Options{Dir: dir, Env: os.Environ(), Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	o := retcon.RunOptions{Name: "pipeline", On: func(p retcon.Progress) {
		if p.Kind == retcon.Started { // what is kept does not start
			fmt.Printf("%s, attempt %d\n", p.Task, p.Attempt)
		}
	}}
	var r *retcon.RunResult
	if len(args) > 0 {
		r, err = w.ResumeProgram(ctx, pipeline, retcon.ResumeOptions{Run: args[0], RunOptions: o})
	} else {
		r, err = w.RunProgram(ctx, pipeline, o)
	}
	if err != nil {
		return err
	}
	if r.Status != retcon.StatusOK {
		return fmt.Errorf("%s: %s: %s", r.Run, r.Task, r.Message)
	}
	fmt.Println(r.Run, "is done")
	return nil
}
