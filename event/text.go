package event

import (
	"fmt"
	"math"
	"time"
)

// opening is the line a run starts with.
func opening(e Started) string {
	s := fmt.Sprintf("%s on %s: %s, %s, %s", e.Model, e.Dataset,
		Counted(e.Vertices, "vertex"), Counted(e.Edges, "edge"), Counted(e.Parameters, "parameter"))
	if e.Learnt > 0 {
		s += " and " + Counted(e.Learnt, "number") + " of learnt rows"
	}
	if e.Workers > 1 {
		s += fmt.Sprintf(", %d workers, strategy %s", e.Workers, e.Strategy)
	}
	if e.FirstEpoch > 0 {
		s += fmt.Sprintf("; going on after epoch %d of %d", e.FirstEpoch, e.Epochs)
	}
	return s
}

// closing is the line a run ends with.
func closing(e Done, metric string) string {
	s := fmt.Sprintf("%s after %s in %s", e.Reason, Counted(e.Epochs, "epoch"),
		Duration(time.Duration(e.Seconds*float64(time.Second))))
	if e.BestEpoch >= 0 {
		s += fmt.Sprintf("; best epoch %d: validation %s %s, test %s", e.BestEpoch+1, metric, share(e.Val),
			share(e.Test))
	}
	return s
}

// measures are the loss and metric of an epoch.
func measures(e Epoch, val float64) string {
	s := fmt.Sprintf("loss %.4f", e.Loss)
	if !math.IsNaN(val) {
		s += "  val " + share(val)
	}
	return s
}

// share is a metric between 0 and 1, or a dash where it was not measured.
func share(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.4f", x)
}

// Duration is a time with its unit, to about two digits.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// Bytes is an amount of memory with its unit.
func Bytes(n int64) string {
	const step = 1 << 10
	if n < step {
		return fmt.Sprintf("%d B", n)
	}
	x, unit := float64(n), 0
	for x >= step && unit < 4 {
		x /= step
		unit++
	}
	return fmt.Sprintf("%.1f %s", x, []string{"B", "KiB", "MiB", "GiB", "TiB"}[unit])
}

// pace computes the rate of epochs and the time left. It uses
// the last few epochs only, because the first one also maps memory.
type pace struct {
	now   func() time.Time
	times []time.Time
	total int
}

const paceWindow = 20

// start begins a run that will end after total epochs.
func (p *pace) start(total int) {
	if p.now == nil {
		p.now = time.Now
	}
	p.total = total
	p.times = append(p.times[:0], p.now())
}

// tick records the number of epochs that are done. ok is false until a rate is known.
func (p *pace) tick(done int) (perSecond float64, left time.Duration, ok bool) {
	if len(p.times) == 0 {
		return 0, 0, false
	}
	if len(p.times) > paceWindow {
		p.times = append(p.times[:0], p.times[1:]...)
	}
	p.times = append(p.times, p.now())
	took := p.times[len(p.times)-1].Sub(p.times[0])
	if took <= 0 {
		return 0, 0, false
	}
	each := took / time.Duration(len(p.times)-1)
	return 1 / each.Seconds(), each * time.Duration(p.total-done), true
}

// text is the rate and the time left.
func (p *pace) text(done int) string {
	rate, left, ok := p.tick(done)
	if !ok {
		return ""
	}
	s := fmt.Sprintf("%.3g epochs/s", rate)
	switch {
	case rate < 1:
		s = Duration(time.Duration(float64(time.Second)/rate)) + "/epoch"
	case rate >= 1000: // else 1e+03
		s = Count(int64(rate)) + " epochs/s"
	}
	return s + "  left " + Duration(left)
}
