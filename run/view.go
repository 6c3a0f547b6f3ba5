package run

import (
	"fmt"
	"io"
	"sync/atomic"

	"starling/event"
	"starling/train"
)

// What is package event's as it is: listeners and views of a run, terminals, and texts that fit them.
type (
	Listener = event.Listener
	View     = event.View
	Colors   = event.Colors
)

var (
	NewView       = event.NewView
	NewSparseView = event.NewSparseView
	ColorsOf      = event.ColorsOf
	Size          = event.Size
	Width         = event.Width
	Wrap          = event.Wrap
	Wrapped       = event.Wrapped
)

// Announce shows a line that is not of the run: above the bar of a view, else on w.
func Announce(v View, w io.Writer, text string) {
	if b, ok := v.(*event.Bar); ok {
		b.On(event.Note{Text: text})
		return
	}
	fmt.Fprintln(w, text)
}

// Counting is a function to call after each of a number of things, 0 for one that is not known: a view shows how many are
// done.
func Counting(v View, task string, of int) func() {
	var done atomic.Int64
	return func() { v.On(event.Progress{Task: task, Done: done.Add(1), Total: int64(of)}) }
}

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
var Suggest = train.Suggest
