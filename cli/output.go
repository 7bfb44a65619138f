package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The rules of what is printed:
//
//   - the answer goes to stdout, everything else to stderr;
//   - an answer is one value that knows its text and whose fields are its JSON,
//     so the two cannot drift apart;
//   - text is lower case, without a period at the end of a line, and colour is
//     never the only carrier of a meaning;
//   - names of files are bytes, and cannot drive the terminal: see name.

// answer is what a command found out.
type answer interface {
	Text(p *page)
}

// answer prints an answer, whole or not at all: as text, or with --json as one
// document.
func (c *console) answer(a answer) error {
	var buf bytes.Buffer
	if c.json {
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(a); err != nil {
			return fmt.Errorf("encode the answer: %w", err)
		}
	} else {
		a.Text(c.page(&buf))
	}
	c.work.done()
	if _, err := c.out.Write(buf.Bytes()); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// remark tells the person at the terminal something that is not the answer.
func (c *console) remark(format string, args ...any) {
	if !c.quiet {
		c.work.done()
		fmt.Fprintf(c.err, "retcon: %s\n", clean(fmt.Sprintf(format, args...)))
	}
}

// page is what an answer writes its text on.
type page struct {
	w      io.Writer
	now    time.Time
	colour bool
	width  int // columns of the terminal, 0: not a terminal
}

func (c *console) page(w io.Writer) *page {
	columns, _ := c.Terminal(c.out)
	return &page{w: w, now: c.Now(), colour: c.colour, width: columns}
}

// wantsColour: the flags decide, then NO_COLOR (https://no-color.org), then
// whether stdout is a terminal that can.
func (c *console) wantsColour(always, never bool) bool {
	switch {
	case always || never:
		return always
	case c.Getenv("NO_COLOR") != "" || c.Getenv("TERM") == "dumb":
		return false
	}
	_, ok := c.Terminal(c.out)
	return ok
}

func (p *page) printf(format string, args ...any) {
	fmt.Fprintf(p.w, format, args...) // the page is a buffer: writing to it cannot fail
}

func (p *page) bold(s string) string   { return p.style("1", s) }
func (p *page) dim(s string) string    { return p.style("2", s) }
func (p *page) red(s string) string    { return p.style("31", s) }
func (p *page) green(s string) string  { return p.style("32", s) }
func (p *page) yellow(s string) string { return p.style("33", s) }

func (p *page) style(code, s string) string {
	if !p.colour || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// table writes rows in columns two blanks apart. The last cell of a row is not
// padded, and a row of one cell does not widen its column.
func (p *page) table(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row[:max(0, len(row)-1)] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(cell))
		}
	}
	for _, row := range rows {
		for len(row) > 0 && row[len(row)-1] == "" {
			row = row[:len(row)-1] // nothing ends in blanks
		}
		for i, cell := range row {
			if i < len(row)-1 {
				cell += strings.Repeat(" ", widths[i]-columns(cell)+2)
			}
			p.printf("%s", cell)
		}
		p.printf("\n")
	}
}

var styled = regexp.MustCompile("\x1b\\[[0-9;]*m")

// columns is how wide a string stands on the terminal, one column a character.
func columns(s string) int {
	if strings.Contains(s, "\x1b") {
		s = styled.ReplaceAllString(s, "")
	}
	return utf8.RuneCountInString(s)
}

// ago says how long ago something was, as a person would.
func (p *page) ago(t time.Time) string { return ago(p.now, t) }

func ago(now, t time.Time) string {
	d := now.Sub(t)
	switch {
	case d < -time.Minute:
		return t.Format("2006-01-02 15:04") // the clock stepped back, or it was written elsewhere
	case d < time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	case d < 30*24*time.Hour:
		return fmt.Sprintf("%d days ago", d/(24*time.Hour))
	}
	return t.Format("2006-01-02")
}

// size is a number of bytes for people: 999 B, 1.5 KiB, 20 MiB.
func size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), -1
	for v >= 1023.95 && unit < 5 { // what would be written as 1024.0 is the next unit's 1.0
		v /= 1024
		unit++
	}
	if v < 10 {
		return fmt.Sprintf("%.1f %ciB", v, "KMGTPE"[unit])
	}
	return fmt.Sprintf("%.0f %ciB", v, "KMGTPE"[unit])
}

// count is a number with its noun: 1 file, 2 files; the plural is given when it
// is not the noun with an s.
func count[N int | int64](n N, noun string, plural ...string) string {
	switch {
	case n == 1:
	case len(plural) > 0:
		noun = plural[0]
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// name is the name of a file as it may be printed: itself, or quoted when it
// holds a control character, a quote, or bytes that are no text.
func name(s string) string {
	if s == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsPrint(r) || r == '"' || r == '\\'
	}) {
		return strconv.Quote(s)
	}
	return s
}
