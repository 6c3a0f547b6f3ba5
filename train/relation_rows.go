package train

import (
	"encoding/binary"
	"fmt"
	"math"

	"starling/coflow"
	"starling/collective"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/sample"
	"starling/tensor"
	"starling/wire"
)

// destinations are the rows of the types that scored relations lead to, on several workers. After a worker's own rows
// come those of all workers, in the order of workers and of their rows:
//
//	rows of this worker | destinations of worker 0 | of worker 1 | …
//
// Before training every worker gives the others the ids of its destinations, and every edge of a scored relation to the
// owner of its source. In a pass rows go to all workers; in training gradients return, and are added in rank order.
type destinations struct {
	s      *Site
	mine   []uint32            // own rows that are destinations
	from   []int               // where those of each worker begin, after the own rows
	places map[uint32][]uint32 // by first id of a type: the row of each vertex
	// numbers are the same in the partition.
	numbers map[uint32][]uint32
	sent    wire.Bytes // before training
}

// phase is what rows are brought for: messages of different ones must not be taken for each other.
type phase uint32

const (
	training phase = iota
	returning
	measuring
	atBest
)

// coflow is the transfer of an epoch.
func (p phase) coflow(epoch int) coflow.ID {
	return coflow.ID{Epoch: uint32(epoch), Batch: 1<<30 + uint32(p), Layer: -1, Type: coflow.Bulk}
}

// place is the row of a destination.
func (d *destinations) place(id uint32) uint32 {
	if d == nil {
		return id
	}
	t := &d.s.Part.Book.Schema.Types[d.s.Part.Book.Schema.TypeOf(id)]
	return d.places[uint32(t.First)][id-uint32(t.First)]
}

// prepareRelations has the workers find the pairs of each, and takes what is held out of the part.
func (s *Site) prepareRelations() (err error) {
	switch err := checkRelations(&s.Opt, s.Part.Book.Schema); {
	case err != nil:
		return err
	case s.Alone:
		return Unplanned("pairs of a relation")
	}
	part := s.Part
	if s.links, err = newRelations(part.Book.Schema, &s.Opt); err != nil {
		return err
	}
	r := s.links
	r.rows = &destinations{s: s, sent: wire.Bytes{}}
	if err := r.rows.find(r); err != nil {
		return err
	}
	if err := r.findInParts(part); err != nil {
		return err
	}
	less := *part
	id := func(v uint32) uint32 { return part.IDs[v] }
	less.In = r.sets.Kept(part.In, id, id)
	if part.DatasetOrder != nil {
		less.DatasetOrder = r.keptOrder(part)
	}
	s.Part = &less
	return nil
}

// keptOrder is the order that the dataset has the rows of a part in, of the edges that are not held out.
func (r *RelationLinks) keptOrder(part *partition.Part) *graph.RowOrder {
	const heldOut = math.MaxUint32
	order, place := &graph.RowOrder{}, []uint32(nil) // of a row's edges among those that are kept
	for v := range uint32(part.Core()) {
		first, end := part.In.Indptr[v], part.In.Indptr[v+1]
		place = place[:0]
		kept := uint32(0)
		for e := first; e < end; e++ {
			at := uint32(heldOut)
			u := part.IDs[part.In.Indices[e]]
			if r.sets.Of(int(part.In.Relations[e]), u, part.IDs[v]) == sample.TrainEdges {
				at = kept
				kept++
			}
			place = append(place, at)
		}
		for e := first; e < end; e++ {
			if at := place[part.DatasetOrder.At(e)]; at != heldOut {
				order.U32 = append(order.U32, at)
			}
		}
	}
	return order
}

// find learns which worker has which destinations.
func (d *destinations) find(r *RelationLinks) error {
	part, leads := d.s.Part, map[int]bool{}
	for _, p := range r.pairs {
		leads[r.schema.Relations[p.relation].Target] = true
	}
	var ids []byte
	for _, run := range part.CoreTypes() {
		for v := run.Lo; v < run.Hi && leads[run.Type]; v++ {
			d.mine = append(d.mine, uint32(v))
			ids = binary.LittleEndian.AppendUint32(ids, part.IDs[v])
		}
	}
	out := make([][]byte, d.s.End.Size())
	for q := range out {
		out[q] = ids
	}
	in, err := d.swap(out, 4*uint64(part.Book.Nodes))
	if err != nil {
		return err
	}
	d.places, d.numbers = map[uint32][]uint32{}, map[uint32][]uint32{}
	for t := range leads {
		typ := &r.schema.Types[t]
		d.places[uint32(typ.First)], d.numbers[uint32(typ.First)] = make([]uint32, typ.Count), make([]uint32, typ.Count)
	}
	at := part.Core()
	for q, b := range in {
		d.from = append(d.from, at)
		numbers := numbersOfTypes(part.Book, q, leads)
		if len(b) != 4*len(numbers) {
			return fmt.Errorf("worker %d has %d destinations, expected %d; do all workers have parts of the same "+
				"partition?", q, len(b)/4, len(numbers))
		}
		for _, number := range numbers {
			id := binary.LittleEndian.Uint32(b)
			b = b[4:]
			if int64(id) >= part.Book.Nodes || !leads[r.schema.TypeOf(id)] {
				return fmt.Errorf("worker %d has vertex %d for a destination, and its type is not one", q, id)
			}
			first := uint32(r.schema.Types[r.schema.TypeOf(id)].First)
			d.places[first][id-first], d.numbers[first][id-first] = uint32(at), number
			at++
		}
	}
	d.from = append(d.from, at)
	return nil
}

