package mini

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"starling/train/traintest"
)

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
		m := Options{Sampler: "neighbour", Size: 20, Fanouts: []int{3, 4}, Threads: 2}
		one := mustMini(t, traintest.Ref(), d, o, m)
		parts := traintest.Cut(t, d, "bytegnn", 1+i)
		sameCurve(t, batchesOver(t, parts, o, m, true, "bytegnn").Results[0], one)
		sameCurve(t, batchesOver(t, parts, o, m, false, "bytegnn", "roots=random", "launch_score=1e-6").Results[0], one)
	}
}
