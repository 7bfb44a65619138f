package sideeffect

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKey(t *testing.T) {
	assert.Equal(t, "r7/plan/build/call_1#0", Key("r7", "plan/build", "call_1", 0))
	assert.Equal(t, "r%2F7/a%20b%23%25/c%2Fd%C3%A9#12", Key("r/7", "a b#%", "c/dé", 12))
}

// All keys of a small world: whatever stands in the parts, no two are alike.
func TestKeysDiffer(t *testing.T) {
	parts := []string{"", "a", "/", "a/a", "#0", "a#1", "%2F", "é "}
	seen := map[string]string{}
	for _, run := range parts {
		for _, task := range parts {
			for _, call := range parts {
				for epoch := range 2 {
					key := Key(run, task, call, epoch)
					what := fmt.Sprintf("%q %q %q %d", run, task, call, epoch)
					assert.Empty(t, seen[key], "%s is the key of %s too", key, what)
					seen[key] = what
					assert.NotRegexp(t, `[^!-~]`, key, "it is not fit for a header")
				}
			}
		}
	}
}

func TestSettle(t *testing.T) {
	for _, test := range []struct {
		from, to Status
		ok       bool
	}{
		{Intended, Succeeded, true}, {Intended, Failed, true}, {Intended, Unknown, true},
		{Unknown, Succeeded, true}, {Unknown, Failed, true}, {Unknown, Unknown, true},
		{Succeeded, Succeeded, true}, {Succeeded, Failed, false}, {Succeeded, Unknown, false},
		{Failed, Failed, true}, {Failed, Succeeded, false}, {Failed, Unknown, false},
		{Intended, Intended, false}, {Succeeded, Intended, false}, {Intended, "", false}, {Intended, "elsewhere", false},
	} {
		t.Run(string(test.from+" to "+test.to), func(t *testing.T) {
			e := Effect{Key: "k", Status: test.from}
			got, err := e.Settle(test.to)
			if !test.ok {
				var refused *TransitionError
				require.ErrorAs(t, err, &refused)
				assert.Equal(t, TransitionError{Effect: "k", From: string(test.from), To: string(test.to)}, *refused)
				assert.Equal(t, e, got, "nothing changes")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, Effect{Key: "k", Status: test.to}, got)
		})
	}
}

func TestLate(t *testing.T) {
	for _, comp := range []CompState{Compensating, Compensated, CompFailed, Crossed} {
		e, err := Effect{Status: Unknown, Comp: comp}.Settle(Succeeded)
		require.NoError(t, err)
		assert.True(t, e.Late, "%s", comp)
		assert.Equal(t, comp, e.Comp, "the compensation stands")
	}
	same, err := Effect{Status: Succeeded, Comp: Compensated}.Settle(Succeeded)
	require.NoError(t, err)
	assert.False(t, same.Late, "it was settled in time, and is told again")
}

func TestCompensationSteps(t *testing.T) {
	begin := func(e Effect) (Effect, error) { return e.BeginCompensation() }
	end := func(e Effect) (Effect, error) { return e.EndCompensation(Outcome{Result: Done}) }
	fail := func(e Effect) (Effect, error) {
		return e.EndCompensation(Outcome{Result: Refused, Detail: "no"})
	}
	unsure := func(e Effect) (Effect, error) { return e.EndCompensation(Outcome{Result: Unsure}) }
	cross := func(e Effect) (Effect, error) { return e.Cross() }
	for _, test := range []struct {
		name   string
		status Status
		from   CompState
		step   func(Effect) (Effect, error)
		to     CompState
		detail string
		refuse string
	}{
		{name: "begin", status: Succeeded, step: begin, to: Compensating},
		{name: "begin, unknown", status: Unknown, step: begin, to: Compensating},
		{name: "begin, never happened", status: Failed, step: begin, refuse: "effect k is failed and can't become compensating"},
		{name: "begin after a crash", status: Succeeded, from: Compensating, step: begin, to: Compensating},
		{name: "begin after a failure", status: Succeeded, from: CompFailed, step: begin, to: Compensating},
		{name: "begin again", status: Succeeded, from: Compensated, step: begin, refuse: "effect k is compensated and can't become compensating"},
		{name: "begin after crossing", status: Succeeded, from: Crossed, step: begin, refuse: "effect k is crossed and can't become compensating"},
		{name: "end", status: Succeeded, from: Compensating, step: end, to: Compensated},
		{name: "end without a beginning", status: Succeeded, step: end, refuse: "effect k is succeeded and can't become compensated"},
		{name: "end after crossing", status: Succeeded, from: Crossed, step: end, refuse: "effect k is crossed and can't become compensated"},
		{name: "fail", status: Succeeded, from: Compensating, step: fail, to: CompFailed, detail: "refused: no"},
		{name: "unsure is not done", status: Succeeded, from: Compensating, step: unsure, to: CompFailed, detail: "unknown"},
		{name: "cross", status: Succeeded, step: cross, to: Crossed},
		{name: "cross after a failure", status: Succeeded, from: CompFailed, step: cross, to: Crossed},
		{name: "cross after a crash", status: Succeeded, from: Compensating, step: cross, to: Crossed},
		{name: "cross again", status: Succeeded, from: Crossed, step: cross, to: Crossed},
		{name: "cross what is undone", status: Succeeded, from: Compensated, step: cross, refuse: "effect k is compensated and can't become crossed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := Effect{Key: "k", Status: test.status, Comp: test.from}
			got, err := test.step(e)
			if test.refuse != "" {
				require.EqualError(t, err, test.refuse)
				assert.Equal(t, e, got, "nothing changes")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, Effect{Key: "k", Status: test.status, Comp: test.to, CompDetail: test.detail}, got)
		})
	}
}