// numbersOfTypes are the vertices of some types that a worker has.
func numbersOfTypes(b *partition.Book, worker int, types map[int]bool) (list []uint32) {
	for _, run := range b.CoreRuns(worker) {
		for v := run.Lo; v < run.Hi && types[run.Type]; v++ {
			list = append(list, uint32(b.Offsets[worker])+uint32(v))
		}
	}
	return list
}

// findInParts gives every edge of the relations to the owner of its source.
func (r *RelationLinks) findInParts(part *partition.Part) error {
	d, number := r.rows, map[int]int{}
	for i, p := range r.pairs {
		number[p.relation] = i
	}
	out := make([][]byte, d.s.End.Size())
	for v := range uint32(part.Core()) {
		for e := part.In.Indptr[v]; e < part.In.Indptr[v+1]; e++ {
			i, ok := number[int(part.In.Relations[e])]
			if !ok {
				continue
			}
			owner, row := d.owner(part.In.Indices[e])
			for _, x := range []uint32{uint32(i), row, part.IDs[v]} {
				out[owner] = binary.LittleEndian.AppendUint32(out[owner], x)
			}
		}
	}
	in, err := d.swap(out, 12*uint64(part.Book.Edges))
	if err != nil {
		return err
	}
	arcs := make([][]relationArc, len(r.pairs))
	for q, b := range in {
		for ; len(b) >= 12; b = b[12:] {
			i, row := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
			v := binary.LittleEndian.Uint32(b[8:])
			if int(i) >= len(arcs) || int(row) >= part.Core() || int64(v) >= part.Book.Nodes ||
				r.schema.TypeOf(v) != r.schema.Relations[r.pairs[i].relation].Target {
				return fmt.Errorf("worker %d has an edge from row %d here to vertex %d, of another type",
					q, row, v)
			}
			arcs[i] = append(arcs[i], relationArc{row, part.IDs[row], v})
		}
	}
	for i, p := range r.pairs {
		p.take(r, arcs[i])
		if r.opt.Lists != nil {
			p.list(r.opt.Lists, rowsOf(part))
		}
	}
	if err := d.count(r); err != nil {
		return err
	}
	if err := d.countShared(r); err != nil {
		return err
	}
	if err := d.sumDegrees(r); err != nil {
		return err
	}
	return r.checkPairs()
}

// rowsOf finds the rows of a part's own vertices by id.
func rowsOf(part *partition.Part) func(id uint32) (uint32, bool) {
	rows := make(map[uint32]uint32, part.Core())
	for row, id := range part.IDs[:part.Core()] {
		rows[id] = uint32(row)
	}
	return func(id uint32) (uint32, bool) {
		row, here := rows[id]
		return row, here
	}
}

// sumDegrees has negatives drawn by how many training pairs of all workers lead to each destination.
func (d *destinations) sumDegrees(r *RelationLinks) error {
	for _, p := range r.pairs {
		degrees := p.degrees(r)
		if degrees != nil {
			if err := d.s.Peers.AllReduce(0, 0, degrees); err != nil {
				return err
			}
			d.s.planSums(d.sent, len(degrees))
		}
		p.draws(r, degrees)
	}
	return nil
}

// owner is the worker that has a vertex of the part, and its row there.
func (d *destinations) owner(local uint32) (worker int, row uint32) {
	part := d.s.Part
	if core := uint32(part.Core()); local >= core {
		v := part.Halo[local-core]
		worker = part.Book.Owner(v)
		return worker, v - uint32(part.Book.Offsets[worker])
	}
	return d.s.End.Rank(), local
}

