package naivehop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"starling/coflow"
	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// carried is the first layer of batches whose models go from server to server with partial sums:
// see naivehop.go. It is nn's Split.
type carried struct {
	site *train.Site
	dev  tensor.Device
	loop *train.Loop

	features tensor.Matrix // of own vertices
	columns  tensor.Matrix // GCN's factors of own vertices
	rowType  tensor.DType
	draws    func(epoch, number int) tensor.Dropout // of the input

	batch    *batch.Batch
	sum, own tensor.Matrix // of the batch at hand: A·x, and the rows of destinations
	err      error
}

// passing is what a model has with it on its way.
type passing struct {
	topology     []byte
	partial, own tensor.Matrix
}

// join gets what is known once there is a loop.
func (c *carried) join(f *train.Loop) {
	c.dev, c.loop, c.rowType = f.Dev, f, f.Dev.RowType(f.Opt.Rows)
	part := c.site.Part
	c.features = f.X.Matrix
	if f.X.Sparse != nil {
		c.features = densified(f.Dev, part.Features, f.Opt.RowNormalize)
	}
	factors := make([]float64, part.Core())
	for v := range factors {
		factors[v] = batch.Factor(nn.Symmetric, 0, part.GCNDegree(uint32(v)))
	}
	c.columns = f.Dev.New(f.Dev.Type(), len(factors), 1)
	f.Dev.Upload(c.columns, factors)
}

// densified is sparse features as rows of numbers, which partial sums are.
func densified(dev tensor.Device, f *graph.Features, normalize bool) tensor.Matrix {
	if normalize {
		f = f.RowNormalize()
	}
	rows := make([]float32, f.Rows*f.Cols)
	for v := range f.Rows {
		for e := f.Indptr[v]; e < f.Indptr[v+1]; e++ {
			rows[v*f.Cols+int(f.Indices[e])] += f.Values[e]
		}
	}
	m := dev.New(dev.Type(), f.Rows, f.Cols)
	dev.Copy(m, dev.FromHost(f.Rows, f.Cols, rows))
	return m
}

// Begin is the input of a batch's step.
func (c *carried) Begin(b *batch.Batch) nn.Input {
	c.batch = b
	return nn.Input{Split: c}
}

func (c *carried) Failure() error { return c.err }

// Sums: the first layer's are carried.
func (c *carried) Sums() bool { return true }

// topologyBytes is what a first block takes on its way.
func topologyBytes(dst, edges, weights int) int { return 12 + 8*dst + 4*edges + 4*weights }

// topology writes the first block of the batch: destinations and sources by number, edges of each
// destination, weights.
func (c *carried) topology() []byte {
	b, put := c.batch, binary.LittleEndian
	dst := b.Blocks[0].Dst
	ptr, index, value := b.In(0)
	out := make([]byte, 0, topologyBytes(dst, len(index), len(value)))
	for _, n := range []int{dst, len(index), len(value)} {
		out = put.AppendUint32(out, uint32(n))
	}
	out, _ = binary.Append(out, put, b.Vertices[:dst])
	for i := range dst {
		out = put.AppendUint32(out, uint32(ptr[i+1]-ptr[i]))
	}
	for _, row := range index {
		out = put.AppendUint32(out, b.Vertices[row])
	}
	out, _ = binary.Append(out, put, value)
	return out
}

// visit adds what a model finds here: sums over the features of own vertices, and the rows of
// destinations that are.
func (c *carried) visit(p *passing, kind nn.Kind) error {
	r := exchange.NewReader(p.topology)
	dst, edges, weights := int(r.Number()), int(r.Number()), int(r.Number())
	if want := topologyBytes(dst, edges, weights); len(p.topology) != want {
		return fmt.Errorf("%d bytes for a block of %d edges to %d vertices, expected %d", len(p.topology), edges, dst,
			want)
	}
	vertices, counts, sources, values := r.Numbers(dst), r.Numbers(dst), r.Numbers(edges), r.Floats(weights)
	first, core := uint32(c.site.Part.Book.Offsets[c.site.Part.Meta.Part]), uint32(c.site.Part.Core())
	sums, rows := sparse{ptr: []int64{0}, index: []uint32{}}, sparse{ptr: []int64{0}, index: []uint32{}}
	e := 0
	for i, v := range vertices {
		for range counts[i] {
			if e == edges {
				return errors.New("a block with fewer edges than its vertices have")
			}
			if u := sources[e] - first; u < core {
				sums.index = append(sums.index, u)
				if weights > 0 {
					sums.value = append(sums.value, values[e])
				}
			}
			e++
		}
		if v-first < core {
			rows.index = append(rows.index, v-first)
		}
		sums.ptr, rows.ptr = append(sums.ptr, int64(len(sums.index))), append(rows.ptr, int64(len(rows.index)))
	}
	c.add(p, dst, &sums, &rows, kind)
	return nil
}

