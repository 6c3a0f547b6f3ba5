package bytegnn

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"starling/graph"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/train/traintest"
	"starling/wire"
)

func mustMini(t testing.TB, dev tensor.Device, d *graph.Dataset, o train.Options, m train.BatchSettings) *train.Result {
	t.Helper()
	return traintest.Ran(t)(batch.Run(context.Background(), dev, d, o, m, nil))
}

// TestLaunchScore against values by hand: f(0) = 100, f(100) = 0, f(50) = 101 - √101.
func TestLaunchScore(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		gap, sampling, training time.Duration
		cpu                     float64
		waiting                 int
		want                    float64
	}{
		{10 * ms, 40 * ms, 20 * ms, 0, 1, 0.010 * 100 * 2},
		{10 * ms, 40 * ms, 20 * ms, 0, 4, 0.010 * 100 * 0.5},
		{10 * ms, 40 * ms, 20 * ms, 100, 1, 0},
		{5 * ms, 20 * ms, 20 * ms, 50, 2, 0.005 * (101 - math.Sqrt(101)) / 2},
		{0, 20 * ms, 20 * ms, 50, 2, 0},
		{5 * ms, 20 * ms, 20 * ms, 50, 0, math.Inf(1)}, // training waits
		{5 * ms, 20 * ms, 0, 50, 3, math.Inf(1)},       // nothing was trained on yet
	} {
		if got := launchScore(c.gap, c.sampling, c.training, c.cpu, c.waiting); math.Abs(got-c.want) > 1e-9 &&
			got != c.want {
			t.Errorf("%+v: %g", c, got)
		}
	}
}