// count learns how many pairs all workers have.
func (d *destinations) count(r *RelationLinks) error {
	n, sets := d.s.End.Size(), len(r.pairs[0].total)
	all := make([]float64, n*len(r.pairs)*sets)
	for i, p := range r.pairs {
		for set := range sets {
			all[(d.s.End.Rank()*len(r.pairs)+i)*sets+set] = float64(len(p.sets[set].row))
		}
	}
	if err := d.s.Peers.AllReduce(0, 0, all); err != nil {
		return err
	}
	d.s.planSums(d.sent, len(all))
	for i, p := range r.pairs {
		for set := range sets {
			for q := range n {
				pairs := int(all[(q*len(r.pairs)+i)*sets+set])
				if p.total[set] += pairs; q < d.s.End.Rank() {
					p.first[set] += pairs
				}
			}
		}
	}
	return nil
}

// countShared learns how many candidates that all pairs share all workers have.
func (d *destinations) countShared(r *RelationLinks) error {
	if r.opt.Lists == nil {
		return nil
	}
	n, p := d.s.End.Size(), r.pairs[0]
	all := make([]float64, n*len(p.lists))
	for set, l := range p.lists {
		if l != nil {
			all[d.s.End.Rank()*len(p.lists)+set] = float64(len(l.shared.row))
		}
	}
	if err := d.s.Peers.AllReduce(0, 0, all); err != nil {
		return err
	}
	d.s.planSums(d.sent, len(all))
	for set, l := range p.lists {
		for q := range n {
			if l == nil {
				break
			}
			shared := int(all[q*len(p.lists)+set])
			if l.total += shared; q < d.s.End.Rank() {
				l.first += shared
			}
		}
		of := r.opt.Lists.Of(set)
		if of != nil && (p.total[set] != of.Len() || l.total != of.Shared.Len()) {
			return fmt.Errorf("workers have %d pairs of %d that are listed, and %d shared candidates of %d: did "+
				"all of them read the same file?", p.total[set], of.Len(), l.total, of.Shared.Len())
		}
	}
	return nil
}

// swap gives every worker its bytes before training, and returns theirs, of at most the given bytes each.
func (d *destinations) swap(out [][]byte, most uint64) ([][]byte, error) {
	n := d.s.End.Size()
	sizes, theirs, in := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for q := range out {
		sizes[q], theirs[q] = binary.LittleEndian.AppendUint64(nil, uint64(len(out[q]))), make([]byte, 8)
		if q != d.s.End.Rank() {
			d.sent.Add(d.class(wire.Topology, q), int64(8+len(out[q])))
		}
	}
	comm := collective.New(d.s.End)
	if err := comm.AllToAll(d.s.Ctx, coflow.Preparing, wire.Topology, sizes, theirs); err != nil {
		return nil, err
	}
	for q, b := range theirs {
		size := binary.LittleEndian.Uint64(b)
		if size > most {
			return nil, fmt.Errorf("worker %d announces %d bytes before training, more than lists of this graph have",
				q, size)
		}
		in[q] = make([]byte, size)
	}
	return in, comm.AllToAll(d.s.Ctx, coflow.Preparing, wire.Topology, out, in)
}

func (d *destinations) class(kind wire.Kind, peer int) wire.Class {
	return wire.Class{Kind: kind, Layer: -1, Link: d.s.End.Link(peer)}
}

// bring returns a worker's own rows and after them those of all destinations. On one worker these are the same.
func (d *destinations) bring(f *Loop, own tensor.Matrix, epoch int, in phase) (tensor.Matrix, error) {
	if d == nil {
		return own, nil
	}
	n, me := d.s.End.Size(), d.s.End.Rank()
	out, got := make([][]byte, n), make([][]byte, n)
	mine := f.Dev.Scratch(own.Type(), len(d.mine), own.Cols)
	f.Dev.GatherRows(mine, own, tensor.Indices(f.Dev, d.mine))
	packed := numbersOf(f.Dev, mine)
	for q := range out {
		if q != me {
			out[q], got[q] = packed, make([]byte, d.rowsOf(q)*own.Cols*f.Dev.Type().Size())
		}
	}
	if err := f.Waiting("rows of destinations", func() error {
		return collective.New(d.s.End).AllToAll(d.s.Ctx, in.coflow(epoch), wire.Activation, out, got)
	}); err != nil {
		return own, err
	}
	all := f.Dev.New(own.Type(), d.from[n], own.Cols)
	f.Dev.Copy(all.Slice(0, own.Rows), own)
	for q := range n {
		to := all.Slice(d.from[q], d.from[q+1])
		switch {
		case to.Rows == 0:
		case q == me:
			f.Dev.Copy(to, mine)
		default:
			f.Dev.Upload(to, numbersIn(got[q], f.Dev.Type().Size()))
		}
	}
	f.Dev.Free(mine)
	return all, nil
}

