package retcon_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/cli"
	"github.com/retcon-dev/retcon/vcs"
)

// The test binary runs itself as the other processes.
var (
	long       = flag.Bool("long", false, "larger trees, and every checkpoint restored")
	childDir   = flag.String("child.dir", "", "run as another process: record checkpoints of this workspace")
	childCount = flag.Int("child.count", 0, "how many")
	childName  = flag.String("child.name", "", "in whose name")
	childLine  = flag.String("child.line", "", "be retcon in that directory, with these arguments, a JSON list")
	childAgent = flag.String("child.agent", "", "be an agent in that directory, under this name")
	childFiles = flag.Bool("child.files", false, "write files instead, until killed")
)

func TestMain(m *testing.M) {
	flag.Parse()
	switch {
	case *childDir == "":
		os.Exit(m.Run())
	case *childLine != "":
		dieAt(os.Getenv("CHILD_DIE"), os.Getenv("CHILD_LOG"))
		os.Exit(beRetcon(*childDir, *childLine))
	case *childAgent != "":
		os.Exit(beAgent(*childDir, *childAgent))
	case *childFiles:
		scribble(*childDir)
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// beRetcon is the program, in a process of its own.
func beRetcon(dir, line string) int {
	var args []string
	if err := json.Unmarshal([]byte(line), &args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	env := cli.System()
	env.Dir, env.Home = dir, "/nonexistent"
	return cli.Main(append([]string{"retcon"}, args...), os.Stdin, os.Stdout, os.Stderr, env)
}

// asRetcon is a command that runs retcon as a process of its own in a directory.
func asRetcon(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	line, err := json.Marshal(args)
	require.NoError(t, err)
	return exec.Command(exe, "-child.dir="+dir, "-child.line="+string(line))
}

// child records checkpoints, each by a workspace opened anew as a hook would,
// and says on stdout which ones.
func child() error {
	for i := range *childCount {
		w, err := retcon.Open(context.Background(), retcon.Options{Dir: *childDir, Now: time.Now, Actor: *childName})
		if err != nil {
			return err
		}
		c, err := w.Checkpoint(context.Background(), retcon.CheckpointOptions{Tier: retcon.TierTool, Note: fmt.Sprintf("%s %d", *childName, i)})
		if err != nil {
			return fmt.Errorf("%s: checkpoint %d: %w", *childName, i, err)
		}
		fmt.Printf("%s %d\n", c.Ref, i)
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

// scribble writes, renames and removes files for as long as it lives.
func scribble(dir string) {
	for i := 0; ; i++ {
		_ = os.WriteFile(filepath.Join(dir, "tmp-count"), fmt.Append(nil, i), 0o644)
		_ = os.Rename(filepath.Join(dir, "tmp-count"), filepath.Join(dir, "count"))
		d := filepath.Join(dir, "busy", strconv.Itoa(i%7))
		_ = os.MkdirAll(d, 0o755) // whatever stands in the way is part of the mess
		_ = os.WriteFile(filepath.Join(d, "f"), bytes.Repeat(fmt.Appendf(nil, "%d\n", i), 50), 0o644)
		_ = os.Rename(filepath.Join(d, "f"), filepath.Join(dir, "busy", fmt.Sprintf("g%d", i%5)))
		if i%11 == 0 {
			_ = os.RemoveAll(filepath.Join(dir, "busy", strconv.Itoa((i+3)%7)))
		}
		time.Sleep(time.Millisecond)
	}
}

// process is the test binary, running as somebody else.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	errs bytes.Buffer
	out  io.Reader
}

func start(t testing.TB, dir, name string, more ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	p := &process{t: t, cmd: exec.Command(exe, append([]string{"-child.dir=" + dir, "-child.name=" + name}, more...)...)}
	p.cmd.Stderr = &p.errs
	p.out, err = p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { p.kill() })
	return p
}

func (p *process) kill() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() } // it may have ended

// recorded reads what the process says it has recorded until it ends; each is
// called after each of them.
func (p *process) recorded(each func(n int)) (refs []string) {
	for s := bufio.NewScanner(p.out); s.Scan(); {
		ref, _, ok := strings.Cut(s.Text(), " ")
		if !ok {
			continue // cut off by the kill
		}
		refs = append(refs, ref)
		if each != nil {
			each(len(refs))
		}
	}
	return refs
}

// history checks that all that was acknowledged is there, that time and number
// agree, that every commit is whole; and puts some of them back.
func (p *place) history(acknowledged map[string]bool) []retcon.Checkpoint {
	p.t.Helper()
	list, err := p.Snapshots(ctx, retcon.ListOptions{Limit: 10_000, All: true})
	require.NoError(p.t, err)
	there := map[string]bool{}
	for i, c := range list {
		there[c.Ref] = true
		if i > 0 {
			assert.Less(p.t, c.ID, list[i-1].ID)
			assert.False(p.t, c.Created.After(list[i-1].Created), "%s is older than %s", list[i-1].Ref, c.Ref)
		}
	}
	for ref := range acknowledged {
		assert.True(p.t, there[ref], "%s was acknowledged and is lost", ref)
	}
	w, err := vcs.Open(p.dir, vcs.Options{})
	require.NoError(p.t, err)
	defer w.Close()
	counts := map[string]int{} // what the writer had counted to
	for _, c := range list {
		if _, ok := counts[c.Commit]; ok {
			continue
		}
		require.NoError(p.t, w.Complete(ctx, vcs.Commit(c.Commit)), c.Ref)
		counts[c.Commit] = -1
		files, err := w.Files(ctx, vcs.Commit(c.Commit))
		require.NoError(p.t, err)
		for _, f := range files {
			if f.Path == "count" {
				text, err := w.Content(f.New)
				require.NoError(p.t, err)
				counts[c.Commit], err = strconv.Atoi(string(text))
				require.NoError(p.t, err)
			}
		}
	}
	for i := 1; i < len(list); i++ {
		later, earlier := list[i-1], list[i]
		assert.LessOrEqual(p.t, counts[earlier.Commit], counts[later.Commit], "%s shows a later state than %s", earlier.Ref, later.Ref)
	}
	return list
}

// sample restores some of the checkpoints, exactly; with -long all of them.
func (p *place) sample(list []retcon.Checkpoint) {
	p.t.Helper()
	step := max(1, len(list)/8)
	if *long {
		step = 1
	}
	for i := 0; i < len(list); i += step {
		ref := retcon.Ref(list[i].Ref)
		_, err := p.Restore(ctx, retcon.RestoreOptions{Ref: ref, Exact: true})
		require.NoError(p.t, err, string(ref))
		d, err := p.Diff(ctx, retcon.DiffOptions{From: ref})
		require.NoError(p.t, err)
		assert.Empty(p.t, names(d.Changes), string(ref))
	}
}

// Sixteen processes record the same worktree while a seventeenth writes to it:
// nothing is lost, and everything recorded can be put back.
func TestSixteenProcesses(t *testing.T) {
	processes, each := 16, 50
	if testing.Short() {
		processes, each = 4, 10
	}
	p := newRepo(t)
	for i := range 50 {
		p.write(fmt.Sprintf("d%d/f%d", i%5, i), fmt.Sprint(i))
	}
	writer := start(t, p.dir, "writer", "-child.files")
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	var all sync.WaitGroup
	var children []*process
	for i := range processes {
		children = append(children, start(t, p.dir, fmt.Sprintf("p%d", i), "-child.count="+strconv.Itoa(each)))
	}
	for i, c := range children {
		all.Go(func() {
			refs := c.recorded(nil)
			assert.NoError(t, c.cmd.Wait(), c.errs.String())
			assert.Len(t, refs, each, "p%d", i)
			mu.Lock()
			defer mu.Unlock()
			for _, ref := range refs {
				assert.False(t, acknowledged[ref], "%s was given twice", ref)
				acknowledged[ref] = true
			}
		})
	}
	all.Wait()
	writer.kill()
	require.Len(t, acknowledged, processes*each)
	list := p.history(acknowledged)
	assert.Len(t, list, processes*each, "and nothing else was recorded")
	next := map[string]int{}
	for i := len(list) - 1; i >= 0; i-- { // oldest first
		c := list[i]
		assert.Equal(t, fmt.Sprintf("%s %d", c.Actor, next[c.Actor]), c.Note, "each process's in the order it made them")
		next[c.Actor]++
	}
	p.sample(list)
	p.healthy()
}

// A process that is killed takes nothing with it that others need, and leaves
// nothing that somebody must clean up.
func TestP54KilledWriters(t *testing.T) {
	p := newRepo(t)
	for i := range 400 {
		p.write(fmt.Sprintf("d%d/f%d", i%20, i), strings.Repeat(fmt.Sprint(i), 50))
	}
	writer := start(t, p.dir, "writer", "-child.files")
	rounds, each := 5, 10
	if testing.Short() {
		rounds = 2
	}
	acknowledged := map[string]bool{}
	for round := range rounds {
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 4 {
			c := start(t, p.dir, fmt.Sprintf("p%d-%d", round, i), "-child.count="+strconv.Itoa(each))
			all.Go(func() {
				refs := c.recorded(func(n int) {
					if i == 0 && n == 1+round {
						time.AfterFunc(time.Duration(round*7+1)*time.Millisecond, c.kill) // wherever it is then
					}
				})
				if i != 0 {
					assert.NoError(t, c.cmd.Wait(), c.errs.String())
					assert.Len(t, refs, each)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, ref := range refs {
					acknowledged[ref] = true
				}
			})
		}
		all.Wait()
	}
	writer.kill()
	p.clock = time.Now()
	p.checkpoint(retcon.CheckpointOptions{})
	list := p.history(acknowledged)
	p.sample(list)
	p.healthy()
	_, err := p.Collect(ctx, retcon.CollectOptions{})
	require.NoError(t, err)
	p.noLitter()
}

// noLitter finds what a write that died may leave in the store.
func (p *place) noLitter() {
	p.t.Helper()
	for _, pattern := range []string{"objects/tmp*", "objects/pack/tmp*", "objects/pack/.tmp*", "objects/??/tmp*"} {
		left, err := filepath.Glob(filepath.Join(p.Folder(), "store.git", pattern))
		require.NoError(p.t, err)
		assert.Empty(p.t, left)
	}
}

// A capture that is killed half way is no checkpoint, and harms none.
func TestP17KilledCapture(t *testing.T) {
	p := newFolder(t)
	p.clock = time.Now()
	p.write("a", "1")
	p.checkpoint(retcon.CheckpointOptions{})
	files := 3000
	if testing.Short() {
		files = 1000
	}
	if *long {
		files = 50_000
	}
	for i := range files {
		p.write(fmt.Sprintf("d%d/f%d", i%40, i), strings.Repeat(fmt.Sprint(i), 30))
	}
	for _, after := range []time.Duration{3, 10, 25, 60, 120} {
		c := start(t, p.dir, "killed", "-child.count=1")
		time.Sleep(after * time.Millisecond)
		c.kill()
	}
	list := p.history(nil)
	before := p.digest()
	p.write("a", "2")
	p.restore("c1", "a")
	assert.Equal(t, before, p.digest())
	assert.Equal(t, retcon.CodeNotFound, p.refused(retcon.RestoreOptions{Ref: retcon.Ref(fmt.Sprintf("c%d", list[0].ID+5))}))
	p.checkpoint(retcon.CheckpointOptions{})
	p.healthy()
	_, err := p.Collect(ctx, retcon.CollectOptions{})
	require.NoError(t, err)
	p.noLitter()
}

// Thirty that ask at once share a few looks at the worktree.
func TestP49ThirtyAtOnce(t *testing.T) {
	p := newRepo(t)
	for i := range 2000 {
		p.write(fmt.Sprintf("d%d/f%d", i%40, i), fmt.Sprint(i))
	}
	first := p.checkpoint(retcon.CheckpointOptions{})
	p.write("d0/f0", "changed")
	handles := make([]*vcs.Worktree, 30)
	for i := range handles {
		w, err := vcs.Open(p.dir, vcs.Options{})
		require.NoError(t, err)
		defer w.Close()
		handles[i] = w
	}
	// One holds the worktree until all have asked.
	holder, err := vcs.Open(p.dir, vcs.Options{})
	require.NoError(t, err)
	defer holder.Close()
	release, err := holder.Hold(ctx)
	require.NoError(t, err)
	found := make([]*vcs.Capture, len(handles))
	var asked, all sync.WaitGroup
	for i, w := range handles {
		asked.Add(1)
		all.Go(func() {
			asked.Done()
			c, err := w.Capture(ctx, vcs.CaptureOptions{})
			if assert.NoError(t, err) {
				found[i] = c
			}
		})
	}
	asked.Wait()
	time.Sleep(50 * time.Millisecond) // those that come later look for themselves, which is right too
	release()
	all.Wait()
	scans := 0
	for _, c := range found {
		require.NotNil(t, c)
		assert.Equal(t, found[0].Commit, c.Commit)
		assert.NotEqual(t, first.Commit, string(c.Commit))
		if !c.Stats.Reused {
			scans++
		}
	}
	assert.LessOrEqual(t, scans, 3)
}

// Collecting goes on beside writers, and takes nothing from them.
func TestP42WritersAndCollect(t *testing.T) {
	p := newRepo(t)
	p.clock = time.Now()
	p.write("a", "1")
	p.checkpoint(retcon.CheckpointOptions{})
	writer := start(t, p.dir, "writer", "-child.files")
	each := 40
	if testing.Short() {
		each = 10
	}
	acknowledged := map[string]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	done := make(chan struct{})
	for i := range 4 {
		c := start(t, p.dir, fmt.Sprintf("p%d", i), "-child.count="+strconv.Itoa(each))
		all.Go(func() {
			refs := c.recorded(nil)
			assert.NoError(t, c.cmd.Wait(), c.errs.String())
			mu.Lock()
			defer mu.Unlock()
			for _, ref := range refs {
				acknowledged[ref] = true
			}
		})
	}
	go func() { all.Wait(); close(done) }()
	collected := 0
	for going := true; going; {
		select {
		case <-done:
			going = false
		default:
			_, err := p.Collect(ctx, retcon.CollectOptions{Full: collected%2 == 0})
			if code(err) != retcon.CodeLocked { // it gives up after a while, when writers leave no gap
				require.NoError(t, err)
			}
			collected++
			time.Sleep(20 * time.Millisecond)
		}
	}
	writer.kill()
	assert.Len(t, acknowledged, 4*each)
	_, err := p.Collect(ctx, retcon.CollectOptions{Full: true})
	require.NoError(t, err)
	list := p.history(acknowledged)
	p.sample(list)
	p.healthy()
}

// Linked worktrees share a store: collecting in one keeps what the other needs.
func TestP42LinkedWorktrees(t *testing.T) {
	p := newCommitted(t)
	dir := filepath.Join(t.TempDir(), "wt")
	git(t, p.dir, "worktree", "add", "-q", dir)
	q := openPlace(t, dir, retcon.Options{})
	require.Equal(t, p.Folder(), q.Folder())
	q.write("only-here", noise(1, 5000))
	want := q.digest()
	c := q.checkpoint(retcon.CheckpointOptions{})
	q.write("only-here", noise(2, 5000))
	q.agent("echo 3 >only-here")
	for i := range 3 {
		p.write("a.txt", strconv.Itoa(i))
		p.checkpoint(retcon.CheckpointOptions{})
		_, err := p.Collect(ctx, retcon.CollectOptions{Full: true})
		require.NoError(t, err)
	}
	q.restore("r1@before")
	assert.Equal(t, noise(2, 5000), q.read("only-here"))
	q.restore(retcon.Ref(c.Ref))
	assert.Equal(t, want, q.digest())
	require.NoError(t, os.RemoveAll(dir))
	_, err := p.Collect(ctx, retcon.CollectOptions{Full: true})
	require.NoError(t, err)
	p.healthy()
}

// said is what one command line left behind.
type said struct {
	code     int
	out, err string
}

// command carries out a command line, blanks parting its words, as a person
// without a terminal would in dir.
func command(t testing.TB, dir, stdin, line string) said {
	t.Helper()
	return commandAt(t, cli.Env{Dir: dir, Home: "/nonexistent", Now: time.Now}, stdin, line)
}

func commandAt(t testing.TB, env cli.Env, stdin, line string) said {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Main(append([]string{"retcon"}, strings.Fields(line)...), strings.NewReader(stdin), &out, &errs, env)
	return said{code, out.String(), errs.String()}
}
