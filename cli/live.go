package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/retcon-dev/retcon"
)

// live shows a run while it goes on: at a terminal a line for each running task,
// drawn anew as they come and go, below what has happened; elsewhere plain
// lines. It writes to stderr.
type live struct {
	c       *console
	verbose bool
	events  bool
	columns int // 0: no terminal
	p       *page

	mu      sync.Mutex
	going   []underWay
	drawn   int // lines of the running tasks on the screen
	stopped bool
}

type underWay struct {
	task  string
	said  string // the last line it printed
	since time.Time
}

func (c *console) live(verbose, events bool) *live {
	columns, ok := c.Terminal(c.err)
	if !ok || events {
		columns = 0
	}
	l := &live{c: c, verbose: verbose, events: events, columns: columns, p: c.page(nil)}
	l.p.colour = c.colour && columns > 0
	return l
}

// watch redraws the running tasks while time goes by, and says how to go on when
// the run is told to stop.
func (l *live) watch(ctx context.Context) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		told := ctx.Done()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				l.redraw()
			case <-told:
				told = nil
				l.say("stopping: the tasks are told to end, the run can be resumed; interrupt again not to wait")
			}
		}
	}()
	return func() { close(end); <-ended }
}

func (l *live) redraw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw("")
}

// say writes a remark above the running tasks.
func (l *live) say(text string) {
	if l.c.quiet || l.events {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draw("retcon: " + text + "\n")
}

// progressed is what --events writes.
type progressed struct {
	Event   string     `json:"event"`
	At      time.Time  `json:"at"`
	Task    string     `json:"task"`
	Kind    string     `json:"kind"`
	State   string     `json:"state"`
	Attempt int        `json:"attempt"`
	Carried bool       `json:"carried"`
	Frame   *int64     `json:"frame"`
	Stream  string     `json:"stream"`
	Line    string     `json:"line"`
	Message string     `json:"message"`
	Due     *time.Time `json:"due"`
}

func (l *live) event(e retcon.Progress) {
	told := progressed{Event: e.Kind, At: l.c.Now().UTC(), Task: e.Task, Kind: e.TaskKind, Attempt: e.Attempt, Carried: e.Carried,
		Stream: e.Stream, Line: e.Line, Message: e.Failure}
	switch e.Kind {
	case retcon.Settled:
		told.State = e.State.String()
	case retcon.Framed:
		told.Frame = &e.Frame
	case retcon.Retried:
		due := e.Due.UTC()
		told.Due = &due
	}
	enc := json.NewEncoder(l.c.err)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(told) // stderr is gone: the run goes on all the same
}

// on is told what happens, one call at a time.
func (l *live) on(e retcon.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events {
		l.event(e)
		return
	}
	now := l.c.Now()
	at := slices.IndexFunc(l.going, func(u underWay) bool { return u.task == e.Task })
	line := ""
	switch e.Kind {
	case retcon.Started:
		if at < 0 {
			l.going = append(l.going, underWay{task: e.Task, since: now})
		}
	case retcon.Printed:
		if at >= 0 {
			l.going[at].said = oneLine(e.Line)
		}
		if l.verbose || e.Task == "" {
			line = l.p.dim(shortTask(e.Task)+":") + " " + clean(e.Line) + "\n"
			if e.Task == "" { // the body's own print
				line = clean(e.Line) + "\n"
			}
		}
	case retcon.Retried:
		line = fmt.Sprintf("%s %s  attempt %d: %s; again %s\n", l.p.yellow("↻"), shortTask(e.Task), e.Attempt, oneLine(e.Failure), in(now, e.Due))
	case retcon.Settled:
		took := ""
		if at >= 0 {
			took = "  " + lasted(now.Sub(l.going[at].since))
			l.going = slices.Delete(l.going, at, at+1)
		}
		if !quiet(e) {
			t := task{State: e.State.String(), Carried: e.Carried || at < 0 && begins(e)}
			line = t.mark(l.p) + " " + shortTask(e.Task) + l.p.dim(took)
			if e.Failure != "" {
				line += "  " + oneLine(e.Failure)
			}
			line += "\n"
		}
	}
	l.draw(line)
}

// quiet tells what nobody waits for: values that the engine makes itself.
func quiet(e retcon.Progress) bool {
	switch e.TaskKind {
	case "now", "uuid4", "randint", "choice", "checkpoint", "race":
		return e.State.String() == "done"
	}
	return false
}

// begins tells the kinds of tasks that are seen to start: one that settles
// without was kept.
func begins(e retcon.Progress) bool {
	switch e.TaskKind {
	case "sh", "agent", "http", "merge":
		return true
	}
	return false
}

// shortTask is a task's id without its digest.
func shortTask(id string) string {
	scope := strings.LastIndexByte(id, '/') + 1
	if i := strings.IndexByte(id[scope:], '~'); i > 0 {
		rest := id[scope+i:]
		number := ""
		if j := strings.IndexByte(rest, '#'); j > 0 {
			number = rest[j:]
		}
		id = id[:scope+i] + number
	}
	return clean(id)
}

// in says how long it is until a time.
func in(now, due time.Time) string {
	if d := due.Sub(now); d >= time.Second {
		return "in " + lasted(d)
	}
	return "at once"
}

// lasted is a duration for people.
func lasted(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "0 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// draw writes a line, and the running tasks anew below it.
func (l *live) draw(line string) {
	if l.c.quiet {
		return
	}
	if l.columns == 0 {
		if line != "" {
			fmt.Fprint(l.c.err, line)
		}
		return
	}
	var b strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", l.drawn)
	}
	b.WriteString(line)
	l.drawn = 0
	if !l.stopped {
		const most = 8
		for i, u := range l.going {
			if i == most {
				fmt.Fprintf(&b, "  and %d more\n", len(l.going)-most)
				l.drawn++
				break
			}
			text := []rune(fmt.Sprintf("▸ %s  %s  %s", shortTask(u.task), lasted(l.c.Now().Sub(u.since)), u.said))
			b.WriteString(strings.TrimRight(string(text[:min(len(text), l.columns-1)]), " ") + "\n")
			l.drawn++
		}
	}
	if b.Len() > 0 {
		fmt.Fprint(l.c.err, b.String())
	}
}

// done takes the running tasks away.
func (l *live) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.draw("")
}
