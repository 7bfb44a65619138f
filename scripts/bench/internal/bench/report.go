package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Report collects rows. With JSON each row is printed as soon as it is known,
// an object a line; without, all of them as a table in the end.
type Report struct {
	Bench string
	JSON  bool
	Out   io.Writer

	rows []Row
}

// Row begins a row.
func (r *Report) Row(name, peer string, goal *float64) Row {
	return Row{Bench: r.Bench, Case: name, Peer: peer, Goal: goal}
}

// Add adds a row that is complete.
func (r *Report) Add(row Row) error {
	r.rows = append(r.rows, row)
	if !r.JSON {
		return nil
	}
	return json.NewEncoder(r.Out).Encode(row)
}

// Close prints what is left to print, and returns how many goals were missed.
func (r *Report) Close() (missed int, err error) {
	for _, row := range r.rows {
		if row.Missed() {
			missed++
		}
	}
	if r.JSON {
		return missed, nil
	}
	w := tabwriter.NewWriter(r.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "case\tpeer\tratio\tmin\tmax\tgoal\tok\tours\ttheirs")
	for _, row := range r.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", row.Case, row.Peer, row.rest())
	}
	return missed, w.Flush()
}

// rest is a row's columns after the names of what was compared.
func (r Row) rest() string {
	goal, ok := "", ""
	if r.Goal != nil {
		goal = "≤ " + strconv.FormatFloat(*r.Goal, 'g', -1, 64)
	}
	if r.OK != nil {
		ok = map[bool]string{true: "ok", false: "MISSED"}[*r.OK]
	}
	switch {
	case r.Skipped != "":
		return fmt.Sprintf("-\t\t\t%s\tskipped\t%s", goal, oneLine(r.Skipped))
	case r.Error != "":
		return fmt.Sprintf("-\t\t\t%s\tBROKEN\t%s", goal, oneLine(r.Error))
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", figure(r.Ratio), figure(r.Min), figure(r.Max), goal, ok, r.amount(r.Ours), r.amount(r.Theirs))
}

// oneLine is the beginning of a text that may have many; JSON has all of it.
func oneLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// figure writes a ratio with three digits that count.
func figure(f float64) string {
	switch {
	case f >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	case f >= 0.1:
		return strconv.FormatFloat(f, 'f', 2, 64)
	}
	return strconv.FormatFloat(f, 'f', 4, 64)
}

func (r Row) amount(f float64) string {
	switch {
	case r.Unit == "s" && f >= 1:
		return fmt.Sprintf("%.2f s", f)
	case r.Unit == "s":
		return fmt.Sprintf("%.1f ms", f*1e3)
	case f >= 1<<20:
		return fmt.Sprintf("%.1f MiB", f/(1<<20))
	case f >= 1<<10:
		return fmt.Sprintf("%.1f KiB", f/(1<<10))
	}
	return fmt.Sprintf("%.0f B", f)
}
