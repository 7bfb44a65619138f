package retcon_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
)

// plans is what a rewind to each frame of a session would do, path by path.
func (k *talker) plans(frames int64) (all []string) {
	k.t.Helper()
	for f := range frames {
		r, err := k.Rewind(ctx, retcon.TravelOptions{Run: k.session, Frame: f, DryRun: true})
		require.NoError(k.t, err)
		told := map[string]string{}
		for _, c := range r.Plan.Changes {
			told[c.Path] = c.Action + " by " + string(c.Owner)
		}
		for _, n := range r.Plan.Kept {
			told[n.Path] = "kept: " + n.Why
		}
		for _, n := range r.Plan.Conflicts {
			told[n.Path] = "conflict: " + n.Why
		}
		for _, path := range slices.Sorted(maps.Keys(told)) {
			all = append(all, fmt.Sprintf("%d %s %s", f, path, told[path]))
		}
	}
	return all
}

// refs are the checkpoints of a place, with their notes.
func (p *place) refs() (all map[string]string) {
	p.t.Helper()
	list, err := p.Snapshots(ctx, retcon.ListOptions{Limit: 10_000, All: true})
	require.NoError(p.t, err)
	all = map[string]string{}
	for _, c := range list {
		all[c.Ref] = c.Note
	}
	return all
}

// Of an old session the states between calls are given up; those around each
// prompt stay, and those that somebody needs.
func TestPruneOfASession(t *testing.T) {
	k := living(t, "s1")
	for n := range 3 {
		k.prompt(fmt.Sprint("prompt ", n))
		for c := range 5 {
			k.tool("Write", fmt.Sprintf("c%d-%d", n, c), func() { k.write("f", fmt.Sprint(n, c)) })
		}
		k.stop()
	}
	before := k.refs()
	require.Len(t, before, 16) // the start, and one behind each call
	pinned, labelled := "", ""
	for ref, note := range before {
		switch note {
		case "after Write c1-1":
			pinned = ref
		case "after Write c1-3":
			labelled = ref
		}
	}
	require.NoError(t, k.Pin(ctx, retcon.Ref(pinned), true))
	require.NoError(t, k.Label(ctx, retcon.Ref(labelled), "good", false))
	_, err := k.Collect(ctx, retcon.CollectOptions{})
	require.NoError(t, err)
	assert.Len(t, k.refs(), 16, "not yet")

	plans := k.plans(4)
	k.clock = k.clock.Add(100 * 24 * time.Hour)
	dry, err := k.Collect(ctx, retcon.CollectOptions{DryRun: true})
	require.NoError(t, err)
	assert.Len(t, k.refs(), 16)
	done, err := k.Collect(ctx, retcon.CollectOptions{})
	require.NoError(t, err)
	assert.Equal(t, dry.Checkpoints, done.Checkpoints)
	left := k.refs()
	assert.Len(t, left, 6, "%v", left)
	assert.Contains(t, left, pinned)
	assert.Contains(t, left, labelled)
	assert.Equal(t, plans, k.plans(4), "what is whose is known as before")
	for f, want := range []string{"", "04", "14"} {
		_, err := k.Rewind(ctx, retcon.TravelOptions{Run: "s1", Frame: int64(f)})
		require.NoError(t, err)
		if f == 0 {
			assert.NoFileExists(t, k.path("f"))
		} else {
			assert.Equal(t, want, strings.ReplaceAll(k.read("f"), " ", ""))
		}
		_, err = k.Undo(ctx, retcon.MoveOptions{})
		require.NoError(t, err)
	}
}

// What undo can reach stays whatever its age.
func TestPruneKeepsWhatUndoReaches(t *testing.T) {
	k := living(t, "s1")
	k.prompt("one")
	for c := range 4 {
		k.tool("Write", fmt.Sprint("c", c), func() { k.write("f", fmt.Sprint(c)) })
	}
	k.stop()
	middle := ""
	for ref, note := range k.refs() {
		if note == "after Write c1" {
			middle = ref
		}
	}
	_, err := k.Restore(ctx, retcon.RestoreOptions{Ref: retcon.Ref(middle)})
	require.NoError(t, err)
	k.clock = k.clock.Add(200 * 24 * time.Hour)
	_, err = k.Collect(ctx, retcon.CollectOptions{})
	require.NoError(t, err)
	assert.Contains(t, k.refs(), middle)
	_, err = k.Undo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	assert.Equal(t, "3", k.read("f"))
	_, err = k.Redo(ctx, retcon.MoveOptions{})
	require.NoError(t, err)
	assert.Equal(t, "1", k.read("f"))
}

// However two sessions and a user take turns: thinning changes nothing about
// what a rewind would do.
func TestPruneKeepsWhoseChangeItIs(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 7))
		p := newRepo(t)
		p.write("a", "1")
		one, two := newTalker(p, agent.Claude, "one"), newTalker(p, agent.Claude, "two")
		ids := 0
		touch := func() {
			path := string(rune('a' + random.IntN(6)))
			if random.IntN(4) == 0 {
				_ = os.Remove(p.path(path)) // it may not be there
				return
			}
			p.write(path, fmt.Sprint(random.Int64()))
		}
		turn := func(k *talker, other *talker) {
			k.prompt("go")
			for range random.IntN(7) {
				ids++
				id := fmt.Sprint("c", ids)
				k.hook("PreToolUse.Bash", fields{"tool_use_id": id})
				if random.IntN(3) > 0 {
					touch()
				}
				if random.IntN(5) == 0 { // the other one at the same time
					ids++
					other.tool("Bash", fmt.Sprint("c", ids), touch)
				}
				k.hook("PostToolUse.Bash", fields{"tool_use_id": id})
				if random.IntN(4) == 0 {
					touch() // the user
				}
			}
			k.stop()
		}
		for range 3 {
			turn(one, two)
			turn(two, one)
		}
		one.stop()
		two.stop()
		before := [][]string{one.plans(int64(len(p.frames("one")))), two.plans(int64(len(p.frames("two"))))}
		all := len(p.refs())
		p.clock = p.clock.Add(100 * 24 * time.Hour)
		_, err := p.Collect(ctx, retcon.CollectOptions{})
		require.NoError(t, err)
		require.Less(t, len(p.refs()), all, "something was given up")
		after := [][]string{one.plans(int64(len(p.frames("one")))), two.plans(int64(len(p.frames("two"))))}
		require.Equal(t, before, after, "seed %d", seed)
	}
}
