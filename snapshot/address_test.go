package snapshot

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseAddress(t *testing.T) {
	for _, c := range []struct {
		text string
		want Point
	}{
		{"r7", Point{}},
		{"r7@last", Point{}},
		{"r7@-0", Point{}},
		{"r7@5", Point{Kind: AtFrame, N: 5}},
		{"r7@0", Point{Kind: AtFrame}},
		{"r7@-1", Point{Kind: AtBack, N: 1}},
		{"r7@start", Point{Kind: AtStart}},
		{"r7@c17", Point{Kind: AtCheckpoint, N: 17}},
		{"r7@~before-merge", Point{Kind: AtLabel, Text: "before-merge"}},
		{"r7@before", Point{Kind: AtTask, Edge: EdgeBefore, Text: "before"}},
		{"r7@after", Point{Kind: AtTask, Edge: EdgeAfter, Text: "after"}},
		{"r7@plan", Point{Kind: AtTask, Task: "plan", Text: "plan"}},
		{"r7@plan#2", Point{Kind: AtTask, Task: "plan", Attempt: 2, Text: "plan#2"}},
		{"r7@plan.before", Point{Kind: AtTask, Task: "plan", Edge: EdgeBefore, Text: "plan.before"}},
		{"r7@plan#2.after", Point{Kind: AtTask, Task: "plan", Attempt: 2, Edge: EdgeAfter, Text: "plan#2.after"}},
		{"r7@plan.after.before", Point{Kind: AtTask, Task: "plan.after", Edge: EdgeBefore, Text: "plan.after.before"}},
		{"r7@plan.before#2", Point{Kind: AtTask, Task: "plan.before", Attempt: 2, Text: "plan.before#2"}},
		{"r7@e0[x@y]/sh~1f2e#3#2", Point{Kind: AtTask, Task: "e0[x@y]/sh~1f2e#3", Attempt: 2, Text: "e0[x@y]/sh~1f2e#3#2"}},
		{"r7@plan#0", Point{Kind: AtTask, Task: "plan#0", Text: "plan#0"}},
		{"r7@plan#02", Point{Kind: AtTask, Task: "plan#02", Text: "plan#02"}},
		{"r7@#2", Point{Kind: AtTask, Task: "#2", Text: "#2"}},
		{"r7@.before", Point{Kind: AtTask, Task: ".before", Text: ".before"}},
		{"r7@cabc", Point{Kind: AtTask, Task: "cabc", Text: "cabc"}},
		{"r7@c017", Point{Kind: AtTask, Task: "c017", Text: "c017"}},
		{"r7@5a", Point{Kind: AtTask, Task: "5a", Text: "5a"}},
	} {
		a, err := ParseAddress(c.text)
		require.NoError(t, err, c.text)
		assert.Equal(t, Address{Run: "r7", Point: c.want}, a, c.text)
	}
	for text, reason := range map[string]string{
		"": "no run before the @", "@5": "no run before the @", "r7@": "no point after the @", "r7@now": "no point after the @",
		"r7@~": "no label after the ~", "r7@-": "no such point", "r7@-x": "no such point", "r7@--1": "no such point",
		"r7@007": "no such frame", "r7@99999999999999999999": "no such frame",
	} {
		_, err := ParseAddress(text)
		assert.Equal(t, &AddressError{Text: text, Reason: reason}, err)
	}
}

// What looks like a suffix may be part of an id.
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		text string
		ids  []string
		want Point
	}{
		{"sh~1f#2", []string{"sh~1f#2", "sh~1f"}, Point{Task: "sh~1f#2"}},
		{"sh~1f#2", []string{"sh~1f"}, Point{Task: "sh~1f", Attempt: 2}},
		{"sh~1f#2", nil, Point{Task: "sh~1f", Attempt: 2}},
		{"sh~1f#2.before", []string{"sh~1f#2"}, Point{Task: "sh~1f#2", Edge: EdgeBefore}},
		{"sh~1f#2.before", []string{"sh~1f#2.before"}, Point{Task: "sh~1f#2.before"}},
		{"sh~1f#2#3.after", []string{"sh~1f#2"}, Point{Task: "sh~1f#2", Attempt: 3, Edge: EdgeAfter}},
	} {
		a, err := ParseAddress("r7@" + c.text)
		require.NoError(t, err)
		c.want.Kind, c.want.Text = AtTask, c.text
		assert.Equal(t, c.want, a.Point.Settle(func(id string) bool {
			for _, known := range c.ids {
				if id == known {
					return true
				}
			}
			return false
		}), "%s of %v", c.text, c.ids)
	}
	other := Point{Kind: AtFrame, N: 3}
	assert.Equal(t, other, other.Settle(func(string) bool { return true }))
	edge := Point{Kind: AtTask, Edge: EdgeBefore, Text: "before"}
	assert.Equal(t, edge, edge.Settle(func(string) bool { return true }))
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"r7", "r7@5", "r7@-1", "r7@plan#2.before", "r7@~x", "r7@c17", "r7@start", "r7@after", "r7@a@b", "r7@4294967296"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddress(s)
		if err != nil {
			return
		}
		again, err := ParseAddress(a.String())
		require.NoError(t, err)
		require.Equal(t, a, again)
	})
}
