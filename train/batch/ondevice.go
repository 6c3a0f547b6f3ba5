package batch

import (
	"strings"

	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/tensor"
	"starling/train"
)

// A device that holds the graph (tensor.GraphDrawer) draws the batches of the neighbour sampler itself, by the keys
// that the host draws by, and numbers vertices alike: batches are the same to the bit. The host knows the seeds of such
// a batch, their labels, and sizes.

// deviceDrawer draws batches on a device.
type deviceDrawer struct {
	by *sample.Neighbour
	on tensor.Drawing
}

// drawnBuffers is how many batches are drawn before they are needed, with the one at hand.
const drawnBuffers = 5

// Draw draws a batch and waits for it.
func (d deviceDrawer) Draw(b *Batch, epoch, number int) error {
	if b.drawn == nil {
		b.drawn = d.on.NewBatch()
	}
	seeds := d.by.Begin(&b.Batch, epoch, number)
	if err := b.drawn.Draw(seeds, d.by.Keys(epoch, number)); err != nil {
		return err
	}
	for i := range b.Blocks {
		x, in := &b.Blocks[i], b.drawn.Block(i)
		x.Dst, x.Src, x.ByID = in.In.Rows, in.In.Cols, in.Out == nil
		if x.ByID {
			x.Src = x.Dst
		}
	}
	b.known.gather(b.Labels, seeds, b.targets)
	b.pack()
	return nil
}

// drawsThere has batches be drawn on the device. Where they cannot be, why says why.
func (m *Steps) drawsThere(h *Host, method sample.Method, g *graph.CSR, mo *Options) (d Drawer, why string) {
	by, ok := method.(*sample.Neighbour)
	dev, draws := m.Loop.Dev.(tensor.GraphDrawer)
	switch {
	case !draws:
		return nil, "only a GPU can"
	case m.ahead == nil:
		return nil, "only batches that learn from the labels of vertices are drawn there"
	case !ok || by.Types != nil || by.Weighted:
		return nil, "it draws with --sampler neighbour, without --weighted and types"
	case g.Weights != nil || h.graph != nil || h.schema != nil:
		return nil, "it does not draw edges that have weights or features"
	case m.disk != nil:
		return nil, "features are read from disk, by what the host draws"
	case h.Features.Kind() == graph.Sparse:
		return nil, "features are sparse rows, which the host gathers"
	case h.kind == nil && !strings.HasPrefix(m.Loop.Opt.Model.Model, "gat"):
		return nil, "it draws for the models gcn, sage (mean and gcn), gat, and those made of them"
	}
	of := neighbourhoods(h, by, g, m.Loop.Opt.HostFeatures)
	if mo.DrawOn != onGPU && !dev.DrawingFits(of, mo.Size, drawnBuffers) {
		return nil, "the graph does not fit beside the run"
	}
	return deviceDrawer{by, dev.NewDrawing(of)}, ""
}

// neighbourhoods are how a device draws what the method draws.
func neighbourhoods(h *Host, by *sample.Neighbour, g *graph.CSR, listed bool) tensor.Neighbourhoods {
	n := tensor.Neighbourhoods{Indptr: g.Indptr, Indices: g.Indices, Replace: by.Replace, Loops: loopsOf[h.form],
		Own: h.kind != nil, Listed: listed}
	for layer := range by.Fanouts {
		n.Layers = append(n.Layers, tensor.DrawnLayer{Fanout: by.Fanouts[len(by.Fanouts)-1-layer],
			ByID: by.ByID && layer == 0})
	}
	if h.kind == nil {
		return n
	}
	n.Factor = make([]float64, g.Nodes())
	for v := range n.Factor {
		n.Factor[v] = Factor(*h.kind, h.degrees.All[v], h.degrees.NoLoops[v])
	}
	return n
}

var loopsOf = map[form]tensor.Loops{asDrawn: tensor.LoopsDrawn, loopFree: tensor.LoopFree, looped: tensor.Looped}

// Values of BatchSettings.DrawOn.
const (
	onHost = "host"
	onGPU  = "card"
)

// checkDrawOn refuses a run that was to draw on a device that cannot.
func (m *Steps) checkDrawOn(mo *Options) error {
	if mo.DrawOn != onGPU || m.drawnOn == "" || m.few {
		return nil
	}
	return notDrawnThere(m.drawnOn)
}

func notDrawnThere(why string) error {
	return train.Mistake("--draw-on card: the GPU cannot draw these batches: %s; use --draw-on auto or host", why)
}

// beginDrawn puts the blocks of a batch that the device has drawn in their place.
func (a *Blocks) beginDrawn(b *Batch) {
	for len(a.made) < len(b.Blocks) {
		a.made = append(a.made, onDevice{})
	}
	for i := range b.Blocks {
		x := b.drawn.Block(i)
		a.made[i] = onDevice{in: x.In, out: x.Out, drawn: x}
	}
}

// scaleDrawn makes the factors of a block that the device has drawn, which were made of the kind that all layers have.
func (a *Blocks) scaleDrawn(x *sample.Block, m *onDevice, k nn.Kind) {
	b := a.batch
	tensor.Need(b.kind != nil && *b.kind == k || b.kind == nil && k == nn.Sum, "a batch was drawn for other sums")
	if own := b.drawn.Own(); k != nn.Sum {
		m.own = own.Slice(0, x.Dst)
		if k == nn.Symmetric {
			m.col = own.Slice(0, x.Src)
		}
	}
	if m.rows = m.drawn.Scale; m.rows.IsZero() {
		m.rows = m.own
	}
}

// counted reports whether the edges of a block that were drawn count for others too.
func (m *onDevice) counted(x *sample.Block) bool {
	return len(x.RowWeights) > 0 || !m.drawn.Scale.IsZero()
}
