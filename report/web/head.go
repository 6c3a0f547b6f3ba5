package web

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"starling/event"
	"starling/report/chart"
)

// head is the state of a run in short.
type head struct {
	Name, State, Class string
	Share              float64 // percent of the epochs
	Progress           string
	Facts              []chart.Fact
}

// rateOf is how many of the last epochs the time left is reckoned from.
const rateOf = 20

func (s *state) head() head {
	h := head{Name: s.name}
	h.State, h.Class = s.doing()
	add := func(name, value string) { h.Facts = append(h.Facts, chart.Fact{Name: name, Value: value}) }
	if s.progress.Task != "" && s.done == nil {
		h.Progress = s.progress.Task
		if s.progress.Total > 0 {
			h.Share = 100 * float64(s.progress.Done) / float64(s.progress.Total)
		}
	}
	if s.started.Epochs == 0 {
		return h
	}
	done := s.trained()
	h.Share = 100 * float64(done) / float64(s.started.Epochs)
	add("epoch", fmt.Sprintf("%s of %s", event.Count(int64(done)), event.Count(int64(s.started.Epochs))))
	if done > 0 {
		add("loss", four(s.epoch.Loss))
	}
	metric := cmp.Or(s.started.Metric, "metric")
	if e := s.best; e.Measured {
		add("best epoch", event.Count(int64(e.Epoch+1)))
		add("validation "+metric, four(e.Val))
		if !math.IsNaN(e.Test) {
			add("test "+metric, four(e.Test))
		}
	}
	if each, left := s.pace(); each > 0 {
		add("epoch takes", chart.Seconds(each))
		if s.done == nil {
			add("left", s.duration(left))
		}
	}
	if s.opened.Virtual {
		add("virtual time", s.duration(s.last.Sub(s.began)))
	} else {
		add("so far", s.duration(s.last.Sub(s.began)))
	}
	if s.starts > 1 {
		add("starts", fmt.Sprint(s.starts))
	}
	add("workers", fmt.Sprint(max(s.started.Workers, 1)))
	if s.started.Workers > 1 {
		add("strategy", s.started.Strategy)
	}
	return h
}

// duration is a time of the run as text; virtual time has parts of a millisecond.
func (s *state) duration(d time.Duration) string {
	if s.opened.Virtual {
		return chart.Seconds(d.Seconds())
	}
	return event.Duration(d)
}

// rounded is seconds of the run, without digits that real time does not have.
func (s *state) rounded(x, digits float64) float64 {
	if s.opened.Virtual {
		return x
	}
	return math.Round(x*digits) / digits
}

// doing is what a run does, and the class of that.
func (s *state) doing() (text, class string) {
	switch {
	case s.done != nil:
		return s.done.Reason, "over"
	case s.lostNow():
		return "a worker is lost", "bad"
	case s.started.Epochs > 0 && s.progress.Task != "":
		return "training", "good"
	case s.started.Epochs > 0:
		return "training", "good"
	case s.progress.Task != "":
		return s.progress.Task, "good"
	}
	return "preparing", "good"
}

// lostNow reports whether a worker was lost and training does not go on yet.
func (s *state) lostNow() bool {
	for _, h := range slices.Backward(s.happened) {
		switch h.Kind {
		case event.Lost:
			return true
		case event.Back:
			return false
		}
	}
	return false
}

// trained is the number of epochs that are done.
func (s *state) trained() int {
	if len(s.curve.Epochs) == 0 {
		return s.started.FirstEpoch
	}
	return s.epoch.Epoch + 1
}

// pace is what an epoch takes with what is between epochs, and the time left.
func (s *state) pace() (each float64, left time.Duration) {
	at, epochs := s.curve.At, s.curve.Epochs
	if n := len(at); n > rateOf {
		at, epochs = at[n-rateOf:], epochs[n-rateOf:]
	}
	n := len(at)
	if n == 0 {
		return 0, 0
	}
	from, first := s.trainAt, s.started.FirstEpoch-1
	if n > 1 {
		from, first = at[0], epochs[0]
	}
	if epochs[n-1] <= first || at[n-1] <= from {
		return 0, 0
	}
	each = (at[n-1] - from) / float64(epochs[n-1]-first)
	return each, time.Duration(each * float64(s.started.Epochs-s.trained()) * float64(time.Second))
}

func four(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	return fmt.Sprintf("%.4f", x)
}