// add adds rows of own vertices, after dropout of the input, to what a model has.
func (c *carried) add(p *passing, dst int, sums, rows *sparse, kind nn.Kind) {
	x, columns, op := c.features, c.columns, tensor.Aggregate{Add: true}
	if d := c.draws(c.batch.Epoch, c.batch.Number); d.P > 0 {
		needed := renumber(sums.index, rows.index)
		x, columns = c.gathered(c.features, needed), c.gathered(c.columns, needed)
		defer c.dev.Free(x)
		defer c.dev.Free(columns)
		c.drop(x, d, needed)
	}
	c.dev.Aggregate(p.own, c.over(dst, x, rows), x, op)
	if kind == nn.Symmetric {
		op.ColScale = columns
	}
	c.dev.Aggregate(p.partial, c.over(dst, x, sums), x, op)
}

// renumber puts in place of vertices their places in a list of all that there are, which it returns.
func renumber(lists ...[]uint32) (vertices []uint32) {
	at := map[uint32]uint32{}
	for _, list := range lists {
		for i, v := range list {
			k, ok := at[v]
			if !ok {
				k = uint32(len(vertices))
				at[v], vertices = k, append(vertices, v)
			}
			list[i] = k
		}
	}
	return vertices
}

// gathered are rows of own vertices.
func (c *carried) gathered(from tensor.Matrix, vertices []uint32) tensor.Matrix {
	x := c.dev.Scratch(from.Type(), len(vertices), from.Cols)
	c.dev.GatherRows(x, from, tensor.Indices(c.dev, vertices))
	return x
}

// drop applies dropout to features of own vertices. All models that are here are in the step of the batch at hand.
func (c *carried) drop(x tensor.Matrix, d tensor.Dropout, vertices []uint32) {
	ids := make([]uint32, len(vertices))
	for i, v := range vertices {
		ids[i] = c.site.Part.IDs[v]
	}
	d.IDs = tensor.Indices(c.dev, ids)
	c.dev.Activate(x, x, tensor.Epilogue{Dropout: d})
}

// sparse is a matrix over rows of own vertices; without values all are one.
type sparse struct {
	ptr   []int64
	index []uint32
	value []float32
}

func (c *carried) over(dst int, x tensor.Matrix, s *sparse) *tensor.Sparse {
	return tensor.NewSparse(c.dev, dst, x.Rows, s.ptr, s.index, s.value)
}

// gather takes the batch's model to all servers: at step t the model that began t servers before is
// here.
func (c *carried) gather(kind nn.Kind) *passing {
	n := c.site.End.Size()
	p := &passing{topology: c.topology()}
	c.allocate(p, c.batch.Blocks[0].Dst)
	c.dev.Zero(p.partial)
	c.dev.Zero(p.own)
	for t := range n {
		if c.err == nil {
			if c.err = c.visit(p, kind); c.err != nil && t > 0 {
				c.err = fmt.Errorf("what worker %d sent: %w", (c.site.End.Rank()+n-1)%n, c.err)
			}
		}
		if c.err == nil && n > 1 {
			p, c.err = c.migrate(p, t)
		}
	}
	return p
}

func (c *carried) allocate(p *passing, dst int) {
	p.partial = c.dev.Scratch(c.dev.Type(), dst, c.features.Cols)
	p.own = c.dev.Scratch(c.dev.Type(), dst, c.features.Cols)
}

func (c *carried) free(p *passing) {
	c.dev.Free(p.partial)
	c.dev.Free(p.own)
}

// The messages of a migration.
const (
	carriedSize = iota
	carriedModel
	carriedTopology
	carriedSums
	carriedRows
	carriedMessages
)

func (c *carried) key(step, message int) wire.Key {
	return wire.Key{Coflow: coflow.ID{Epoch: uint32(c.batch.Epoch), Batch: uint32(c.batch.Number), Layer: -1,
		Type: coflow.Params}, Step: exchange.FreeSteps + uint32(step*carriedMessages+message)}
}

// migrate sends the model that is here to the next server, with what it has, and takes the one that
// comes.
func (c *carried) migrate(p *passing, step int) (*passing, error) {
	end, n := c.site.End, c.site.End.Size()
	to, from := (end.Rank()+1)%n, (end.Rank()+n-1)%n
	sums, rows := make([]byte, p.partial.Bytes()), make([]byte, p.own.Bytes())
	c.dev.Pack(sums, p.partial, tensor.Packing{})
	c.dev.Pack(rows, p.own, tensor.Packing{})
	size := binary.LittleEndian.AppendUint64(nil, uint64(len(p.topology)))
	var pending []*wire.Pending
	for i, m := range [][]byte{size, c.model(), p.topology, sums, rows} {
		kind := []wire.Kind{wire.Topology, wire.Parameter, wire.Topology, wire.Activation, wire.Feature}[i]
		if len(m) > 0 {
			pending = append(pending, end.Send(to, c.key(step, i), kind, m))
		}
	}
	in := &passing{}
	if err := c.site.Waiting("models", func() error {
		return errors.Join(c.receive(in, p, from, step), batch.WaitAll(c.site.Ctx, pending))
	}); err != nil {
		return p, err
	}
	c.free(p)
	return in, nil
}

