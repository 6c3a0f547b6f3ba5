package bytegnn

import (
	"math"
	"time"
)

// When ByteGNN launches the sampling of another batch (algorithm 1 of the paper): a score of
// how long ago the last launch was, how busy the processor is and whether batches are consumed
// faster than they are made,
//
//	T_gap · (101 - e^(C_util/c)) · T_sample / (T_train · Q),   c = 100 / ln 101
//
// of at least a threshold. Q is how many sampled batches wait for training; with none the
// score is without bound.

// reason is why a batch is launched.
type reason uint8

const (
	notDue       reason = iota
	noneUnderWay        // none is, nor waits for training
	noneWaits           // for training, and the processor has time
	byScore
	inWindow // is drawn before the rows of its first batch are fetched
)

// launchEvery is how often the score is looked at, at least.
const launchEvery = 5 * time.Millisecond

// pauseFor is how long after a launch another may follow while no sampled batch waits, when the score has no bound:
// what training takes for a batch, if that is known and shorter, since shorter steps would wait for launches.
func pauseFor(training time.Duration) time.Duration {
	if training <= 0 {
		return launchEvery
	}
	return min(launchEvery, max(training, launchEvery/50))
}

// launchScore is the score, with T_gap in seconds. cpu is in percent.
func launchScore(gap, sampling, training time.Duration, cpu float64, waiting int) float64 {
	busy := 101 - math.Exp(cpu*math.Log(101)/100)
	if waiting == 0 || training <= 0 {
		if busy <= 0 {
			return 0
		}
		return math.Inf(1)
	}
	return gap.Seconds() * busy * sampling.Seconds() / (training.Seconds() * float64(waiting))
}

// average is a moving average of durations.
type average struct{ of time.Duration }

func (a *average) add(d time.Duration) {
	if a.of == 0 {
		a.of = d
		return
	}
	a.of += (d - a.of) / 8
}
