package main

import (
	"os"
	"sync"

	"starling/run"
	"starling/spec"
)

// onScreen is the view that draws on the terminal now, if any does.
var onScreen struct {
	sync.Mutex
	view run.View
}

// shownView is a view that others may write above.
type shownView struct{ run.View }

func (v shownView) Close() {
	onScreen.Lock()
	defer onScreen.Unlock()
	onScreen.view = nil
	v.View.Close()
}

// view shows progress on standard output, or on standard error where standard
// output carries JSON.
func view(quiet bool, json string) run.View {
	if quiet {
		return run.Silent(os.Stderr)
	}
	return share(run.NewView(screen(json), words(json)))
}

// sparseView shows the progress of several runs.
func sparseView(o *spec.Output) run.View {
	if o.Quiet {
		return run.Silent(os.Stderr)
	}
	return share(run.NewSparseView(screen(o.JSON), words(o.JSON)))
}

// share has announcements appear above the bar of a view.
func share(v run.View) run.View {
	onScreen.Lock()
	defer onScreen.Unlock()
	onScreen.view = v
	return shownView{v}
}

// announce shows a line on standard error, and so that a bar does not overwrite it.
func announce(line string) {
	onScreen.Lock()
	defer onScreen.Unlock()
	run.Announce(onScreen.view, run.Wrapped(os.Stderr, os.Stderr), line)
}
