package event

import (
	"bytes"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// Width is the number of columns of the terminal f; 0: f is no terminal, or one of no width, as mpirun gives to tasks.
func Width(f *os.File) int {
	columns, _ := Size(f)
	return columns
}

// Size returns the columns and rows of a terminal.
func Size(f *os.File) (columns, rows int) {
	if os.Getenv("TERM") == "dumb" {
		return 0, 0
	}
	return size(f)
}

// Colors are the colors of text on a terminal; the zero value has none.
type Colors bool

// ColorsOf returns the colors for f: none if it is no terminal, or if NO_COLOR is set (no-color.org).
func ColorsOf(f *os.File) Colors { return Colors(os.Getenv("NO_COLOR") == "" && Width(f) > 0) }

func (c Colors) Bold(s string) string   { return c.paint("1", s) }
func (c Colors) Red(s string) string    { return c.paint("31", s) }
func (c Colors) Green(s string) string  { return c.paint("32", s) }
func (c Colors) Yellow(s string) string { return c.paint("33", s) }

func (c Colors) paint(code, s string) string {
	if !c || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Note colors a line of a run: warnings and losses stand out.
func (c Colors) Note(s string) string {
	for _, start := range []string{"warning:", "lost rank"} {
		if strings.HasPrefix(s, start) {
			return c.Yellow(start) + s[len(start):]
		}
	}
	return s
}

// Wrapped writes to w, whose lines are shown on f: on a terminal they break between words, at its width.
func Wrapped(w io.Writer, f *os.File) io.Writer { return &wrapper{w, func() int { return Width(f) }} }

type wrapper struct {
	to    io.Writer
	width func() int
}

func (w *wrapper) Write(b []byte) (int, error) {
	width := w.width()
	if width == 0 || longest(b) <= width {
		return w.to.Write(b)
	}
	if _, err := io.WriteString(w.to, Wrap(string(b), width)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// longest is the length in bytes of the longest line of b.
func longest(b []byte) (n int) {
	for line := range bytes.Lines(b) {
		n = max(n, len(line))
	}
	return n
}

// Wrap breaks the lines of s between words, so that they have at most width columns. What follows a break is
// indented by two more than the line. A word that is longer than a line is left whole.
func Wrap(s string, width int) string {
	var out strings.Builder
	for line := range strings.Lines(s) {
		wrapLine(&out, line, width)
	}
	return out.String()
}

func wrapLine(out *strings.Builder, line string, width int) {
	margin := len(line) - len(strings.TrimLeft(line, " "))
	if margin+2 > width/2 {
		margin = 0
	}
	for shown(strings.TrimRight(line, "\n")) > width {
		at := lastSpace(line, width)
		if at <= margin {
			break
		}
		out.WriteString(strings.TrimRight(line[:at], " ") + "\n")
		line = strings.Repeat(" ", margin+2) + strings.TrimLeft(line[at:], " ")
	}
	out.WriteString(line)
}

// lastSpace is the place of the last space that leaves at most width columns before it; if there is none, of the
// first one after the first word; -1: there is none.
func lastSpace(line string, width int) int {
	last, start := -1, len(line)-len(strings.TrimLeft(line, " "))
	for i := start; i < len(line); i++ {
		if line[i] != ' ' {
			continue
		}
		if shown(line[:i]) > width && last > 0 {
			break
		}
		last = i
	}
	return last
}

// shown is the number of columns of s: its runes without escape sequences.
func shown(s string) (n int) {
	for len(s) > 0 {
		size, columns := next(s)
		s, n = s[size:], n+columns
	}
	return n
}

// next is the size of the rune, or of the change of colors, that s begins with, and how many columns it takes.
func next(s string) (size, columns int) {
	if end := strings.IndexByte(s, 'm'); end > 0 && strings.HasPrefix(s, "\x1b[") {
		return end + 1, 0
	}
	_, size = utf8.DecodeRuneInString(s)
	return size, 1
}

// Cut is s without what does not fit into width columns. Colors end there.
func Cut(s string, width int) string {
	if shown(s) <= width {
		return s
	}
	at, n := 0, 0
	for n < width-1 {
		size, columns := next(s[at:])
		at, n = at+size, n+columns
	}
	return s[:at] + "…\x1b[0m"
}
