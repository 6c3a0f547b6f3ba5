package exchange

import (
	"sync"
	"testing"

	"starling/tensor"
	"starling/train/traintest"
	"starling/wire"
)

// TestMeansOfRows: rows that came directly have the mean of what they stand for, by peer;
// fresh rows stay.
func TestMeansOfRows(t *testing.T) {
	for _, relay := range []bool{false, true} {
		onHalos(t, 4, 2, relay, func(r *Rows, h *Halo) {
			const cols = 3
			dev := r.W.Dev
			src, _ := someRows(dev, uint64(r.W.End.Rank()), h.Src, cols)
			now := dev.New(tensor.F64, h.HaloRows(), cols)
			tag := Tag{Layer: 1, Kind: wire.Activation}
			x := r.Exchange(tag, h, now, src)
			x.Wait()
			x.Done()
			fresh := traintest.Numbers(dev, now)
			means := NewMeans(r, MeanOption{Means: true})
			means.Exchange(tag, h, src).Apply(now)
			equal(t, "fresh rows", traintest.Numbers(dev, now), fresh)

			r.Epoch = 1
			stale, v := someRows(dev, 99, h.HaloRows(), cols)
			means.Exchange(tag, h, src).Apply(stale)
			traintest.MoveToMeans(v, fresh, cols, h.HaloPtr)
			n := h.DirectRows() * cols
			equal(t, "stale rows", traintest.Numbers(dev, stale)[:n], v[:n])
		})
	}
}

// TestMeansOfGradients: whichever worker relays them, gradients that are nothing but means sum
// to those that workers have.
func TestMeansOfGradients(t *testing.T) {
	for _, relay := range []bool{false, true} {
		var lock sync.Mutex
		const cols = 3
		var sent, got [cols]float64
		onHalos(t, 6, 2, relay, func(r *Rows, h *Halo) {
			grads, v := someRows(r.W.Dev, uint64(r.W.End.Rank()), h.HaloRows(), cols)
			in := r.W.Dev.New(tensor.F64, h.Send.Len(), cols)
			NewMeans(r, MeanOption{Means: true}).Reverse(Tag{Layer: 1, Backward: true, Kind: wire.Gradient}, h,
				grads).Apply(in)
			lock.Lock()
			defer lock.Unlock()
			for i, x := range v {
				sent[i%cols] += x
			}
			for i, x := range traintest.Numbers(r.W.Dev, in) {
				got[i%cols] += x
			}
		})
		equal(t, "sums of gradients", got[:], sent[:])
	}
}
