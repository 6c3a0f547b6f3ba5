package bytegnn

import (
	"context"
	"math"
	"sync"
	"time"

	"starling/event"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// dags samples batches as graphs of tasks. Batches come out in order.
type dags struct {
	ctx       context.Context
	of        *batch.Pipeline
	host      *batch.Host
	queue     *taskQueue
	clock     wire.Clock
	events    event.Listener
	first     int64 // number of the first batch, over all epochs
	total     int64
	threshold float64
	memory    int64            // that batches may fill
	unlimited bool             // all are launched at once, for a dry run of a few
	ahead     *batch.RowsAhead // nil: batches fetch rows when they are drawn
	window    int64            // batches that are launched at a time whatever the score, since rows wait for them

	changed chan struct{} // something happened after which another batch may be due
	end     chan struct{}
	wg      sync.WaitGroup
	waits   sync.WaitGroup // for the network

	mu struct {
		sync.Mutex
		sampling, training average
		unused             []*dag
		made               int            // graphs, unused or not
		done               map[int64]*dag // sampled, and not taken
		launched           int64
		given              int64 // batches that training took
		returned           int64 // and gave back
		largest            int64 // bytes of a batch
		counts             train.Launches
		spans              []event.Span
		lanes              lanes // of waits
	}
	finished *sync.Cond // on mu
	since    time.Time  // training took the batch at hand
}

func newDAGs(ctx context.Context, p *batch.Pipeline, host *batch.Host, f *train.Loop, threshold float64,
	memory int64) *dags {
	threads := p.Options.ThreadCount()
	s := &dags{ctx: ctx, of: p, host: host, queue: newTaskQueue(threads), clock: f.Clock, events: f.Events,
		threshold: threshold, memory: memory, unlimited: p.Site.MemoryOnly, changed: make(chan struct{}, 1),
		end: make(chan struct{})}
	s.first = int64(f.State.Epoch*p.Steps() + f.State.Batch)
	s.total = max(0, int64(f.Opt.Epochs*p.Steps())-s.first)
	if s.ahead = p.RowsAhead(f, host); s.ahead != nil {
		s.window = int64(s.ahead.Window + p.AtOnce())
	}
	s.finished = sync.NewCond(&s.mu)
	s.mu.done = map[int64]*dag{}
	s.wg.Go(s.launch)
	return s
}

// launch is the coarse scheduler.
func (s *dags) launch() {
	var load cpuLoad
	last := s.clock.Now()
	for next := int64(0); next < s.total; next++ {
		why := s.due(&load, last)
		for ; why == notDue; why = s.due(&load, last) {
			due, timer := wire.Alarm(s.clock, s.pause())
			select {
			case <-due:
			case <-s.changed:
				timer.Stop()
			case <-s.end:
				timer.Stop()
				return
			}
		}
		last = s.clock.Now()
		s.take(why).start(next)
	}
}

// due is why another batch is launched now: when none is under way or waits, always; else where memory allows, by the
// score.
func (s *dags) due(load *cpuLoad, last time.Time) reason {
	s.mu.Lock()
	sampling, training := s.mu.sampling.of, s.mu.training.of
	launched, given, held, waiting := s.mu.launched, s.mu.given, s.mu.launched-s.mu.returned, len(s.mu.done)
	allowed := s.allowed()
	s.mu.Unlock()
	gap := wire.Since(s.clock, last)
	switch {
	case s.unlimited || launched == given:
		return noneUnderWay
	case launched < given+s.window:
		return inWindow
	case held >= allowed:
		return notDue
	case waiting == 0 && gap < pauseFor(training): // the last has hardly begun
		return notDue
	case launchScore(gap, sampling, training, load.percent(), waiting) < s.threshold:
		return notDue
	case waiting == 0:
		return noneWaits
	}
	return byScore
}

// pause is the time after which the score is looked at again.
func (s *dags) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return pauseFor(s.mu.training.of)
}

