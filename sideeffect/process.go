package sideeffect

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// A process undoes something. It leads a group of its own, which ends with it.
type process struct {
	path  string
	argv  []string
	dir   string
	env   []string
	stdin []byte
	gone  []string
}

// grace is how long output is waited for after a process has ended.
const grace = 500 * time.Millisecond

func (p process) run(ctx context.Context) Outcome {
	var out, stderr capped
	c := exec.CommandContext(ctx, p.path)
	c.Args = p.argv
	c.Dir = p.dir
	c.Env = append([]string{}, p.env...) // not nil, which would mean ours
	c.Stdin = bytes.NewReader(p.stdin)
	c.Stdout, c.Stderr = &out, &stderr
	c.WaitDelay = grace
	ownGroup(c)
	if err := c.Start(); err != nil {
		return Outcome{Result: Refused, Detail: "not started: " + line(err.Error())}
	}
	err := c.Wait()
	endGroup(c)
	o := p.outcome(ctx, c, err, &stderr, &out)
	o.Output = head(out.String() + stderr.String())
	return o
}

func (p process) outcome(ctx context.Context, c *exec.Cmd, err error, stderr, out *capped) Outcome {
	code := c.ProcessState.ExitCode()
	switch {
	case code == 0:
		return Outcome{Result: Done} // err, if any, is about output that something it left behind holds open, or input it did not read
	case code < 0 && ctx.Err() != nil:
		return Outcome{Result: Unsure, Detail: cut(ctx)}
	case code < 0:
		return Outcome{Result: Unsure, Detail: "killed: " + line(fmt.Sprint(err))}
	case p.saysGone(out) || p.saysGone(stderr):
		return Outcome{Result: Done, Detail: "nothing left to undo"}
	}
	detail := fmt.Sprintf("exit status %d", code)
	if said := line(orElse(strings.TrimSpace(stderr.String()), out.String())); said != "" {
		detail += ": " + said
	}
	return Outcome{Result: Refused, Detail: detail}
}

func (p process) saysGone(out *capped) bool {
	return slices.ContainsFunc(p.gone, func(text string) bool { return strings.Contains(out.String(), text) })
}

// capped keeps the beginning of what is written to it and takes the rest.
type capped struct{ bytes.Buffer }

func (c *capped) Write(data []byte) (int, error) {
	if room := outputCap - c.Len(); room > 0 {
		c.Buffer.Write(data[:min(room, len(data))])
	}
	return len(data), nil
}

// shown is an argv as it could be typed.
func shown(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = typed(arg)
	}
	return strings.Join(words, " ")
}
