package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{4, 1}, 2.5},
		{[]float64{9, 1, 2}, 2},
		{[]float64{1, 100, 3, 2}, 2.5},
	} {
		before := append([]float64(nil), test.values...)
		assert.InDelta(t, test.want, Median(test.values), 1e-9, "%v", test.values)
		assert.Equal(t, before, test.values, "left as they were")
	}
}

// The ratio is the median of the rounds' ratios, which is not the ratio of the
// medians: a slow second of the machine must not count.
func TestMeasureComparesWithinARound(t *testing.T) {
	pairs := []Pair{
		{Usage{Wall: 1 * time.Second}, Usage{Wall: 2 * time.Second}},
		{Usage{Wall: 10 * time.Second}, Usage{Wall: 20 * time.Second}},
		{Usage{Wall: 4 * time.Second}, Usage{Wall: 2 * time.Second}},
	}
	r := Row{Goal: Goal(0.5)}.Measure(pairs, Wall)
	assert.InDelta(t, 0.5, r.Ratio, 1e-9)
	assert.InDelta(t, 0.5, r.Min, 1e-9)
	assert.InDelta(t, 2, r.Max, 1e-9)
	assert.InDelta(t, 4, r.Ours, 1e-9)
	assert.InDelta(t, 2, r.Theirs, 1e-9)
	require.NotNil(t, r.OK)
	assert.True(t, *r.OK, "the goal itself is reached")
}

func TestMissed(t *testing.T) {
	pairs := []Pair{{Usage{Wall: 3}, Usage{Wall: 2}}}
	for _, test := range []struct {
		name string
		row  Row
		want bool
	}{
		{"above the goal", Row{Goal: Goal(1.4)}.Measure(pairs, Wall), true},
		{"below it", Row{Goal: Goal(1.6)}.Measure(pairs, Wall), false},
		{"no goal", Row{}.Measure(pairs, Wall), false},
		{"skipped", Row{Goal: Goal(1)}.Skip("no peer"), false},
		{"broken", Row{Goal: Goal(9)}.Fail(errors.New("no")), true},
		{"not a number", Row{Goal: Goal(1)}.Compare(math.NaN(), 1, "B"), true},
	} {
		assert.Equal(t, test.want, test.row.Missed(), test.name)
	}
}

// The side that goes first changes every round, both have prepared before, and
// the warm round does not count.
func TestContestTakesTurns(t *testing.T) {
	var log []string
	side := func(name string) Side {
		return Side{Name: name,
			Prepare: func(int) error { log = append(log, "prepare "+name); return nil },
			Run: func(context.Context) (Usage, error) {
				log = append(log, "run "+name)
				return Usage{Wall: 1}, nil
			},
			Check: func() error { log = append(log, "check "+name); return nil },
		}
	}
	pairs, err := Contest{Ours: side("a"), Theirs: side("b"), Rounds: 2, Warm: true}.Play(t.Context())
	require.NoError(t, err)
	assert.Len(t, pairs, 2)
	ab := "prepare a, prepare b, run a, run b, check a, check b"
	ba := "prepare b, prepare a, run b, run a, check b, check a"
	assert.Equal(t, strings.Join([]string{ba, ab, ba}, ", "), strings.Join(log, ", "))
}

func TestContestStopsAtTheFirstError(t *testing.T) {
	bad := errors.New("bad")
	good := func(context.Context) (Usage, error) { return Usage{}, nil }
	for _, test := range []struct {
		name string
		side Side
	}{
		{"prepare", Side{Prepare: func(int) error { return bad }, Run: good}},
		{"run", Side{Run: func(context.Context) (Usage, error) { return Usage{}, bad }}},
		{"check", Side{Run: good, Check: func() error { return bad }}},
	} {
		_, err := Contest{Ours: Side{Run: good}, Theirs: test.side, Rounds: 1}.Play(t.Context())
		assert.ErrorIs(t, err, bad, test.name)
	}
}

func TestCommandRun(t *testing.T) {
	out, u, err := Command{Env: []string{"X=1"}, Args: []string{"/bin/sh", "-c", "echo $X$HOME"}}.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "1\n", string(out), "nothing is inherited")
	assert.Positive(t, u.Wall)
	assert.Positive(t, u.Peak)

	_, _, err = Command{Args: []string{"/bin/sh", "-c", "echo why >&2; exit 3"}}.Run(t.Context())
	assert.ErrorContains(t, err, "exit status 3: why")
}

