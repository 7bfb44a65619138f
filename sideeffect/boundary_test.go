package sideeffect

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBoundary(t *testing.T) {
	h := programs(t, "undo")
	undo := argv("undo")
	lost := argv("undo", "{{.id}}")
	mail := never("a mail can't be called back")
	effect := func(key string, status Status, c Compensation) Effect {
		return Effect{Key: key, Tool: "t", Class: Write, Status: status, Compensation: c}
	}
	with := func(e Effect, change func(*Effect)) Effect { change(&e); return e }
	type want struct {
		compensate, blocked, crossed, listed []string
	}
	for _, test := range []struct {
		name    string
		options BoundaryOptions
		effects []Effect // the oldest first
		want    want
	}{
		{name: "none"},
		{name: "newest first",
			effects: []Effect{effect("a", Succeeded, undo), effect("b", Unknown, undo), effect("c", Succeeded, undo)},
			want:    want{compensate: []string{"c", "b", "a"}}},
		{name: "what never happened",
			effects: []Effect{effect("a", Failed, undo), effect("b", Failed, mail), effect("c", Succeeded, undo)},
			want:    want{compensate: []string{"c"}}},
		{name: "one that can't be undone is in the way of all",
			effects: []Effect{effect("a", Succeeded, undo), effect("b", Succeeded, mail), effect("c", Unknown, Compensation{}), effect("d", Succeeded, lost)},
			want:    want{compensate: []string{"a"}, blocked: []string{"d missing-value", "c no-compensation", "b impossible"}}},
		{name: "one still intended may have happened",
			effects: []Effect{effect("a", Intended, mail)},
			want:    want{blocked: []string{"a impossible"}}},
		{name: "a status nobody knows", effects: []Effect{effect("a", "odd", mail)}, want: want{blocked: []string{"a impossible"}}},
		{name: "maybe is in the way",
			effects: []Effect{with(effect("a", Succeeded, Compensation{}), func(e *Effect) { e.Class = Maybe })},
			want:    want{blocked: []string{"a no-compensation"}}},
		{name: "pushes and exempt ones are listed",
			effects: []Effect{with(effect("a", Succeeded, Compensation{}), func(e *Effect) { e.Class = Push }),
				with(effect("b", Unknown, mail), func(e *Effect) { e.Class = Exempt }), effect("c", Succeeded, Compensation{NotNeeded: "it expires"})},
			want: want{listed: []string{"c", "b", "a"}}},
		{name: "what is settled stays so",
			effects: []Effect{with(effect("a", Succeeded, undo), func(e *Effect) { e.Comp = Compensated }),
				with(effect("b", Succeeded, mail), func(e *Effect) { e.Comp = Crossed })}},
		{name: "a retry goes on where it stopped",
			effects: []Effect{effect("a", Succeeded, undo), with(effect("b", Succeeded, undo), func(e *Effect) { e.Comp = CompFailed }),
				with(effect("c", Succeeded, undo), func(e *Effect) { e.Comp = Compensating }), with(effect("d", Succeeded, undo), func(e *Effect) { e.Comp = Compensated })},
			want: want{compensate: []string{"c", "b", "a"}}},
		{name: "compensation not allowed", options: BoundaryOptions{NoCompensate: true},
			effects: []Effect{effect("a", Succeeded, undo), effect("b", Succeeded, mail), effect("c", Succeeded, Compensation{NotNeeded: "x"})},
			want:    want{blocked: []string{"b impossible", "a not-asked"}, listed: []string{"c"}}},
		{name: "force undoes what it can", options: BoundaryOptions{Force: true},
			effects: []Effect{effect("a", Succeeded, undo), effect("b", Succeeded, mail), effect("c", Failed, mail), effect("d", Unknown, lost)},
			want:    want{compensate: []string{"a"}, crossed: []string{"d", "b"}}},
		{name: "force without compensation", options: BoundaryOptions{Force: true, NoCompensate: true},
			effects: []Effect{effect("a", Succeeded, undo), effect("b", Succeeded, mail)},
			want:    want{crossed: []string{"b", "a"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			given := make([]Effect, len(test.effects))
			for i, e := range test.effects {
				e.Seq = int64(i + 1)
				given[(i*7+3)%len(given)] = e // in no order
				if len(given)%7 == 0 {
					t.Fatal("the order needs another step")
				}
			}
			plan, err := Boundary(given, test.options, h)
			var got want
			for _, c := range plan.Compensate {
				got.compensate = append(got.compensate, c.Effect.Key)
				assert.Equal(t, "undo", c.Shown)
			}
			for _, b := range plan.Blocked {
				got.blocked = append(got.blocked, b.Effect.Key+" "+string(b.Reason))
			}
			for _, e := range plan.Crossed {
				got.crossed = append(got.crossed, e.Key)
			}
			for _, e := range plan.Listed {
				got.listed = append(got.listed, e.Key)
			}
			assert.Equal(t, test.want, got)
			if len(plan.Blocked) == 0 {
				require.NoError(t, err)
				return
			}
			var blocked *BlockedError
			require.ErrorAs(t, err, &blocked)
			assert.Equal(t, plan.Blocked, blocked.Blocked)
		})
	}
}

func TestBlockedErrorNamesEach(t *testing.T) {
	_, err := Boundary([]Effect{
		{Seq: 1, Key: "r/a/1#0", Rule: "gh issue create", Class: Write, Status: Unknown, Compensation: argv("sh", "{{.url}}")},
		{Seq: 2, Key: "r/a/2#0", Rule: "mail", Class: Write, Status: Succeeded, Compensation: never("a mail can't be called back")},
	}, BoundaryOptions{}, Handlers{Env: []string{"PATH=/bin:/usr/bin"}})
	require.EqualError(t, err, "2 effects are in the way:\n"+
		"  mail (r/a/2#0): a mail can't be called back; undo it by hand and say so, or cross it\n"+
		"  gh issue create (r/a/1#0): nobody knows its url, nor whether it happened; record url, settle it as failed if it did not happen, or cross it")
	_, err = Boundary([]Effect{{Key: "k", Tool: "t", Class: Write, Status: Succeeded}}, BoundaryOptions{}, Handlers{})
	require.EqualError(t, err, "an effect is in the way: t (k): no compensation is known; record one, add a rule, undo it by hand and say so, or cross it")
}
