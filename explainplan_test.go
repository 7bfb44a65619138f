package retcon

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/retcon-dev/retcon/timeline"
)

// The command a hint gives can be pasted: it asks for the same move.
func TestCommandOf(t *testing.T) {
	for _, test := range []struct{ verb, target, want string }{
		{"restore", "c3", "retcon restore c3"},
		{"undo", "op 4", "retcon undo"},
		{"redo", "op 4", "retcon redo"},
		{"rewind", "r1@0", "retcon rewind r1 0"},
		{"timetravel", "r1@build", "retcon timetravel r1 -n build"},
		{"timetravel", "r1@build#2", "retcon timetravel r1 -n build --attempt 2"},
		{"revert", "r1@e0[a b]/build", "retcon revert r1 -n 'e0[a b]/build'"},
		{"retry-task", "r1@build~0123456789ab#x", "retcon retry-task r1 -n 'build~0123456789ab#x'"},
		{"rerun", "r1@build,failed", "retcon rerun r1 -n build -n test"},
	} {
		plan := &timeline.Plan{Verb: test.verb, Target: test.target,
			History: &timeline.History{Forced: []timeline.TaskReset{{Task: "build"}, {Task: "test"}}}}
		assert.Equal(t, test.want, commandOf(plan))
	}
}