func TestEpoch(t *testing.T) {
	e := Effect{Epoch: 2, Status: Succeeded}
	assert.Equal(t, 2, e.NextEpoch(), "a retry of the call has its key")
	e.Comp = CompFailed
	assert.Equal(t, 2, e.NextEpoch())
	e.Comp = Compensated
	assert.Equal(t, 3, e.NextEpoch(), "what was undone is done anew")
}

func TestHappened(t *testing.T) {
	for status, want := range map[Status]bool{Intended: false, Succeeded: true, Unknown: true, Failed: false} {
		assert.Equal(t, want, Effect{Status: status}.Happened(), "%s", status)
	}
}

// The form in which an effect is stored and handed to handlers.
func TestEffectJSON(t *testing.T) {
	e := Effect{Seq: 4, Key: "r/t/c#1", Epoch: 1, Tool: "mcp__x__y", Args: json.RawMessage(`{"a":1}`), Class: Write, Status: Unknown,
		Fields: map[string]string{"id": "3"}, Compensation: Compensation{Handler: "undo"}}
	text, err := json.Marshal(e)
	require.NoError(t, err)
	assert.JSONEq(t, `{"seq":4,"key":"r/t/c#1","epoch":1,"tool":"mcp__x__y","args":{"a":1},"fields":{"id":"3"},"class":"write",
		"status":"unknown","compensation":{"handler":"undo"}}`, string(text))
	var back Effect
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, e, back)

	text, err = json.Marshal(Effect{Tool: "t", Class: Maybe, Status: Intended})
	require.NoError(t, err)
	assert.JSONEq(t, `{"tool":"t","class":"maybe","status":"intended"}`, string(text))
}

func TestStands(t *testing.T) {
	for _, test := range []struct {
		name   string
		effect Effect
		want   bool
	}{
		{"succeeded", Effect{Class: Write, Status: Succeeded}, true},
		{"unknown", Effect{Class: Maybe, Status: Unknown}, true},
		{"intended counts as unknown", Effect{Class: Write, Status: Intended}, true},
		{"it could not be undone", Effect{Class: Write, Status: Succeeded, Comp: CompFailed}, true},
		{"being undone", Effect{Class: Write, Status: Succeeded, Comp: Compensating}, true},
		{"failed", Effect{Class: Write, Status: Failed}, false},
		{"undone", Effect{Class: Write, Status: Succeeded, Comp: Compensated}, false},
		{"crossed", Effect{Class: Write, Status: Succeeded, Comp: Crossed}, false},
		{"a push", Effect{Class: Push, Status: Succeeded}, false},
		{"exempt", Effect{Class: Exempt, Status: Succeeded}, false},
		{"nothing to undo", Effect{Class: Write, Status: Succeeded, Compensation: Compensation{NotNeeded: "it expires"}}, false},
	} {
		assert.Equal(t, test.want, test.effect.Stands(), test.name)
	}
}
