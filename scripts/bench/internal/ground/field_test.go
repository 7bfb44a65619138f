package ground

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGoal(t *testing.T) {
	for _, test := range []struct {
		name  string
		field Field
		from  int
		want  bool
	}{
		{"a small tree", Field{Generated: true, Files: 1000}, 20000, false},
		{"the tree it speaks of", Field{Generated: true, Files: 20000}, 20000, true},
		{"a goal of large trees", Field{Generated: true, Files: 20000}, 100000, false},
		{"a repository", Field{Files: 5000}, 20000, true},
		{"a small repository", Field{Files: 300}, 20000, true},
		{"a repository, a goal of large trees", Field{Files: 5000}, 100000, false},
	} {
		assert.Equal(t, test.want, test.field.Goal(1, test.from) != nil, test.name)
	}
}