// TestDue: the score has the whole range, from one batch under way to what memory allows.
func TestDue(t *testing.T) {
	tasks := func(launched, given, returned, waiting int64) *dags {
		s := &dags{threshold: 0.3, memory: 1000, clock: wire.OrReal(nil)}
		s.mu.sampling.add(400 * time.Second)
		s.mu.training.add(time.Second)
		s.mu.launched, s.mu.given, s.mu.returned, s.mu.largest = launched, given, returned, 100
		s.mu.done = map[int64]*dag{}
		for i := range waiting {
			s.mu.done[given+i] = &dag{}
		}
		return s
	}
	for _, c := range []struct {
		name                               string
		launched, given, returned, waiting int64
		gap                                time.Duration
		threshold                          float64
		want                               reason
	}{
		{"nothing under way", 3, 3, 2, 0, 0, 1e300, noneUnderWay},
		{"one is, and the score is low", 4, 3, 2, 1, time.Second, 1e300, notDue},
		{"one is, and the score is high", 4, 3, 2, 1, time.Second, 0.3, byScore},
		{"none waits", 4, 3, 2, 0, time.Second, 1e300, noneWaits},
		{"none waits, and the last has just begun", 4, 3, 2, 0, 0, 1e-300, notDue},
		{"one less than memory holds", 11, 3, 2, 8, time.Second, 0.3, byScore},
		{"as many as memory holds", 12, 3, 2, 9, time.Hour, 1e-300, notDue},
		{"as many as memory holds, all sampling", 12, 3, 2, 0, time.Hour, 1e-300, notDue},
	} {
		s := tasks(c.launched, c.given, c.returned, c.waiting)
		s.threshold = c.threshold
		if got := s.due(&cpuLoad{}, s.clock.Now().Add(-c.gap)); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestPause: launches follow training where its steps are shorter than the time between two looks at the score.
func TestPause(t *testing.T) {
	for training, want := range map[time.Duration]time.Duration{
		0:                      launchEvery, // nothing was trained on yet
		time.Second:            launchEvery,
		2 * time.Millisecond:   2 * time.Millisecond,
		100 * time.Nanosecond:  100 * time.Microsecond,
		150 * time.Microsecond: 150 * time.Microsecond,
	} {
		s := &dags{}
		s.mu.training.add(training)
		if got := s.pause(); got != want {
			t.Errorf("training takes %v: %v, want %v", training, got, want)
		}
	}
	s := &dags{threshold: 1e-9, memory: 1000, clock: wire.OrReal(nil)}
	s.mu.launched, s.mu.given, s.mu.largest = 4, 3, 100
	s.mu.training.add(time.Millisecond)
	if got := s.due(&cpuLoad{}, s.clock.Now().Add(-4*time.Millisecond)); got != noneWaits {
		t.Errorf("4 ms after a launch, with steps of 1 ms: %d, want %d", got, noneWaits)
	}
}

// TestLaunchesAreCounted: by reason, and how many there were at a time.
func TestLaunchesAreCounted(t *testing.T) {
	s := &dags{memory: 450}
	s.mu.largest = 100
	for _, why := range []reason{noneUnderWay, byScore, byScore, noneWaits} {
		s.mu.unused = append(s.mu.unused, &dag{})
		s.take(why)
	}
	s.mu.returned = 3
	want := train.Launches{NoneUnderWay: 1, NoneWaits: 1, Score: 2, Most: 4, Allowed: 4}
	if got := s.launches(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestUnfilled: what memory allows beyond the buffers of a dry run is counted, and no more than there are batches.
func TestUnfilled(t *testing.T) {
	tasks := &dags{memory: 3300}
	tasks.mu.largest, tasks.mu.made = 100, 4
	for batches, want := range map[int]int{100: 29, 5: 1} {
		if got := tasks.Unfilled(batches); got != want {
			t.Errorf("%d batches: %d buffers more than its dry run, want %d", batches, got, want)
		}
	}
}

// TestJoined: rows that were fetched to their place stay there, others are copied to it.
func TestJoined(t *testing.T) {
	of := func(f *graph.Features) []float32 { return f.F32 }
	fetches := []*fetch{{}, {}}
	fetches[0].features.F32, fetches[1].features.F32 = []float32{1, 2}, []float32{3}
	all := joined(nil, fetches, of)
	if !slices.Equal(all, []float32{1, 2, 3}) {
		t.Fatal(all)
	}
	fetches[0].features.F32, fetches[1].features.F32 = placed(all, 0, 1), placed(all, 1, 3)
	fetches[0].features.F32[0], fetches[1].features.F32[1] = 7, 9
	if again := joined(all, fetches, of); !slices.Equal(again, []float32{7, 2, 9}) || &again[0] != &all[0] {
		t.Error(again)
	}
	if placed(all, 2, cap(all)+1) != nil || placed[float32](nil, 0, 0) != nil {
		t.Error("a place beyond the memory")
	}
	fetches[1].features.F32 = []float32{5, 5, 5, 5, 5, 5, 5}
	if longer := joined(all, fetches, of); len(longer) != 8 || longer[0] != 7 || longer[7] != 5 {
		t.Error(longer)
	}
}

// TestFineOrder: tasks of an older batch first, then the cheaper, then the older.
func TestFineOrder(t *testing.T) {
	q := newTaskQueue(0)
	var ran []string
	var mu sync.Mutex
	for _, x := range []struct{ dag, cost int64 }{{2, 1}, {1, 9}, {0, 5}, {1, 3}, {0, 5}, {3, 0}, {1, 0}} {
		i := len(q.mu.ready)
		q.put(x.dag, x.cost, func(int) {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, fmt.Sprint(x.dag, x.cost, i))
		})
	}
	done := make(chan struct{})
	q.put(9, 0, func(int) { close(done) })
	q.wg.Go(func() { q.work(firstLane) })
	<-done
	q.close()
	if want := []string{"0 5 2", "0 5 4", "1 0 6", "1 3 3", "1 9 1", "2 1 0", "3 0 5"}; !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}
}

// TestByteGNNIsOneWorker: whatever is scheduled when, the loss curve is one worker's.
func TestByteGNNIsOneWorker(t *testing.T) {
	for i, model := range []string{"gcn", "sage", "gat"} {
		d := traintest.Communities(t, 120, i == 1)
		o := traintest.Options(model)
		o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
		m := train.BatchSettings{Sampler: "neighbour", Size: 20, Fanouts: []int{3, 4}, Threads: 2}
		one := mustMini(t, traintest.Ref(), d, o, m)
		parts := traintest.Cut(t, d, "bytegnn", 1+i)
		traintest.SameRun(t, traintest.Batches(t, parts, o, m, true, "bytegnn").Results[0], one)
		got := traintest.Batches(t, parts, o, m, false, "bytegnn", "roots=random", "launch_score=1e-6")
		traintest.SameRun(t, got.Results[0], one)
	}
}
