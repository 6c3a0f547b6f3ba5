package exchange

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"starling/internal/testseed"
	"starling/nn"
	"starling/partition"
	"starling/rng"
	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// rowsWay is a way for rows to travel.
type rowsWay struct {
	relay, sparse bool
	dtype         string
}

var rowsWays = []rowsWay{{dtype: "none"}, {dtype: "bf16"}, {dtype: "int8"}, {dtype: "none", relay: true},
	{dtype: "int8", relay: true}, {dtype: "none", sparse: true}, {dtype: "none", sparse: true, relay: true}}

// network is a graph with numbers for its rows and gradients, which every worker can compute for all others.
type network struct {
	seed  uint64
	cols  int
	parts []*partition.Part
}

// row is number c of a vertex's row, about half of them zero: what ReLU leaves.
func (n *network) row(v uint32, c int) float64 {
	return max(0, rng.New(n.seed).Fold(uint64(v)).Normal(uint64(c)))
}

// gradient is a worker's gradient of a remote row; zero where the row is, as behind ReLU.
func (n *network) gradient(worker int, v uint32, c int) float64 {
	if n.row(v, c) == 0 {
		return 0
	}
	return rng.New(n.seed).Fold(uint64(worker)).Fold(uint64(v)).Normal(uint64(c))
}

// onNetwork does something as every worker, on servers, with the halo of its part and rows that travel in some way.
func onNetwork(t *testing.T, n *network, servers int, way rowsWay, do func(r *Rows, h *Halo, p *HaloPlan)) {
	t.Helper()
	n.parts = traintest.CutForServers(t, traintest.Communities(t, 90, false), "random", 4, servers)
	ends := traintest.ServerEnds(n.parts)
	defer traintest.Close(ends)
	traintest.Each(len(n.parts), func(k int) {
		w := workerOf(traintest.Site(n.parts[k], ends[k], train.Options{}))
		w.Relayed, w.SparseRows, w.WireDType, w.Masked = way.relay, way.sparse, way.dtype, true
		w.Model = nn.Config{Model: "gcn", Layers: 4}
		rows := NewRows(w)
		a, plan, err := OverHalo(w, rows)
		if err != nil {
			t.Error(err)
			w.End.Fail(err)
			return
		}
		do(rows, a.Halo(0), plan)
		if err := rows.Err(); err != nil {
			t.Errorf("worker %d: %v", k, err)
		}
	})
}

// matrix is rows of some vertices.
func (n *network) matrix(dev tensor.Device, vertices []uint32, of func(v uint32, c int) float64) tensor.Matrix {
	list := make([]float64, 0, len(vertices)*n.cols)
	for _, v := range vertices {
		for c := range n.cols {
			list = append(list, of(v, c))
		}
	}
	m := dev.New(tensor.F64, len(vertices), n.cols)
	dev.Upload(m, list)
	return m
}

// local are the vertices of a worker.
func local(p *partition.Part) (list []uint32) {
	for v := range uint32(p.Core()) {
		list = append(list, uint32(p.Book.Offsets[p.Meta.Part])+v)
	}
	return list
}

// sendsPlanned checks that what a worker sends in do is what is planned for a transfer, or at most that.
func sendsPlanned(r *Rows, tag Tag, h *Halo, cols int, do func()) error {
	before := r.W.End.Ledger().SentBytes().Sum()
	do()
	var planned int64
	for _, q := range r.W.Peers() {
		planned += r.RowsTo(tag, h, q, 0, true) * r.RowBytes(tag, tensor.F64, cols, true)
	}
	sent := r.W.End.Ledger().SentBytes().Sum() - before
	if sent != planned && !(r.skipsZeros(tag) && sent < planned) {
		return fmt.Errorf("%v: sent %d bytes, planned %d", tag, sent, planned)
	}
	return nil
}

