package bench

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
)

// Options are what the caller of a bench may choose.
type Options struct {
	Check   bool
	JSON    bool
	Files   []int  // sizes of the trees to generate
	Repo    string // an existing repository, measured too; "" for none
	Rounds  int
	JJ      string // jj's binary; "" to look for it
	Scratch string // where trees are made; "" for the system's choice
	Only    string // rows whose case holds this text; "" for all
}

// DefaultFiles is the size of the tree when nothing is said about it.
const DefaultFiles = 20000

// Parse reads the options from a command line. What is wrong, or the help that
// was asked for, is written to out, and the error tells which.
func Parse(name string, args []string, out io.Writer) (Options, error) {
	var opt Options
	var files string
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(out)
	f.BoolVar(&opt.Check, "check", false, "exit with 1 when a goal is missed")
	f.BoolVar(&opt.JSON, "json", false, "print one JSON object a row")
	f.StringVar(&files, "files", "", "generate trees of `n[,n…]` files (default 20000, or none with --repo)")
	f.StringVar(&opt.Repo, "repo", "", "measure on a copy of the repository `dir`")
	f.IntVar(&opt.Rounds, "rounds", Rounds, "play `n` rounds, 7 at least")
	f.StringVar(&opt.JJ, "jj", "", "jj's `binary`, if it is not on PATH")
	f.StringVar(&opt.Scratch, "scratch", "", "make the trees below `dir`")
	f.StringVar(&opt.Only, "only", "", "only cases whose name contains `text`")
	if err := f.Parse(args); err != nil {
		return opt, err
	}
	return opt, opt.settle(f, files)
}

func (o *Options) settle(f *flag.FlagSet, files string) (err error) {
	defer func() {
		if err != nil {
			fmt.Fprintf(f.Output(), "%s: %v\n", f.Name(), err)
		}
	}()
	switch {
	case f.NArg() > 0:
		return fmt.Errorf("unexpected %q", f.Arg(0))
	case o.Rounds < Rounds:
		return fmt.Errorf("--rounds %d: fewer than %d say too little", o.Rounds, Rounds)
	case files == "" && o.Repo == "":
		o.Files = []int{DefaultFiles}
	}
	for n := range strings.SplitSeq(files, ",") {
		if files == "" {
			break
		}
		i, err := strconv.Atoi(n)
		if err != nil || i < 100 {
			return fmt.Errorf("--files %s: not a number of files, 100 at least", n)
		}
		o.Files = append(o.Files, i)
	}
	for _, path := range []*string{&o.Repo, &o.JJ, &o.Scratch} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	return nil
}

// Wants tells that a case was asked for.
func (o Options) Wants(name string) bool { return strings.Contains(name, o.Only) }

// Helped tells that an error of Parse is no misuse.
func Helped(err error) bool { return errors.Is(err, flag.ErrHelp) }
