package bench

import "slices"

// Row is one line of the report. A row is measured, skipped, or broken.
type Row struct {
	Bench string   `json:"bench"`
	Case  string   `json:"case"`
	Peer  string   `json:"peer"`
	Ratio float64  `json:"ratio"` // median of ours ÷ theirs
	Min   float64  `json:"min"`
	Max   float64  `json:"max"`
	Goal  *float64 `json:"goal"` // null: for information
	OK    *bool    `json:"ok"`   // null: nothing was promised, or nothing measured

	Rounds  int     `json:"rounds"`
	Ours    float64 `json:"ours"` // medians, in Unit
	Theirs  float64 `json:"theirs"`
	Unit    string  `json:"unit"`              // "s", "B"
	Skipped string  `json:"skipped,omitempty"` // why nothing was measured
	Error   string  `json:"error,omitempty"`   // what went wrong; the goal counts as missed
}

// Quantity is what of a Usage is compared.
type Quantity struct {
	Unit string
	Of   func(Usage) float64
}

// The quantities.
var (
	Wall   = Quantity{"s", func(u Usage) float64 { return u.Wall.Seconds() }}
	CPU    = Quantity{"s", func(u Usage) float64 { return u.CPU.Seconds() }}
	Memory = Quantity{"B", func(u Usage) float64 { return float64(u.Peak) }}
)

// Measure fills in a row from what the rounds cost.
func (r Row) Measure(pairs []Pair, q Quantity) Row {
	var ratios, ours, theirs []float64
	for _, p := range pairs {
		a, b := q.Of(p.Ours), q.Of(p.Theirs)
		ratios, ours, theirs = append(ratios, a/b), append(ours, a), append(theirs, b)
	}
	r.Rounds, r.Unit = len(pairs), q.Unit
	r.Ratio, r.Min, r.Max = Median(ratios), slices.Min(ratios), slices.Max(ratios)
	r.Ours, r.Theirs = Median(ours), Median(theirs)
	return r.judge()
}

// Compare fills in a row from a quantity that is the same each time.
func (r Row) Compare(ours, theirs float64, unit string) Row {
	r.Rounds, r.Unit, r.Ours, r.Theirs = 1, unit, ours, theirs
	r.Ratio = ours / theirs
	r.Min, r.Max = r.Ratio, r.Ratio
	return r.judge()
}

func (r Row) judge() Row {
	if r.Goal != nil {
		ok := r.Ratio <= *r.Goal
		r.OK = &ok
	}
	return r
}

// Skip says why there is nothing to tell.
func (r Row) Skip(why string) Row {
	r.Skipped = why
	return r
}

// Fail says what went wrong.
func (r Row) Fail(err error) Row {
	no := false
	r.OK, r.Error = &no, err.Error()
	return r
}

// Missed tells that a goal was not reached, or that it cannot be said.
func (r Row) Missed() bool { return r.OK != nil && !*r.OK }

// Goal is what a ratio must not exceed.
func Goal(ratio float64) *float64 { return &ratio }

// Median returns the middle of the values, or the mean of the middle two. There
// must be at least one.
func Median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	half := len(v) / 2
	if len(v)%2 == 1 {
		return v[half]
	}
	return (v[half-1] + v[half]) / 2
}

// Peak fills in a row with the memory of the rounds, unless a contestant's was
// too small to be told from the bench's own.
func Peak(r Row, pairs []Pair) Row {
	own := float64(OwnPeak())
	filled := r.Measure(pairs, Memory)
	if filled.Theirs <= own {
		return r.Skip("the peer's peak cannot be told from the bench's own")
	}
	return filled
}
