package full

import (
	"math"
	"slices"
	"strings"
	"testing"

	"starling/nn"
	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
)

// TestScoresAreNeverStale: strategies whose rows, or gradients of rows, are stale have
// attention's scores, its last layer, and gradients of both fresh in every epoch.
func TestScoresAreNeverStale(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 60, false), "random", 3)
	for _, text := range []string{"pipegcn", "sancus:epoch:2", "sancus:adaptive:2+gradients",
		"sancus:relative:0.6+gradients", "skipg:2", "bns:0.3:cached"} {
		o := traintest.Small("gat")
		o.Model.Layers = 3
		o.Strategy = traintest.Strategy(t, text, optionIf(strings.HasPrefix(text, "sancus"), "clip=0"))
		ends := traintest.Ends(len(parts))
		rows, others := make([]int, len(parts)), make([]int, len(parts))
		traintest.Each(len(parts), func(k int) {
			at := traintest.Site(parts[k], ends[k], o)
			s, err := o.Strategy.Descriptor.New(at)
			if err == nil {
				rows[k], others[k] = staleNumbers(at, s)
				err = s.Finish()
			}
			if err != nil {
				t.Error(err)
				ends[k].Fail(err)
			}
		})
		traintest.Close(ends)
		if slices.Max(others) > 0 || slices.Min(rows) == 0 {
			t.Errorf("%s: %v stale numbers among scores or in the last layer, %v among rows", text, others, rows)
		}
	}
}

// edgeOp is an edge operator that only exchanges: rows, and scores.
type edgeOp struct {
	layer int
	sent  []tensor.Matrix
}

func (o *edgeOp) Layer() int                      { return o.layer }
func (o *edgeOp) Width() int                      { return 1 }
func (o *edgeOp) Over() nn.Form                   { return nn.Form{} }
func (o *edgeOp) Sent() []tensor.Matrix           { return o.sent }
func (o *edgeOp) SentGrads() []tensor.Matrix      { return o.sent }
func (o *edgeOp) EdgeForward(*nn.Edges, int, int) {}
func (o *edgeOp) EdgeBackward(*nn.Edges)          {}

// staleNumbers exchanges rows and scores of the second and of the last layer, and gradients
// of all. They are the epoch's number, counted from 1, or its square, so that not all
// change alike. It returns how many of them were not when they were used.
func staleNumbers(at *train.Site, s train.Strategy) (rows, others int) {
	dev, part := at.Dev, at.Part
	_, core := s.Rows(1)
	first := uint32(part.Book.Offsets[part.Meta.Part])
	halo := s.(interface{ MessageRows(layer int) int }).MessageRows(1) - core
	// vertex is the number of a halo row in the partition.
	vertex := func(k int) uint32 {
		switch {
		case len(part.Halo) == halo:
			return part.Halo[k]
		case uint32(k) >= first: // of whole blocks
			return uint32(k + core)
		}
		return uint32(k)
	}
	returned := make([]float64, core) // how many peers return a gradient
	for i := range returned {
		returned[i] = float64(at.End.Size() - 1)
	}
	if len(part.Halo) == halo {
		clear(returned)
		for _, v := range part.Send {
			returned[v]++
		}
	}
	for epoch := range 6 {
		of := func(vertex uint32) float64 { return math.Pow(float64(epoch+1), float64(1+vertex%2)) }
		own, remote := make([]float64, core), make([]float64, halo)
		for i := range own {
			own[i] = of(first + uint32(i))
		}
		for k := range remote {
			remote[k] = of(vertex(k))
		}
		s.Begin(epoch, 0, true)
		count := func(op *edgeOp, lo int, want []float64) {
			for i, m := range op.sent {
				n := 0
				for k, x := range traintest.Numbers(dev, m)[lo : lo+len(want)] {
					if x != want[k] {
						n++
					}
				}
				if op.layer == 1 && i == 0 {
					rows += n
				} else {
					others += n
				}
			}
		}
		op := func(layer int, local, halo []float64) *edgeOp {
			o := &edgeOp{layer: layer}
			for range 2 {
				m := dev.New(tensor.F64, len(local)+len(halo), 1)
				dev.Upload(m, slices.Concat(local, halo))
				o.sent = append(o.sent, m)
			}
			return o
		}
		for _, layer := range []int{1, 2} {
			x := op(layer, own, make([]float64, halo))
			s.Edgewise(x)
			count(x, core, remote)
		}
		want := make([]float64, core)
		for i := range want {
			want[i] = own[i] * returned[i]
		}
		for _, layer := range []int{2, 1} {
			x := op(layer, make([]float64, core), remote)
			s.EdgewiseGrad(x)
			count(x, 0, want)
		}
	}
	return rows, others
}
