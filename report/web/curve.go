package web

import (
	"math"
	"slices"

	"starling/event"
)

// mostEpochs are kept; of a longer run every second, then every fourth, and so on.
const mostEpochs = 1 << 14

// curve is the numbers of epochs.
type curve struct {
	Every  int // 1: all epochs are here
	Epochs []int
	At     []float64 // seconds since the run began

	Loss, LR, Seconds, Train, Val, Test []float64
}

// columns are the lists of numbers, one per epoch.
func (c *curve) columns() []*[]float64 {
	return []*[]float64{&c.At, &c.Loss, &c.LR, &c.Seconds, &c.Train, &c.Val, &c.Test}
}

// add appends an epoch. A run that goes on from an earlier epoch repeats those after it.
func (c *curve) add(e event.Epoch, at float64) {
	if c.Every == 0 {
		c.Every = 1
	}
	c.cut(e.Epoch)
	if e.Epoch%c.Every != 0 {
		return
	}
	if len(c.Epochs) == mostEpochs {
		c.halve()
		if e.Epoch%c.Every != 0 {
			return
		}
	}
	train, val, test := math.NaN(), math.NaN(), math.NaN()
	if e.Measured {
		train, val, test = e.Train, e.Val, e.Test
	}
	c.Epochs = append(c.Epochs, e.Epoch)
	for i, x := range []float64{at, e.Loss, e.LR, e.Seconds, train, val, test} {
		list := c.columns()[i]
		*list = append(*list, x)
	}
}

// cut forgets an epoch and all after it.
func (c *curve) cut(epoch int) {
	at, _ := slices.BinarySearch(c.Epochs, epoch)
	c.Epochs = c.Epochs[:at]
	for _, list := range c.columns() {
		*list = (*list)[:at]
	}
}

// halve keeps the epochs that are divisible by twice as much as before.
func (c *curve) halve() {
	c.Every *= 2
	n := 0
	for i, e := range c.Epochs {
		if e%c.Every != 0 {
			continue
		}
		c.Epochs[n] = e
		for _, list := range c.columns() {
			(*list)[n] = (*list)[i]
		}
		n++
	}
	c.Epochs = c.Epochs[:n]
	for _, list := range c.columns() {
		*list = (*list)[:n]
	}
}

// copy is a curve that does not change.
func (c *curve) copy() curve {
	out := curve{Every: c.Every, Epochs: slices.Clone(c.Epochs)}
	from, to := c.columns(), out.columns()
	for i := range from {
		*to[i] = slices.Clone(*from[i])
	}
	return out
}

// measured are the numbers of a list that are known, and their epochs counted from 1.
func (c *curve) measured(y []float64) (xs, ys []float64) {
	for i, v := range y {
		if !math.IsNaN(v) {
			xs, ys = append(xs, float64(c.Epochs[i]+1)), append(ys, v)
		}
	}
	return xs, ys
}

// counted are the epochs from 1.
func (c *curve) counted() []float64 {
	out := make([]float64, len(c.Epochs))
	for i, e := range c.Epochs {
		out[i] = float64(e + 1)
	}
	return out
}