// TestRowsArrive: halo rows are the rows that their owners computed, and gradients come back to these and are added to
// what they have, whether rows are relayed, rounded, or travel without zeros. What is sent is what is planned. Rounding
// is made up for: over epochs the mean of what arrives nears the rows.
func TestRowsArrive(t *testing.T) {
	const epochs = 6
	seed := testseed.New(t)
	for _, way := range rowsWays {
		t.Run(fmt.Sprintf("%+v", way), func(t *testing.T) {
			n := &network{seed: seed, cols: 9}
			var lock sync.Mutex
			fail := func(err error) {
				lock.Lock()
				defer lock.Unlock()
				if err != nil {
					t.Error(err)
				}
			}
			onNetwork(t, n, 2, way, func(r *Rows, h *Halo, plan *HaloPlan) {
				dev, part := r.W.Dev, r.W.Part
				src := n.matrix(dev, local(part), n.row)
				want := traintest.Numbers(dev, n.matrix(dev, plan.Halo, n.row))
				sum := make([]float64, len(want))
				for epoch := range epochs {
					r.Begin(epoch, 0, true)
					into := dev.New(tensor.F64, h.HaloRows(), n.cols)
					tag := Tag{Layer: 1, Kind: wire.Activation}
					if r.skipsZeros(tag) != way.sparse {
						fail(fmt.Errorf("rows travel without their zeros: %v", !way.sparse))
					}
					fail(sendsPlanned(r, tag, h, n.cols, func() {
						x := r.Exchange(tag, h, into, src)
						x.Wait()
						x.Done()
					}))
					for i, x := range traintest.Numbers(dev, into) {
						sum[i] += x
					}
					fail(n.returns(r, h, plan, way))
				}
				for i := range sum {
					if off := math.Abs(sum[i]/epochs - want[i]); off > n.rounding(way)/epochs {
						fail(fmt.Errorf("number %d is %g off on average", i, off))
						return
					}
				}
			})
		})
	}
}

// rounding is the most that is lost of a number on its way.
func (n *network) rounding(way rowsWay) float64 {
	if way.dtype == "none" {
		return 1e-12
	}
	return 0.04 // of numbers up to 5, and what was lost before is added
}

// returns sends gradients of halo rows back, and compares what owners have then with sums over all workers.
func (n *network) returns(r *Rows, h *Halo, plan *HaloPlan, way rowsWay) error {
	dev, me := r.W.Dev, r.W.End.Rank()
	grads := n.matrix(dev, plan.Halo, func(v uint32, c int) float64 { return n.gradient(me, v, c) })
	dst := n.matrix(dev, local(r.W.Part), func(uint32, int) float64 { return 1 })
	tag := Tag{Layer: 1, Backward: true, Kind: wire.Gradient}
	if err := sendsPlanned(r, tag, h, n.cols, func() {
		x := r.Reverse(tag, h, grads, dst)
		x.Wait()
		x.Done()
	}); err != nil {
		return err
	}
	got := traintest.Numbers(dev, dst)
	for i, v := range local(r.W.Part) {
		for c := range n.cols {
			want, bound := 1.0, 1e-9
			for q, p := range n.parts {
				if _, needs := slices.BinarySearch(p.Halo, v); needs {
					want += n.gradient(q, v, c)
					bound += 3 * n.rounding(way) // twice where it is relayed
				}
			}
			if x := got[i*n.cols+c]; math.Abs(x-want) > bound {
				return fmt.Errorf("gradient %d of vertex %d is %g, want %g", c, v, x, want)
			}
		}
	}
	return nil
}

// TestBlocksArrive: over a ring every worker has every other's rows, and owners the sums of all gradients.
func TestBlocksArrive(t *testing.T) {
	seed := testseed.New(t)
	for _, servers := range []int{1, 2, 4} {
		n := &network{seed: seed, cols: 5}
		onNetwork(t, n, servers, rowsWay{dtype: "none"}, func(r *Rows, _ *Halo, _ *HaloPlan) {
			dev, part, me := r.W.Dev, r.W.Part, r.W.End.Rank()
			blocks := NewBlocks(r.W)
			blocks.Begin(0, 0, true)
			plan := PartBlocks(part)
			h := NewHalo(dev, plan)
			var others []uint32
			for q, p := range n.parts {
				if q != me {
					others = append(others, local(p)...)
				}
			}
			into := dev.New(tensor.F64, len(others), n.cols)
			x := blocks.Exchange(Tag{Layer: 1, Kind: wire.Activation}, h, into, n.matrix(dev, local(part), n.row))
			x.Wait()
			x.Done()
			equal(t, "blocks", traintest.Numbers(dev, into), traintest.Numbers(dev, n.matrix(dev, others, n.row)))

			dst := n.matrix(dev, local(part), func(uint32, int) float64 { return 1 })
			y := blocks.Reverse(Tag{Layer: 1, Backward: true, Kind: wire.Gradient}, h,
				n.matrix(dev, others, func(v uint32, c int) float64 { return n.gradient(me, v, c) }), dst)
			y.Wait()
			y.Done()
			want := n.matrix(dev, local(part), func(v uint32, c int) float64 {
				sum := 1.0
				for q := range n.parts {
					if q != me {
						sum += n.gradient(q, v, c)
					}
				}
				return sum
			})
			equal(t, "sums of gradients", traintest.Numbers(dev, dst), traintest.Numbers(dev, want))
		})
	}
}
