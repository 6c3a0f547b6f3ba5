// Package webtest has runs that tests show on pages.
package webtest

import (
	"math"
	"math/rand/v2"
	"time"

	"starling/event"
	"starling/report/web"
)

// ManyRanks is a run of 10,000 epochs and 64 workers on a page, and what another second of it adds.
func ManyRanks() (r *web.Run, second func()) {
	const workers, epochs = 64, 10000
	random := rand.New(rand.NewPCG(1, 2))
	r = web.NewRun("")
	at := time.Now().Add(-epochs / 10 * time.Second)
	r.Take(event.Opened{Schema: event.Schema}, at)
	r.Take(event.Started{Dataset: "many", Model: "gcn", Workers: workers, Epochs: 2 * epochs}, at)
	epoch := 0
	second = func() {
		at = at.Add(time.Second)
		for range 10 {
			r.Take(event.Epoch{Epoch: epoch, Loss: 2/math.Sqrt(float64(epoch+1)) + 0.01*random.Float64(), Seconds: 0.1,
				Measured: true, Train: 0.5, Val: 0.5 - 1/float64(epoch+3), Test: math.NaN()}, at)
			epoch++
		}
		for w := range workers {
			x := event.Worker{Worker: w, Host: "host", PID: 1000 + w, Epoch: epoch, Memory: 1 << 30,
				To: make([]int64, workers), WaitedFor: make([]float64, workers)}
			for q := range workers {
				x.To[q], x.WaitedFor[q] = int64(random.IntN(1<<30)), random.Float64()
			}
			for i := range 10 {
				some := func(most float64) float64 { return most * random.Float64() }
				x.Slices = append(x.Slices, event.Slice{Ago: 1 - float64(i)/10, Seconds: 0.1, Wait: some(0.05),
					For: random.IntN(workers), Evaluate: some(0.03), Transfer: some(0.05)})
			}
			r.Take(x, at)
		}
	}
	for epoch < epochs {
		second()
	}
	return r, second
}
