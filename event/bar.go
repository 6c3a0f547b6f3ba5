package event

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"
)

// View is a listener that shows a run to a person. Close it to leave the
// terminal in order.
type View interface {
	Listener
	Close()
}

// NewView is a bar if f is a terminal that can move its cursor, else plain lines, written to
// plain.
func NewView(f *os.File, plain io.Writer) View {
	if Width(f) > 0 {
		b := NewBar(f, func() int { return Width(f) })
		b.colors = ColorsOf(f)
		return b
	}
	return NewLines(plain)
}

// NewSparseView is a view of many runs: as plain lines, at most one per second of
// each.
func NewSparseView(f *os.File, plain io.Writer) View {
	v := NewView(f, plain)
	if l, ok := v.(*Lines); ok {
		l.few = 0
	}
	return v
}

// Bar shows a run as a progress bar with loss, accuracy, rate and time left, on the last line
// of a terminal; other lines scroll away above it. Its methods may be called at once.
//
// A full bar stays, and so does training's. Any other is replaced by the next
// one, or goes away: what was begun and not finished has failed, and the error is printed elsewhere.
type Bar struct {
	out    io.Writer
	width  func() int
	colors Colors

	mu     sync.Mutex
	task   string
	done   int64
	total  int64 // 0: not known
	right  string
	drawn  time.Time       // zero: the cursor's line is empty
	kept   map[string]bool // tasks whose full bars have stayed
	metric string
	pace   pace
	val    float64
}

const (
	training = "training"
	barWidth = 28
	// drawEvery is how often a bar is drawn while its task goes on.
	drawEvery = 100 * time.Millisecond
)

// NewBar returns a bar that draws on out, a terminal whose columns width returns.
func NewBar(out io.Writer, width func() int) *Bar {
	return &Bar{out: out, width: width, val: math.NaN(), kept: map[string]bool{}}
}

// On shows an event.
func (b *Bar) On(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case Started:
		b.close() // of a run that failed, where another follows
		b.print(opening(e))
		b.metric = e.Metric
		b.pace.start(e.Epochs)
		b.task, b.done, b.total = training, int64(e.FirstEpoch), int64(e.Epochs)
		b.draw()
	case Epoch:
		b.epoch(e)
	case Progress:
		b.progress(e)
	case Note:
		b.print(b.colors.Note(e.Text))
	case Done:
		b.close()
		b.print(closing(e, b.metric))
	}
}

// Close leaves the terminal in order, with the cursor on an empty line.
func (b *Bar) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.close()
}

// REQUIRES: mu held.
func (b *Bar) epoch(e Epoch) {
	if b.task != training {
		return
	}
	if e.Measured {
		b.val = e.Val
	}
	b.done = int64(e.Epoch + 1)
	b.right = measures(e, b.val) + "  " + b.pace.text(e.Epoch+1)
	b.refresh()
}

// progress shows a task. A task whose bar is full is over, whatever its goroutines still report.
// REQUIRES: mu held.
func (b *Bar) progress(e Progress) {
	if e.Task == b.task && b.full() {
		return
	}
	if e.Task != b.task {
		if b.task == training {
			b.close()
		}
		b.drawn = time.Time{}
	}
	b.task, b.done, b.total = e.Task, e.Done, e.Total
	b.refresh()
	if b.full() && !b.kept[b.task] {
		b.kept[b.task] = true
		b.endLine()
	}
}

// REQUIRES: mu held.
func (b *Bar) full() bool { return b.total > 0 && b.done >= b.total }

// refresh draws a bar that has changed, but not too often.
// REQUIRES: mu held.
func (b *Bar) refresh() {
	if b.full() || time.Since(b.drawn) >= drawEvery {
		b.draw()
	}
}

// REQUIRES: mu held.
func (b *Bar) draw() {
	b.drawn = time.Now()
	fmt.Fprint(b.out, "\r\x1b[K"+b.line(b.width()-len("^C")-1)) // which must not make the terminal scroll
}

// line is the bar in at most width columns.
// REQUIRES: mu held.
func (b *Bar) line(width int) string {
	left := b.task
	if left == training {
		left = fmt.Sprintf("epoch %d/%d", b.done, b.total)
	}
	if b.total <= 0 {
		return Cut(left+"  "+Count(b.done), width)
	}
	size := min(barWidth, width-len(left)-len(b.right)-len("  []  "))
	if size < 5 {
		return Cut(left+"  "+b.right, width)
	}
	n := int(int64(size) * min(max(b.done, 0), b.total) / b.total)
	fill := strings.Repeat("=", n)
	if n > 0 && n < size {
		fill = fill[1:] + ">"
	}
	line := left + "  [" + b.colors.Green(fill) + strings.Repeat("-", size-n) + "]"
	if b.right != "" {
		line += "  " + b.right
	}
	return line
}

// print writes a line above the bar.
// REQUIRES: mu held.
func (b *Bar) print(s string) {
	fmt.Fprint(b.out, "\r\x1b[K"+Wrap(s+"\n", b.width()))
	if !b.drawn.IsZero() {
		b.draw()
	}
}

// endLine leaves the bar and goes to an empty line.
// REQUIRES: mu held.
func (b *Bar) endLine() {
	fmt.Fprintln(b.out)
	b.drawn = time.Time{}
}

// close ends the bar; training's stays, in its last state.
// REQUIRES: mu held.
func (b *Bar) close() {
	switch {
	case b.task == training:
		b.draw()
		b.endLine()
	case !b.drawn.IsZero():
		fmt.Fprint(b.out, "\r\x1b[K")
	}
	b.task, b.right, b.done, b.total, b.drawn = "", "", 0, 0, time.Time{}
	clear(b.kept)
}
