package generate

import (
	"math"
	"sync"

	"starling/graph"
	"starling/rng"
)

// Gaussian features. x_v = Signal·c + z, where c is a random unit vector per class (the
// sum over the classes of v if it has several) and z has independent standard normal
// entries. So Signal is the distance of a class from the origin in units of the noise,
// whatever the dimension: near 1 features alone say little and neighbours are needed; at 5
// features are enough.
//
// A normal number is the sum of two entries of a table of normal quantiles, over √2. A sum
// of normals is normal, so the sum reaches 5 deviations although the table ends at 3.7;
// the table fits into the L1 cache, and one 64-bit draw gives two numbers.

const quantiles = 1 << 12

// normalTable holds the quantiles, scaled so that the sum of two has variance 1.
var normalTable = sync.OnceValue(func() *[quantiles]float32 {
	var t [quantiles]float32
	var square float64
	for i := range t {
		z := math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/quantiles-1)
		t[i] = float32(z)
		square += z * z
	}
	scale := float32(1 / math.Sqrt(2*square/quantiles))
	for i := range t {
		t[i] *= scale
	}
	return &t
})

// addNormals adds standard normal numbers, drawn under k, to dst.
func addNormals(dst []float32, k rng.Key, t *[quantiles]float32) {
	n := len(dst) &^ 1
	for i := 0; i < n; i += 2 {
		r := k.Uint64(uint64(i))
		dst[i] += t[r>>52] + t[r>>40&(quantiles-1)]
		dst[i+1] += t[r>>20&(quantiles-1)] + t[r&(quantiles-1)]
	}
	if n < len(dst) {
		r := k.Uint64(uint64(n))
		dst[n] += t[r>>52] + t[r>>40&(quantiles-1)]
	}
}

// centres draws one vector of length Signal per class.
func (p Params) centres() [][]float32 {
	k := rng.New(p.Seed).Fold(centreStream)
	c := make([][]float32, p.Classes)
	for i := range c {
		c[i] = make([]float32, p.Features)
		addNormals(c[i], k.Fold(uint64(i)), normalTable())
		var square float64
		for _, x := range c[i] {
			square += float64(x) * float64(x)
		}
		for j := range c[i] {
			c[i][j] *= float32(p.Signal / math.Sqrt(max(square, 1e-30)))
		}
	}
	return c
}

// featureChunk is how many values are drawn between two writes.
const featureChunk = 4 << 20

// writeFeatures draws rows chunk by chunk, one being written while the next is
// drawn, so that features may be far larger than memory.
func (p Params) writeFeatures(w *graph.Writer, centre func(row []float32, v uint64)) error {
	kind := graph.Dense
	if p.BFloat16 {
		kind = graph.BFloat16
	}
	a, err := w.DenseFeatures(kind, int(p.Nodes), p.Features)
	if err != nil {
		return err
	}
	return p.writeRows(a, p.Nodes, p.rowDrawer(centre))
}

// writeRows writes the features that draw draws of each vertex.
func (p Params) writeRows(a *graph.ArrayWriter, vertices int64, draw func(row []float32, v uint64)) error {
	rows := max(featureChunk/p.Features, 1)
	full, empty := make(chan []float32, 1), make(chan []float32, 2)
	written := make(chan error, 1)
	go func() { written <- p.drain(a, full, empty) }()
	for range 2 {
		empty <- make([]float32, rows*p.Features)
	}
	for lo := int64(0); lo < vertices; lo += int64(rows) {
		n := min(int64(rows), vertices-lo)
		chunk := (<-empty)[:n*int64(p.Features)]
		graph.Parallel(n, 256, func(from, to int64) {
			for i := from; i < to; i++ {
				draw(chunk[i*int64(p.Features):(i+1)*int64(p.Features)], uint64(lo+i))
			}
		})
		full <- chunk
		p.report("draw features", lo+n, vertices)
	}
	close(full)
	err := <-written
	if cerr := a.Close(); err == nil {
		err = cerr
	}
	return err
}

// drain writes chunks as they arrive; after an error it only empties the channel.
func (p Params) drain(a *graph.ArrayWriter, full <-chan []float32, empty chan<- []float32) (err error) {
	var short []uint16
	for chunk := range full {
		switch {
		case err != nil:
		case p.BFloat16:
			if short == nil {
				short = make([]uint16, cap(chunk))
			}
			for i, x := range chunk {
				short[i] = graph.ToBF16(x)
			}
			err = graph.WriteSlice(a, short[:len(chunk)])
		default:
			err = graph.WriteSlice(a, chunk)
		}
		empty <- chunk[:cap(chunk)]
	}
	return err
}

// rowDrawer returns the function that draws the features of one vertex.
func (p Params) rowDrawer(centre func(row []float32, v uint64)) func(row []float32, v uint64) {
	k, t := rng.New(p.Seed).Fold(noiseStream), normalTable()
	return func(row []float32, v uint64) {
		centre(row, v)
		addNormals(row, k.Fold(v), t)
	}
}
