package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// confirm asks a question whose answer is no unless somebody says yes. Without
// a terminal there is nobody to ask, and the answer is a refusal that says how
// to go on: the command with --yes.
func (c *console) confirm(question, withYes string) error {
	if _, ok := c.Terminal(c.in); !ok || c.json {
		return &failure{
			Code:    "CONFIRMATION_NEEDED",
			Message: question + " there is no terminal to ask on",
			Hints:   []string{withYes},
		}
	}
	c.work.done()
	fmt.Fprintf(c.err, "%s [y/N] ", clean(question))
	typed := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(c.in).ReadString('\n')
		if err != nil {
			fmt.Fprintln(c.err) // the end of input: the cursor still stands behind the question
		}
		typed <- line
	}()
	select {
	case line := <-typed:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return nil
		}
	case <-c.stopped:
		fmt.Fprintln(c.err)
		return context.Canceled
	}
	return &failure{Code: "REFUSED", Message: "not confirmed; nothing was changed"}
}

// progress is one line on the terminal about work that takes a while. It shows
// nothing in the first second, nothing when stderr is no terminal, and leaves
// nothing behind. It may be used from several goroutines.
type progress struct {
	c       *console
	label   string
	columns int // 0: nobody is watching

	mu    sync.Mutex
	began time.Time
	drawn time.Time
}

const (
	progressAfter = time.Second
	progressEvery = 100 * time.Millisecond
)

func (c *console) progress(label string) *progress {
	columns, ok := c.Terminal(c.err)
	if !ok || c.quiet {
		columns = 0
	}
	return &progress{c: c, label: label, columns: columns, began: c.Now()}
}

// stage is update under another label, as the front door reports its work.
func (p *progress) stage(label string, done, total int) {
	if p.columns == 0 {
		return
	}
	p.mu.Lock()
	p.label = label
	p.mu.Unlock()
	p.update(int64(done), int64(total))
}

// update says how much is done. A total of 0 means that nobody knows.
func (p *progress) update(done, total int64) {
	if p.columns == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.c.Now()
	if now.Sub(p.began) < progressAfter || now.Sub(p.drawn) < progressEvery {
		return
	}
	p.drawn = now
	fmt.Fprintf(p.c.err, "\r%s\x1b[K", bar(p.label, done, total, p.columns-1))
}

// done takes the line away; a later update draws it again.
func (p *progress) done() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.drawn.IsZero() {
		fmt.Fprint(p.c.err, "\r\x1b[K")
		p.drawn = time.Time{}
	}
}

// bar draws a line no wider than columns.
func bar(label string, done, total int64, columns int) string {
	line := fmt.Sprintf("%s %d", label, done)
	if total > 0 {
		done = min(max(done, 0), total)
		line = fmt.Sprintf("%s %3d%%", label, done*100/total)
		const cells = 20
		if columns >= len([]rune(line))+cells+3 {
			full := int(done * cells / total)
			line += " [" + strings.Repeat("#", full) + strings.Repeat(".", cells-full) + "]"
		}
	}
	if r := []rune(line); len(r) > max(columns, 0) {
		line = string(r[:max(columns, 0)])
	}
	return line
}
