// Package cost says what the parts of an epoch cost on this cluster: rates that are
// measured in a fraction of a second (Measure), and what they make of counts of rows,
// edges and bytes. Strategies that choose between computing and receiving decide by it.
package cost

import (
	"starling/nn"
	"starling/wire"
)

// Rates are seconds, the same on all workers.
type Rates struct {
	Row, Edge []float64 // of each layer in an epoch, forward and backward
	// Inside and Between are of a byte between workers of a server and between servers,
	// with all workers sending at once.
	Inside, Between float64
}

// Epoch is what an epoch's parts cost.
type Epoch struct {
	Layers          []Layer
	Inside, Between float64 // seconds per byte
	Fixed           float64 // seconds for what every choice sends: gradients of parameters
	Feature         int64   // bytes of a row of features
}

// Layer is what a layer costs in an epoch, forward and backward.
type Layer struct {
	Row, Edge      float64 // seconds
	TransformFirst bool    // rows are transformed before they are summed
	Traffic        int64   // bytes that a halo row takes, both ways
	Kept           int64   // bytes of a row that the backward pass needs
}

// EdgeBytes is what an edge takes on the device: of local and halo rows, both ways.
const EdgeBytes = 16

// Counts are what rates are joined with.
type Counts struct {
	Layers []nn.Traffic
	// RowBytes is what a halo row of a layer takes on the wire in an epoch, both ways.
	RowBytes func(t nn.Traffic) int64
	// Reduced are the bytes of the gradients' all-reduce, by link.
	Reduced wire.Bytes
	// In and Hidden are widths; Number is the bytes of a number of a row.
	In, Hidden, Number int
	Feature            int64 // bytes of a row of features
}

// NewEpoch joins rates with what the model sends and keeps. Without rates only bytes are
// known.
func NewEpoch(r Rates, c Counts) *Epoch {
	e := &Epoch{Inside: r.Inside, Between: r.Between, Feature: c.Feature}
	in := c.In
	for i, t := range c.Layers {
		l := Layer{Traffic: c.RowBytes(t)}
		if r.Row != nil {
			l.Row, l.Edge = r.Row[i], r.Edge[i]
		}
		l.TransformFirst = t.Edgewise || t.Forward.Rows > 0 && t.Forward.Rows != in
		l.Kept = 3 * int64(c.Hidden*c.Number) // a layer's output, its norm's, and messages or sums
		e.Layers = append(e.Layers, l)
		in = c.Hidden
	}
	for class, bytes := range c.Reduced {
		if class.Link == wire.BetweenServers {
			e.Fixed += r.Between * float64(bytes)
		} else {
			e.Fixed += r.Inside * float64(bytes)
		}
	}
	return e
}