// receive takes what a model has with it. It computes with the weights that are here, which are the same.
func (c *carried) receive(in, left *passing, from, step int) error {
	end := c.site.End
	size, model := make([]byte, 8), c.model()
	if err := end.Recv(from, c.key(step, carriedSize), wire.Topology, size).Wait(c.site.Ctx); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint64(size)
	if c.site.MemoryOnly { // nothing came: others' take about what this one's takes
		n = uint64(len(left.topology))
	}
	if n > batch.MostBlock(c.site.Part.Book) || n < 12 {
		return fmt.Errorf("worker %d announces a block of %d bytes", from, n)
	}
	in.topology = make([]byte, n)
	err := batch.WaitAll(c.site.Ctx, []*wire.Pending{
		end.Recv(from, c.key(step, carriedModel), wire.Parameter, model),
		end.Recv(from, c.key(step, carriedTopology), wire.Topology, in.topology)})
	if err != nil {
		return err
	}
	if c.site.MemoryOnly {
		in.topology = slices.Clone(left.topology)
	}
	dst := binary.LittleEndian.Uint32(in.topology)
	if 8*uint64(dst) > n {
		return fmt.Errorf("worker %d sends a block of %d bytes for %d vertices", from, n, dst)
	}
	c.allocate(in, int(dst))
	return c.receiveRows(in, from, step)
}

func (c *carried) receiveRows(in *passing, from, step int) error {
	end := c.site.End
	sums, rows := make([]byte, in.partial.Bytes()), make([]byte, in.own.Bytes())
	if len(sums) == 0 {
		return nil
	}
	err := batch.WaitAll(c.site.Ctx, []*wire.Pending{
		end.Recv(from, c.key(step, carriedSums), wire.Activation, sums),
		end.Recv(from, c.key(step, carriedRows), wire.Feature, rows)})
	if err == nil && !c.site.MemoryOnly {
		c.dev.Unpack(in.partial, sums, tensor.Packing{})
		c.dev.Unpack(in.own, rows, tensor.Packing{})
	}
	return err
}

// model is the weights, as they travel.
func (c *carried) model() (b []byte) {
	for _, p := range c.loop.Model.Params {
		part := make([]byte, p.Value.Bytes())
		c.dev.Pack(part, p.Value, tensor.Packing{})
		b = append(b, part...)
	}
	return b
}

// Product is the first layer, once the model is home again.
func (c *carried) Product(reduce nn.Reduction, y tensor.Matrix, w, r *nn.Param) {
	p := c.gather(reduce.Kind)
	if c.err != nil { // what is here may be another model's
		c.dev.Zero(y)
		c.sum, c.own = tensor.Matrix{}, tensor.Matrix{}
		c.free(p)
		return
	}
	c.scale(p, reduce)
	c.sum, c.own = c.dev.Scratch(c.rowType, y.Rows, c.features.Cols), c.dev.Scratch(c.rowType, y.Rows, c.features.Cols)
	c.dev.Copy(c.sum, p.partial)
	c.dev.Copy(c.own, p.own)
	c.free(p)
	c.dev.MatMul(y, c.sum, w.Value, tensor.MatMul{})
	if r != nil {
		c.dev.MatMul(y, c.own, r.Value, tensor.MatMul{Add: true})
	}
}

// scale makes of partial sums what the reduction is: factors of destinations, and their own rows.
func (c *carried) scale(p *passing, reduce nn.Reduction) {
	x, known := &c.batch.Blocks[0], &c.batch.Pulled.Known
	sums, rows := make([]float64, x.Dst), make([]float64, x.Dst)
	for i := range sums {
		f := batch.Factor(reduce.Kind, known.All[i], known.NoLoops[i])
		sums[i], rows[i] = f, f*batch.SelfWeight(reduce)
		if reduce.Kind == nn.Symmetric {
			rows[i] *= batch.Factor(nn.Symmetric, 0, known.NoLoops[i])
		}
		if len(x.RowWeights) > 0 {
			sums[i] *= float64(x.RowWeights[i])
		}
	}
	none := tensor.NewSparse(c.dev, x.Dst, x.Dst, make([]int64, x.Dst+1), []uint32{}, nil)
	scaled := c.dev.Scratch(p.partial.Type(), x.Dst, p.partial.Cols)
	for i, m := range []tensor.Matrix{p.partial, p.own} {
		factors := c.dev.Scratch(c.dev.Type(), x.Dst, 1)
		c.dev.Upload(factors, [][]float64{sums, rows}[i])
		c.dev.Aggregate(scaled, none, m, tensor.Aggregate{RowScale: factors, Self: 1, Add: i > 0})
		c.dev.Free(factors)
	}
	c.dev.Copy(p.partial, scaled)
	c.dev.Free(scaled)
}

func (c *carried) ProductGrad(_ nn.Reduction, g tensor.Matrix, w, r *nn.Param) {
	if c.sum.IsZero() {
		return
	}
	c.dev.MatMul(w.Grad, c.sum, g, tensor.MatMul{TransA: true, Add: true})
	if r != nil {
		c.dev.MatMul(r.Grad, c.own, g, tensor.MatMul{TransA: true, Add: true})
	}
	c.dev.Free(c.sum)
	c.dev.Free(c.own)
	c.sum, c.own = tensor.Matrix{}, tensor.Matrix{}
}
