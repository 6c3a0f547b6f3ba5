package event

import (
	"fmt"
	"io"
	"math"
	"time"
)

// Lines shows a run as plain lines, for a pipe or a log file: every epoch of a
// short run, about one line per second of a long one, and always the last.
type Lines struct {
	w       io.Writer
	pace    pace
	epochs  int
	metric  string
	val     float64
	next    time.Time
	task    string
	ended   bool   // the task's last line was shown
	percent int    // of the task, in the line shown last
	waiting string // the line of an epoch not shown yet; shown if the run ends with it
	few     int    // epochs of a run that is shown in full
}

const (
	fewEpochs = 20
	lineEvery = time.Second
)

// NewLines writes to w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w, val: math.NaN(), few: fewEpochs} }

// On shows an event.
func (l *Lines) On(e Event) {
	switch e := e.(type) {
	case Started:
		l.epochs, l.metric = e.Epochs, e.Metric
		l.pace.start(e.Epochs)
		l.print(opening(e))
	case Epoch:
		l.epoch(e)
	case Progress:
		l.progress(e)
	case Note:
		l.print(e.Text)
	case Saved:
		if l.epochs <= l.few {
			l.print(fmt.Sprintf("checkpoint %s (%s)", e.Path, Bytes(e.Bytes)))
		}
	case Done:
		l.flush()
		l.print(closing(e, l.metric))
	}
}

// Close implements View.
func (l *Lines) Close() {}

func (l *Lines) epoch(e Epoch) {
	if e.Measured {
		l.val = e.Val
	}
	done := e.Epoch + 1
	l.waiting = fmt.Sprintf("epoch %*d/%d  %s  %s", len(fmt.Sprint(l.epochs)), done, l.epochs, measures(e, l.val),
		l.pace.text(done))
	if now := l.pace.now(); l.epochs <= l.few || done == l.epochs || !now.Before(l.next) {
		l.next = now.Add(lineEvery)
		l.flush()
	}
}

// flush shows the waiting line.
func (l *Lines) flush() {
	if l.waiting != "" {
		l.print(l.waiting)
	}
	l.waiting = ""
}

// progress shows a task about once per second while its percentage changes, and at its end: a short one is one line,
// and one of hours at most a hundred.
func (l *Lines) progress(e Progress) {
	if l.pace.now == nil {
		l.pace.now = time.Now
	}
	now := l.pace.now()
	if l.next.IsZero() {
		l.next = now.Add(lineEvery)
	}
	if e.Task != l.task {
		l.task, l.ended, l.percent = e.Task, false, -1
	}
	end := e.Done == e.Total
	if e.Total <= 0 || l.ended || !end && now.Before(l.next) {
		return
	}
	percent := int(math.Round(100 * float64(e.Done) / float64(e.Total)))
	if percent == l.percent && !end {
		return
	}
	l.ended, l.percent, l.next = end, percent, now.Add(lineEvery)
	l.print(fmt.Sprintf("%s: %d%%", e.Task, percent))
}

func (l *Lines) print(s string) { fmt.Fprintln(l.w, s) }