// reverse returns the gradient of own rows, to which all workers have added what they have for them, and frees dall.
func (d *destinations) reverse(f *Loop, dall tensor.Matrix, own, epoch int) (tensor.Matrix, error) {
	if d == nil {
		return dall, nil
	}
	defer f.Dev.Free(dall)
	n, me := d.s.End.Size(), d.s.End.Rank()
	out, got := make([][]byte, n), make([][]byte, n)
	for q := range out {
		if q != me {
			out[q] = numbersOf(f.Dev, dall.Slice(d.from[q], d.from[q+1]))
			got[q] = make([]byte, len(d.mine)*dall.Cols*f.Dev.Type().Size())
		}
	}
	if err := f.Waiting("gradients of destinations", func() error {
		return collective.New(d.s.End).AllToAll(d.s.Ctx, returning.coflow(epoch), wire.Gradient, out, got)
	}); err != nil {
		return dall, err
	}
	dz := f.Dev.Scratch(dall.Type(), own, dall.Cols)
	f.Dev.Copy(dz, dall.Slice(0, own))
	if len(d.mine) == 0 {
		return dz, nil
	}
	at, theirs := tensor.Indices(f.Dev, d.mine), f.Dev.Scratch(dall.Type(), len(d.mine), dall.Cols)
	for q := range n {
		if q == me {
			f.Dev.ScatterAdd(dz, dall.Slice(d.from[q], d.from[q+1]), at)
			continue
		}
		f.Dev.Upload(theirs, numbersIn(got[q], f.Dev.Type().Size()))
		f.Dev.ScatterAdd(dz, theirs, at)
	}
	f.Dev.Free(theirs)
	return dz, nil
}

// rowsOf is how many destinations a worker has.
func (d *destinations) rowsOf(q int) int { return d.from[q+1] - d.from[q] }

// numbersOf are the numbers of rows as bytes.
func numbersOf(dev tensor.Device, m tensor.Matrix) []byte {
	if m.Rows == 0 {
		return nil
	}
	v := make([]float64, m.Rows*m.Cols)
	dev.Download(v, m)
	b := make([]byte, 0, len(v)*dev.Type().Size())
	for _, x := range v {
		if dev.Type().Size() == 8 {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		} else {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		}
	}
	return b
}

// numbersIn are the numbers in bytes.
func numbersIn(b []byte, size int) []float64 {
	out := make([]float64, len(b)/size)
	for i := range out {
		if size == 8 {
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		} else {
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
	}
	return out
}

// plan adds what pairs of relations send: before training, in an epoch, to measure, and to rank at the best weights.
func (r *RelationLinks) plan(p *wire.Plan, m *nn.Model) {
	d, each := r.rows, int64(m.Config.Out*r.rows.s.Dev.Type().Size())
	p.Prepare.AddAll(d.sent, 1)
	epoch, measure, rank := wire.Bytes{}, wire.Bytes{}, wire.Bytes{}
	rank.AddAll(p.Measure, 1)
	for q := range d.s.End.Size() {
		if q == d.s.End.Rank() {
			continue
		}
		rows := int64(len(d.mine)) * each
		if !r.batches {
			epoch.Add(d.class(wire.Activation, q), rows)
			epoch.Add(d.class(wire.Gradient, q), int64(d.rowsOf(q))*each)
		}
		measure.Add(d.class(wire.Activation, q), rows)
		rank.Add(d.class(wire.Activation, q), rows)
	}
	for _, pairs := range r.pairs {
		for _, set := range []int{sample.ValEdges, sample.TestEdges} {
			switch {
			case r.opt.Has(set) && OfRanks(d.s.Opt.Metric):
				d.s.planSums(measure, pairs.rankNumbers(set))
			case r.opt.Has(set):
				d.s.planSums(measure, 2*pairs.total[set])
			}
		}
		if set := r.ranked(); set != 0 {
			d.s.planSums(rank, 2*pairs.total[set])
			d.s.planSums(rank, pairs.rankNumbers(set))
		}
	}
	p.Measure.AddAll(measure, 1)
	if r.ranked() != 0 && !d.s.MemoryOnly {
		p.OnceMeasured.AddAll(rank, 1)
	}
	rows := p.Epoch
	p.Epoch = func(n int) wire.Bytes {
		out := wire.Bytes{}
		if rows != nil {
			out = rows(n)
		}
		out.AddAll(epoch, 1)
		return out
	}
}
