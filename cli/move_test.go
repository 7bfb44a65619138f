package cli

import "testing"

func TestKeeps(t *testing.T) {
	for _, test := range []struct {
		name string
		m    moved
		want bool
	}{
		{"nothing differs", moved{}, false},
		{"what is ignored does not count", moved{Kept: []note{{Why: "ignored"}}}, false},
		{"somebody's change is kept", moved{Kept: []note{{Why: "ignored"}, {Why: "changed since"}}}, true},
		{"a content was never captured", moved{NotRestorable: []note{{Why: "not captured: size"}}}, true},
	} {
		if got := test.m.keeps(); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
