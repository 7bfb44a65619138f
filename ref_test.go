package retcon_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
)

func TestRef(t *testing.T) {
	p := newFolder(t)
	p.write("a", "1")
	start := p.checkpoint(retcon.CheckpointOptions{Label: "start"}) // c1
	p.exec("build", func() { p.write("a", "2") })                   // r1: c2, c3
	p.exec("test", func() { p.write("a", "3") })                    // r2: c4, c5
	p.checkpoint(retcon.CheckpointOptions{Label: "build"})          // c6: a label called like a run
	_, err := p.Restore(ctx, retcon.RestoreOptions{Ref: "c1"})      // c7, a safety checkpoint
	require.NoError(t, err)
	runs, err := p.Runs(ctx, 1)
	require.NoError(t, err)

	for _, test := range []struct {
		ref  retcon.Ref
		want string // "c3", or a code
	}{
		{"c1", "c1"}, {"c7", "c7"}, {"c9", "NOT_FOUND"}, {"c0", "NOT_FOUND"},
		{"start", "c1"}, {"~start", "c1"}, {"~nothing", "NOT_FOUND"}, {"~", "NOT_FOUND"},
		{"last", "c6"}, {"-0", "c6"}, {"-1", "c5"}, {"-5", "c1"}, {"-6", "NOT_FOUND"}, {"-x", "NOT_FOUND"}, {"-", "NOT_FOUND"},
		{"r1", "c3"}, {"r2", "c5"}, {"r3", "NOT_FOUND"},
		{"r1@start", "c2"}, {"r1@before", "c2"}, {"r1@after", "c3"}, {"r2@after", "c5"},
		{"r1@c3", "c3"}, {"r1@c4", "NOT_FOUND"}, {"r1@last", "c3"}, {"r1@-1", "c2"}, {"r1@-2", "NOT_FOUND"},
		{"r1@r2", "NOT_FOUND"}, {"r1@", "NOT_FOUND"}, {"@before", "NOT_FOUND"}, {"r1@~start", "NOT_FOUND"},
		{"build", "c6"}, {"build@after", "c3"}, {"test", "c5"}, {"test@before", "c4"}, {"nobody@before", "NOT_FOUND"},
		{"last@before", "c4"}, {"last@after", "c5"},
		{retcon.Ref(runs[0].UID[:len(runs[0].UID)-1]), "c5"},
		{retcon.Ref(start.Commit), "c2"}, {retcon.Ref(start.Commit[:8]), "c2"}, {retcon.Ref(start.Commit[:3]), "NOT_FOUND"},
		{"ffffffff", "NOT_FOUND"}, {"a b", "NOT_FOUND"}, {"\xff", "NOT_FOUND"}, {"c99999999999999999999", "NOT_FOUND"},
		{"now", "NOT_FOUND"}, {"", "NOT_FOUND"},
	} {
		t.Run(string(test.ref), func(t *testing.T) {
			c, err := p.Resolve(ctx, test.ref)
			if err != nil {
				assert.Equal(t, test.want, code(err), "%v", err)
				return
			}
			assert.Equal(t, test.want, c.Ref)
		})
	}
}

func TestRefWithoutHistory(t *testing.T) {
	p := newFolder(t)
	for _, ref := range []retcon.Ref{"last", "-1", "c1", "start", "abcd", "r1", "last@before"} {
		_, err := p.Resolve(ctx, ref)
		assert.Equal(t, retcon.CodeNotFound, code(err), string(ref))
	}
}

func TestAmbiguousRun(t *testing.T) {
	p := newFolder(t)
	p.exec("twice", func() {})
	p.exec("twice", func() {})
	_, err := p.Resolve(ctx, "twice@before")
	assert.Equal(t, retcon.CodeNotFound, code(err))
	assert.ErrorContains(t, err, "r2, r1")
}

// A run whose end was not recorded says so, where one that never was does not.
func TestNotRecorded(t *testing.T) {
	p := newFolder(t)
	p.exec("going", func() {
		_, err := p.Resolve(ctx, "r1@after")
		assert.Equal(t, retcon.CodeNotRecorded, code(err))
		assert.ErrorContains(t, err, "has not ended")
		c, err := p.Resolve(ctx, "r1@before")
		if assert.NoError(t, err) {
			assert.Equal(t, "c1", c.Ref)
		}
	})
}