// allowed is how many batches memory has place for, beginning with the one that is trained on; until one was sampled,
// one per thread and that one. A window of batches whose rows have not come is beside that.
// REQUIRES: mu held.
func (s *dags) allowed() int64 {
	if s.mu.largest == 0 {
		return int64(s.of.Options.ThreadCount()) + 1 + s.window
	}
	return max(2, s.memory/s.mu.largest) + s.window
}

// take is a graph for another batch.
func (s *dags) take(why reason) *dag {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.launched++
	c := &s.mu.counts
	switch why {
	case noneUnderWay:
		c.NoneUnderWay++
	case noneWaits:
		c.NoneWaits++
	case byScore:
		c.Score++
	case inWindow:
		c.Window++
	}
	c.Most = max(c.Most, s.mu.launched-s.mu.returned)
	if n := len(s.mu.unused); n > 0 {
		g := s.mu.unused[n-1]
		s.mu.unused = s.mu.unused[:n-1]
		return g
	}
	s.mu.made++
	return s.newDAG()
}

// launches are counts so far.
func (s *dags) launches() train.Launches {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.counts
	c.Allowed = s.allowed()
	return c
}

// Next is the next batch, to be given back with Release.
func (s *dags) Next() *batch.Batch {
	s.mu.Lock()
	for s.mu.done[s.mu.given] == nil {
		s.finished.Wait()
	}
	g := s.mu.done[s.mu.given]
	delete(s.mu.done, s.mu.given)
	s.mu.given++
	s.mu.Unlock()
	s.since = s.clock.Now()
	s.wake()
	s.report()
	return g.batch
}

// wake has the scheduler look whether a batch is due.
func (s *dags) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// report tells of the tasks that have ended, on the goroutine that trains.
func (s *dags) report() {
	s.mu.Lock()
	spans := s.mu.spans
	s.mu.spans = nil
	s.mu.Unlock()
	for _, x := range spans {
		s.events.On(x)
	}
}

func (s *dags) Release(b *batch.Batch) {
	g := b.Kept.(*dag)
	if s.ahead != nil {
		s.ahead.Return(b)
	}
	s.mu.Lock()
	s.mu.training.add(wire.Since(s.clock, s.since))
	s.mu.returned++
	s.mu.unused = append(s.mu.unused, g)
	s.mu.Unlock()
	s.wake()
}

// sampled takes a batch that is ready.
func (s *dags) sampled(g *dag) {
	s.mu.Lock()
	s.mu.sampling.add(wire.Since(s.clock, g.began))
	s.mu.largest = max(s.mu.largest, g.batch.Bytes())
	s.mu.done[g.number] = g
	s.mu.Unlock()
	s.finished.Broadcast()
	s.wake()
}

// Fill waits until all that can be sampled before training takes more is there.
func (s *dags) Fill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for int64(len(s.mu.done)) < s.total-s.mu.given {
		s.finished.Wait()
	}
}

// Unfilled is what memory allows beyond the buffers that were made, of a number of batches.
func (s *dags) Unfilled(batches int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(min(s.allowed(), int64(min(batches, math.MaxInt32)))) - s.mu.made
}

// Stop ends everything. The context that calls wait by must have ended.
func (s *dags) Stop() {
	close(s.end)
	s.wg.Wait()
	s.queue.close()
	s.waits.Wait()
	s.report()
}

// span notes what was done on a lane.
func (s *dags) span(lane int, name string, from time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.spans = append(s.mu.spans, event.Span{Name: name, Kind: "sample", Lane: lane, Start: from,
		Dur: wire.Since(s.clock, from)})
}

// lanes marks the lanes of a trace that a wait is on.
type lanes struct{ busy []bool }

func (l *lanes) take() int {
	for i, b := range l.busy {
		if !b {
			l.busy[i] = true
			return i
		}
	}
	l.busy = append(l.busy, true)
	return len(l.busy) - 1
}

func (l *lanes) give(i int) { l.busy[i] = false }
