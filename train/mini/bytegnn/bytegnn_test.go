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

// TestLaunchedAhead: the number of batches that distdgl draws at a time is launched whatever the score is, beyond them
// none while one waits.
func TestLaunchedAhead(t *testing.T) {
	const depth, least = 5, 3
	s := &dags{free: make(chan *dag, depth), least: least, threshold: math.Inf(1), clock: wire.OrReal(nil)}
	s.mu.training.add(time.Second)
	s.wait.Store(1)
	for free := range depth {
		if got, want := s.due(&cpuLoad{}, s.clock.Now()), depth-1-free < least; got != want {
			t.Errorf("%d are free: %v", free, got)
		}
		s.free <- nil
	}
	for range depth {
		<-s.free
	}
	s.wait.Store(0)
	if !s.due(&cpuLoad{}, s.clock.Now()) {
		t.Error("the batch that training waits for is not launched")
	}
}

// TestUnfilled: buffers that a run has and its dry run does not are counted, and no more than there are batches.
func TestUnfilled(t *testing.T) {
	tasks := &dags{most: 33, free: make(chan *dag, 4)}
	for batches, want := range map[int]int{100: 29, 5: 1} {
		if got := tasks.Unfilled(batches); got != want {
			t.Errorf("%d batches: %d buffers more than its dry run, want %d", batches, got, want)
		}
	}
}

// TestJoined: rows that were fetched to their place stay there, others are copied to it.
func TestJoined(t *testing.T) {
	of := func(f *graph.Features) []float32 { return f.F32 }
	fetches := make([]fetch, 2)
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
		q.put(x.dag, x.cost, func() {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, fmt.Sprint(x.dag, x.cost, i))
		})
	}
	done := make(chan struct{})
	q.put(9, 0, func() { close(done) })
	q.wg.Go(q.work)
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
