package event

import (
	"fmt"
	"io"
	"math"
	"os"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/cwriter"
	"github.com/vbauerster/mpb/v8/decor"
)

// View is a listener that shows a run to a person. Close it to leave the
// terminal in order.
type View interface {
	Listener
	Close()
}

// NewView is a bar if f is a terminal that can move its cursor, else plain lines, written to
// plain. A terminal of no width, as mpirun gives to tasks, is nobody's screen.
func NewView(f *os.File, plain io.Writer) View {
	if width, _, err := cwriter.GetSize(int(f.Fd())); err == nil && width > 0 && os.Getenv("TERM") != "dumb" {
		return NewBar(f)
	}
	return NewLines(plain)
}

// NewSparseView is a view of many runs: as plain lines, no more than one a second of
// each.
func NewSparseView(f *os.File, plain io.Writer) View {
	v := NewView(f, plain)
	if l, ok := v.(*Lines); ok {
		l.few = 0
	}
	return v
}

// Bar shows a run as a progress bar with loss, accuracy, rate and time left.
type Bar struct {
	out      io.Writer
	progress *mpb.Progress
	bar      *mpb.Bar
	task     string
	metric   string
	pace     pace
	val      float64

	text struct { // read by the bar's own goroutine
		sync.Mutex
		left, right string
	}
}

// NewBar draws on out, a terminal.
func NewBar(out io.Writer) *Bar { return &Bar{out: out, val: math.NaN()} }

// On shows an event.
func (b *Bar) On(e Event) {
	switch e := e.(type) {
	case Started:
		b.Close() // of a run that failed, where another follows
		b.say(opening(e))
		b.metric = e.Metric
		b.pace.start(e.Epochs)
		b.start("training", int64(e.Epochs))
		b.bar.SetCurrent(int64(e.FirstEpoch))
	case Epoch:
		b.epoch(e)
	case Progress:
		if b.task != e.Task {
			b.Close()
			b.start(e.Task, max(e.Total, 1))
		}
		b.set(e.Task, "")
		b.bar.SetCurrent(min(e.Done, max(e.Total, 1)-1)) // the next task or Close ends it
	case Note:
		b.say(e.Text)
	case Done:
		b.Close()
		b.say(closing(e, b.metric))
	}
}

func (b *Bar) epoch(e Epoch) {
	if b.bar == nil {
		return
	}
	if e.Measured {
		b.val = e.Val
	}
	done := e.Epoch + 1
	b.set(fmt.Sprintf("epoch %d/%d", done, b.pace.total), measures(e, b.val)+"  "+b.pace.text(done))
	b.bar.SetCurrent(int64(done))
}

func (b *Bar) start(task string, total int64) {
	b.task = task
	b.progress = mpb.New(mpb.WithOutput(b.out), mpb.WithAutoRefresh())
	b.set(task, "")
	b.bar = b.progress.New(total, mpb.BarStyle(), mpb.BarWidth(30),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return b.side(true) })),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return b.side(false) })))
}

func (b *Bar) set(left, right string) {
	b.text.Lock()
	defer b.text.Unlock()
	b.text.left, b.text.right = left, right
}

func (b *Bar) side(left bool) string {
	b.text.Lock()
	defer b.text.Unlock()
	if left {
		return b.text.left + " "
	}
	return " " + b.text.right
}

// say prints a line, above the bar if there is one.
func (b *Bar) say(s string) {
	if b.bar != nil && b.bar.Completed() {
		b.Close() // a full bar is drawn once more or not, and lines with it
	}
	if b.progress != nil {
		if _, err := fmt.Fprintln(b.progress, s); err == nil {
			return // else the bar is full and no longer drawn
		}
	}
	fmt.Fprintln(b.out, s)
}

// Close leaves the bar as it stands and the cursor below it.
func (b *Bar) Close() {
	if b.progress == nil {
		return
	}
	b.bar.Abort(false)
	b.progress.Wait()
	b.progress, b.bar, b.task = nil, nil, ""
}
