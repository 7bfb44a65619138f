package timeline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/retcon-dev/retcon/timeline"
)

// An agent moves ten times an hour and is told when it may again; what changed
// nothing does not count, and people are not limited.
func TestRateLimit(t *testing.T) {
	p := newPlace(t)
	p.write("a", "1")
	one := p.checkpoint()
	move := func() error {
		_, err := p.m.Move(context.Background(), timeline.Request{To: one, Target: "c1"})
		return err
	}
	p.m.Actor = "agent"
	for i := range 10 {
		p.write("a", fmt.Sprint("work ", i))
		if err := move(); err != nil {
			t.Fatalf("move %d: %v", i, err)
		}
		for range 3 { // nothing to do
			if err := move(); i < 9 && err != nil {
				t.Fatalf("nothing to do, after %d: %v", i, err)
			}
		}
	}
	p.write("a", "more work")
	before := time.Now()
	err := move()
	var limit *timeline.RateLimitError
	if !errors.As(err, &limit) || limit.Actor != "agent" {
		t.Fatalf("the eleventh: %v", err)
	}
	if wait := limit.Retry.Sub(before); wait <= 0 || wait > time.Hour {
		t.Errorf("again in %v", wait)
	}
	p.is("a", "more work")
	p.m.Actor = "another agent"
	if err := move(); err != nil {
		t.Errorf("another agent: %v", err)
	}
	p.write("a", "more work")
	p.m.Actor = timeline.User
	if err := move(); err != nil {
		t.Errorf("a person: %v", err)
	}
	p.write("a", "more work")
	p.m.Actor, p.m.Now = "agent", func() time.Time { return limit.Retry.Add(time.Minute) }
	if err := move(); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}
