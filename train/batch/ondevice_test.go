package batch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/rng"
	"starling/sample"
	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
)

// drawingDevice is a device that draws batches, by the host's own sampler.
type drawingDevice struct {
	feederDevice
	room  bool
	drawn int
	fails error
}

func (d *drawingDevice) DrawingFits(tensor.Neighbourhoods, int, int) bool { return d.room }

func (d *drawingDevice) NewDrawing(of tensor.Neighbourhoods) tensor.Drawing {
	g := &graph.CSR{Indptr: of.Indptr, Indices: of.Indices}
	n := &sample.Neighbour{Graph: g, Replace: of.Replace}
	for i := range of.Layers {
		n.Fanouts = append(n.Fanouts, of.Layers[len(of.Layers)-1-i].Fanout)
		n.ByID = n.ByID || of.Layers[i].ByID
	}
	return &hostDrawing{d, of, n}
}

type hostDrawing struct {
	dev *drawingDevice
	of  tensor.Neighbourhoods
	by  *sample.Neighbour
}

func (g *hostDrawing) NewBatch() tensor.DrawnBatch { return &hostDrawn{g: g} }

type hostDrawn struct {
	g      *hostDrawing
	batch  Batch
	keys   []uint64
	blocks []tensor.DrawnBlock
}

func (b *hostDrawn) Draw(seeds []uint32, keys []uint64) error {
	if b.g.dev.fails != nil {
		return b.g.dev.fails
	}
	b.keys = slices.Clone(keys)
	seed, epoch, number := findKeys(b.g.by, keys)
	m := *b.g.by
	m.Seed = seed
	b.batch = Batch{Host: &Host{Features: &graph.Features{}, form: form(b.g.of.Loops)}}
	m.Sampler().(sample.SeedSampler).SampleSeeds(&b.batch.Batch, seeds, epoch, number)
	b.batch.Prepare()
	b.blocks = b.blocks[:0]
	b.g.dev.drawn++
	for i := range b.batch.Blocks {
		b.blocks = append(b.blocks, b.block(i))
	}
	return nil
}

// findKeys tries the batches of a few epochs.
func findKeys(n *sample.Neighbour, keys []uint64) (seed uint64, epoch, number int) {
	for seed := range uint64(10) {
		m := *n
		m.Seed = seed
		for epoch := range 5 {
			for number := range 50 {
				if slices.Equal(m.Keys(epoch, number), keys) {
					return seed, epoch, number
				}
			}
		}
	}
	panic("no batch of these epochs has such keys")
}

func (b *hostDrawn) block(i int) (to tensor.DrawnBlock) {
	x, e, dev := &b.batch.Blocks[i], &b.batch.edges[i], b.g.dev.Device
	cols := x.Src
	if x.ByID {
		cols = b.g.by.Graph.Nodes()
	}
	to.In = tensor.NewSparse(dev, x.Dst, cols, e.in.ptr, e.in.index, nil)
	if !x.ByID {
		to.Out = tensor.Transpose(dev, to.In, e.back.ptr, e.back.index, e.place)
	}
	if len(x.RowWeights) == 0 {
		return to
	}
	scale := make([]float32, x.Dst)
	for i, w := range x.RowWeights {
		scale[i] = float32(b.factor(i) * float64(w))
	}
	to.Scale = dev.FromHost(x.Dst, 1, scale)
	return to
}

func (b *hostDrawn) factor(row int) float64 {
	if b.g.of.Factor == nil {
		return 1
	}
	return b.g.of.Factor[b.batch.Vertices[row]]
}

func (b *hostDrawn) Vertices() tensor.Index            { return tensor.Indices(b.g.dev, b.batch.Vertices) }
func (b *hostDrawn) Block(layer int) tensor.DrawnBlock { return b.blocks[layer] }
func (b *hostDrawn) Done()                             {}

func (b *hostDrawn) Own() tensor.Matrix {
	if !b.g.of.Own {
		return tensor.Matrix{}
	}
	own := make([]float32, len(b.batch.Vertices))
	for i := range own {
		own[i] = float32(b.factor(i))
	}
	return b.g.dev.FromHost(len(own), 1, own)
}

func newDrawingDevice(t *testing.T) *drawingDevice {
	d := &drawingDevice{room: true}
	d.Device, d.parcels = traintest.CPU(t, 1), make(chan struct{}, 10000)
	return d
}

// TestDrawnByDevice: where the device draws, steps are the same to the bit, for every model that it draws for.
func TestDrawnByDevice(t *testing.T) {
	t.Parallel()
	d := traintest.WithLoops(t, traintest.Communities(t, 300, false), false)
	for _, model := range nn.Models {
		o := traintest.Options(model)
		o.Epochs, o.Model.Layers, o.Seed = 2, 2, 3
		if _, sums := o.Model.Sums(); !sums && !strings.HasPrefix(model, "gat") {
			continue
		}
		for _, fanouts := range [][]int{{4, 3}, {sample.All, 3}, {5, sample.All}} {
			mo := train.BatchSettings{Sampler: "neighbour", Size: 50, Fanouts: fanouts, Threads: 2,
				Replace: rng.New(1).Fold(uint64(fanouts[0]))%2 == 0}
			want := mustMini(t, traintest.CPU(t, 1), d, o, mo)
			mo.DrawOn = onGPU
			dev := newDrawingDevice(t)
			got := mustMini(t, dev, d, o, mo)
			if !slices.Equal(got.Loss, want.Loss) || dev.drawn == 0 {
				t.Errorf("%s, %v: losses %v of %d batches that the device drew, want %v", model, fanouts, got.Loss,
					dev.drawn, want.Loss)
			}
		}
	}
}

// TestDrawOn: the device draws where it is asked to and can.
func TestDrawOn(t *testing.T) {
	t.Parallel()
	dense, sparse := traintest.Communities(t, 200, false), traintest.Communities(t, 200, true)
	weighted := traintest.WithLoops(t, traintest.Communities(t, 200, false), true)
	settings := func(drawOn string) train.BatchSettings {
		return train.BatchSettings{Sampler: "neighbour", Size: 50, Fanouts: []int{3, 2}, Threads: 1, DrawOn: drawOn}
	}
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers = 1, 2
	for _, c := range []struct {
		name  string
		data  *graph.Dataset
		model string
		room  bool
		mo    train.BatchSettings
		draws bool
		fault string
	}{
		{"auto", dense, "sage", true, settings("auto"), true, ""},
		{"auto where it does not fit", dense, "sage", false, settings("auto"), false, ""},
		{"card where it does not fit", dense, "sage", false, settings("card"), true, ""},
		{"host", dense, "sage", true, settings("host"), false, ""},
		{"sparse, auto", sparse, "sage", true, settings("auto"), false, ""},
		{"sparse", sparse, "sage", true, settings("card"), false, "sparse rows"},
		{"weights", weighted, "sage", true, settings("card"), false, "weights"},
		{"gin", dense, "gin", true, settings("card"), false, "models"},
	} {
		dev := newDrawingDevice(t)
		dev.room = c.room
		o := o
		o.Model.Model = c.model
		_, err := Run(context.Background(), dev, c.data, o, c.mo, nil)
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v, want %q", c.name, err, c.fault)
		}
		if (dev.drawn > 0) != c.draws {
			t.Errorf("%s: the device drew %d batches", c.name, dev.drawn)
		}
	}
	dev := newDrawingDevice(t)
	dev.fails = errors.New("no memory")
	if _, err := Run(context.Background(), dev, dense, o, settings("card"), nil); !errors.Is(err, dev.fails) {
		t.Errorf("where the device cannot draw a batch: %v", err)
	}
}
