package run

import (
	"fmt"
	"io"
	"os"

	"starling/event"
	"starling/train"
)

// Listener and View are package event's, for the command.
type (
	Listener = event.Listener
	View     = event.View
)

// NewView shows a run: as a progress bar if f is a terminal, else as plain lines on plain.
func NewView(f *os.File, plain io.Writer) View { return event.NewView(f, plain) }

// NewSparseView is the same for many runs, with fewer lines of each.
func NewSparseView(f *os.File, plain io.Writer) View { return event.NewSparseView(f, plain) }

// Announce shows a line that is not of the run: above the bar of a view, else on w.
func Announce(v View, w io.Writer, text string) {
	if b, ok := v.(*event.Bar); ok {
		b.On(event.Note{Text: text})
		return
	}
	fmt.Fprintln(w, text)
}

// Colors, Width, Size, Wrap and Wrapped are of terminals.
type Colors = event.Colors

func ColorsOf(f *os.File) Colors                { return event.ColorsOf(f) }
func Size(f *os.File) (columns, rows int)       { return event.Size(f) }
func Wrap(s string, width int) string           { return event.Wrap(s, width) }
func Width(f *os.File) int                      { return event.Width(f) }
func Wrapped(w io.Writer, f *os.File) io.Writer { return event.Wrapped(w, f) }

// Silent shows failures only; with nil, nothing.
func Silent(w io.Writer) View { return silent{w} }

type silent struct{ w io.Writer }

func (s silent) On(e event.Event) {
	if n, ok := e.(event.Note); ok && !n.Minor && s.w != nil {
		fmt.Fprintln(s.w, n.Text)
	}
}

func (silent) Close() {}

// Counted is a number and a noun, which is given in the singular.
func Counted(n int, one string) string { return event.Counted(n, one) }

// Suggest names the known word that was perhaps meant; "": none.
func Suggest(word string, known []string) string { return train.Suggest(word, known) }
