package web

import (
	"slices"

	"starling/event"
	"starling/report/chart"
)

const (
	// mostBuckets is how finely a timeline divides a run; when a run is longer, neighbours are joined.
	mostBuckets = 512
	finest      = 0.1 // seconds
	// finestVirtual is for virtual time: an epoch of simulated workers may take microseconds.
	finestVirtual = 1e-7
)

// timeline is what each worker did, in buckets of the same length for all.
type timeline struct {
	step float64
	rows [][]bucket
}

// bucket is seconds by what they were spent on; known is all of them.
type bucket struct {
	known, wait, draw, evaluate, save, transfer float32
	waited                                      float32 // for the worker in peer
	peer                                        int16
	memory                                      float32
}

// grow makes it a timeline of at least n workers.
func (t *timeline) grow(n int) {
	if t.step == 0 {
		t.step = finest
	}
	for len(t.rows) < n {
		t.rows = append(t.rows, nil)
	}
}

// at is the bucket of a worker at a time, and when it ends.
func (t *timeline) at(worker int, seconds float64) (*bucket, float64) {
	for int(seconds/t.step) >= mostBuckets {
		t.join()
	}
	i := int(max(seconds, 0) / t.step)
	row := &t.rows[worker]
	for len(*row) <= i {
		*row = append(*row, bucket{peer: -1})
	}
	return &(*row)[i], float64(i+1) * t.step
}

// join makes buckets twice as long.
func (t *timeline) join() {
	t.step *= 2
	for r, row := range t.rows {
		half := row[:0]
		for i := 0; i < len(row); i += 2 {
			b := row[i]
			if i+1 < len(row) {
				b.add(&row[i+1])
			}
			half = append(half, b)
		}
		t.rows[r] = half
	}
}

func (b *bucket) add(o *bucket) {
	if o.waited > b.waited {
		b.waited, b.peer = o.waited, o.peer
	}
	b.known += o.known
	b.wait += o.wait
	b.draw += o.draw
	b.evaluate += o.evaluate
	b.save += o.save
	b.transfer += o.transfer
	b.memory = max(b.memory, o.memory)
}

// mostSeconds is how long a run may take.
const mostSeconds = 1e10

// take adds a slice that began at a time.
func (t *timeline) take(worker int, from float64, s *event.Slice) {
	if !(s.Seconds > 0) || s.Seconds > 1e7 || from < -s.Seconds || from > mostSeconds {
		return
	}
	const exact = 1e-8 // of a bucket
	for at, until := max(from, 0), from+s.Seconds; at < until-exact*t.step; {
		b, end := t.at(worker, at+exact*t.step)
		length := min(end, until) - at
		share := length / s.Seconds
		b.add(&bucket{known: float32(length), wait: float32(s.Wait * share), draw: float32(s.Draw * share),
			evaluate: float32(s.Evaluate * share), save: float32(s.Save * share), transfer: float32(s.Transfer * share),
			waited: float32(s.Wait * share), peer: int16(s.For)})
		at += length
	}
}

// copy is a timeline that does not change.
func (t *timeline) copy() timeline {
	out := timeline{step: t.step}
	for _, row := range t.rows {
		out.rows = append(out.rows, slices.Clone(row))
	}
	return out
}

// joined is the timeline with at most some buckets.
func (t *timeline) joined(most int) timeline {
	out := t.copy()
	for out.length() > most {
		out.join()
	}
	return out
}

// length is the number of buckets of the worker with most.
func (t *timeline) length() (n int) {
	for _, row := range t.rows {
		n = max(n, len(row))
	}
	return n
}

// The parts of a column, from below, and the line over them.
var (
	activityKinds = []string{"k-compute", "k-wait", "k-draw", "k-evaluate", "k-save"}
	activityNames = []string{"computing", "waiting for other workers", "waiting for the next batch", "evaluating",
		"checkpointing"}
)

const (
	transferKind = "k-transfer"
	transferName = "rows on their way"
)

// column is a bucket as it is drawn.
func (b *bucket) column() chart.Column {
	if b.known <= 0 {
		return chart.Column{For: -1}
	}
	of := func(x float32) float64 { return float64(min(x/b.known, 1)) }
	c := chart.Column{Parts: []float64{0, of(b.wait), of(b.draw), of(b.evaluate), of(b.save)}, Line: of(b.transfer),
		For: -1}
	c.Parts[0] = max(1-c.Parts[1]-c.Parts[2]-c.Parts[3]-c.Parts[4], 0)
	if c.Parts[1] > 0.05 {
		c.For = int(b.peer)
	}
	return c
}