// A child's peak is its own, however much this process has needed before.
func TestShrink(t *testing.T) {
	if _, err := os.Stat("/proc/self/clear_refs"); err != nil {
		t.Skip("the system does not forget")
	}
	waste := make([]byte, 200<<20)
	for i := 0; i < len(waste); i += 4096 {
		waste[i] = 1
	}
	require.Greater(t, OwnPeak(), int64(200<<20))
	runtime.KeepAlive(waste)
	waste = nil
	Shrink()
	assert.Less(t, OwnPeak(), int64(100<<20))
	_, u, err := Command{Args: []string{"/bin/sh", "-c", ":"}}.Run(t.Context())
	require.NoError(t, err)
	assert.Less(t, u.Peak, int64(100<<20))
}

func TestReport(t *testing.T) {
	rows := func(r *Report) (int, error) {
		pairs := []Pair{{Usage{Wall: 15 * time.Millisecond}, Usage{Wall: 30 * time.Millisecond}}}
		for _, row := range []Row{
			r.Row("fast", "git", Goal(0.6)).Measure(pairs, Wall),
			r.Row("slow", "git", Goal(0.4)).Measure(pairs, Wall),
			r.Row("told", "git", nil).Compare(2048, 1024, "B"),
			r.Row("absent", "jj", Goal(1)).Skip("no jj"),
			r.Row("broken", "git", nil).Fail(errors.New("boom")),
		} {
			if err := r.Add(row); err != nil {
				return 0, err
			}
		}
		return r.Close()
	}
	var out bytes.Buffer
	missed, err := rows(&Report{Bench: "capture", Out: &out})
	require.NoError(t, err)
	assert.Equal(t, 2, missed)
	want := `case    peer  ratio  min   max   goal   ok       ours     theirs
fast    git   0.50   0.50  0.50  ≤ 0.6  ok       15.0 ms  30.0 ms
slow    git   0.50   0.50  0.50  ≤ 0.4  MISSED   15.0 ms  30.0 ms
told    git   2.00   2.00  2.00                  2.0 KiB  1.0 KiB
absent  jj    -                  ≤ 1    skipped  no jj
broken  git   -                         BROKEN   boom
`
	assert.Equal(t, want, out.String())

	out.Reset()
	_, err = rows(&Report{Bench: "capture", JSON: true, Out: &out})
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 5)
	assert.JSONEq(t, `{"bench":"capture","case":"fast","peer":"git","ratio":0.5,"min":0.5,"max":0.5,"goal":0.6,"ok":true,"rounds":1,"ours":0.015,"theirs":0.03,"unit":"s"}`, lines[0])
	var absent map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[3]), &absent))
	assert.Equal(t, "no jj", absent["skipped"])
	assert.Nil(t, absent["ok"])
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		args string
		want Options
		bad  string
	}{
		{"", Options{Rounds: 7, Files: []int{20000}}, ""},
		{"--check --json --files 1000,100000", Options{Rounds: 7, Check: true, JSON: true, Files: []int{1000, 100000}}, ""},
		{"--repo /r", Options{Rounds: 7, Repo: "/r"}, ""},
		{"--repo /r --files 1000 --rounds 9", Options{Rounds: 9, Repo: "/r", Files: []int{1000}}, ""},
		{"--files 10", Options{}, "100 at least"},
		{"--files x", Options{}, "not a number"},
		{"--rounds 3", Options{}, "say too little"},
		{"extra", Options{}, `unexpected "extra"`},
		{"--what", Options{}, "not defined"},
	} {
		var out bytes.Buffer
		got, err := Parse("capture", strings.Fields(test.args), &out)
		if test.bad != "" {
			assert.ErrorContains(t, err, test.bad, test.args)
			assert.Contains(t, out.String(), test.bad, "said, too")
			continue
		}
		require.NoError(t, err, test.args)
		assert.Equal(t, test.want, got, test.args)
	}
	_, err := Parse("capture", []string{"--help"}, io.Discard)
	assert.True(t, Helped(err))
}
