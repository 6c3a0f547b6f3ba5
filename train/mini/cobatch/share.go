package cobatch

import (
	"slices"

	"starling/sample"
	"starling/store"
	"starling/train/batch"
)

// A server's batch is computed by all its workers together, each vertex by one of them: its owner
// where that is a worker of the server, else the worker that stands at the owner's place here.
// A worker's share is its vertices, first the seeds, then those of one hop after the other, and for
// each block of the batch the edges into its own destinations:
//
//	rows of a share's block    own vertices ─ rows of the server's other workers, by worker
//	                           └ destinations come first among them
//
// So one structure serves full batches and sampled ones: the destinations of a block are the mask of
// its layer (one-hop graph masking, GraNNDIS §6).

// server is the workers first to last-1, of which me is one.
type server struct {
	first, last, me int
	workers         int                // of all servers
	owner           func(v uint32) int // rank
}

// computer is the worker that computes a vertex for the server.
func (s *server) computer(v uint32) int {
	q := s.owner(v)
	if q >= s.first && q < s.last {
		return q
	}
	return s.first + q%(s.last-s.first)
}

// shareBlock is a worker's share of a block of its server's batch.
type shareBlock struct {
	*batch.Batch // of one block
	local        int
	// Rows of the server's other workers after the local ones, and local rows that they need, both
	// by rank: from ptr[q] to ptr[q+1] are worker q's.
	haloPtr []int64
	send    []uint32
	sendPtr []int64
}

// share is a worker's share of its server's batch. Its memory is reused.
type share struct {
	blocks []*shareBlock
	input  int // rows of the server's whole batch
}

// reset makes place for some blocks, whose batches are on a host.
func (s *share) reset(blocks int, host *batch.Host) {
	for len(s.blocks) < blocks {
		s.blocks = append(s.blocks, &shareBlock{Batch: batch.NewBatch(host)})
	}
	s.blocks = s.blocks[:blocks]
	for _, x := range s.blocks {
		x.Host = host
		x.send, x.sendPtr, x.haloPtr = x.send[:0], append(x.sendPtr[:0], 0), append(x.haloPtr[:0], 0)
		x.Reset(0, 0, 1)
		k := &x.Pulled.Known
		k.IDs, k.NoLoops, k.All = k.IDs[:0], k.NoLoops[:0], k.All[:0]
		if len(k.EdgeFeatures) == 0 {
			k.EdgeFeatures = [][]float32{nil}
		}
		k.EdgeFeatures[0] = k.EdgeFeatures[0][:0]
	}
}

// takeShare is a share, for which there is another.
func takeShare(s **share) *share {
	taken := *s
	*s = &share{}
	return taken
}

// on moves blocks that were drawn to a host.
func (s *share) on(host *batch.Host) {
	for _, x := range s.blocks {
		x.Host = host
	}
}

// Drawn is about what blocks take: their vertices, and edges both ways and divided.
func (s *share) Drawn() (n int64) {
	for _, x := range s.blocks {
		n += 24*int64(len(x.Vertices)) + 16*int64(x.Blocks[0].Dst) + 24*int64(len(x.Blocks[0].Indices))
		n += 4 * int64(len(x.send))
	}
	return n
}

// Thin leaves the sizes of blocks, and how many rows they exchange.
func (s *share) Thin() {
	for _, x := range s.blocks {
		y := x.Blocks[0]
		*x = shareBlock{Batch: &batch.Batch{}, local: x.local, haloPtr: x.haloPtr, sendPtr: x.sendPtr}
		x.Blocks = []sample.Block{{Dst: y.Dst, Src: y.Src}}
	}
}

// Outputs are the own rows of the last layer.
func (s *share) Outputs() int { return s.blocks[len(s.blocks)-1].Blocks[0].Dst }

// splitter takes a worker's share out of a whole batch of its server. It is a pure function of the
// batch, so that workers with the same batch know what the others need. Its memory is reused.
type splitter struct {
	who   []int32 // computes a row
	local []int32 // the row among those of its worker
	need  map[uint64]bool
	lists [][]uint32 // rows of each worker that this one needs; after those, rows it sends
	place map[uint32]uint32
	mine  []uint32
}

// split fills own, known and to with the worker's share of the batch whole.
func (p *splitter) split(at *server, whole *sample.Batch, of *store.Known, own *sample.Batch, known *store.Known,
	to *share, edgeDim int) {
	p.divide(at, whole.Vertices)
	p.take(at, whole, of, own, known)
	to.input = len(whole.Vertices)
	for l := range whole.Blocks {
		p.block(at, &whole.Blocks[l], l, of, to.blocks[l], edgeDim)
	}
}

// divide numbers the rows of every worker.
func (p *splitter) divide(at *server, vertices []uint32) {
	count := make([]int32, at.workers)
	p.who, p.local, p.mine = p.who[:0], p.local[:0], p.mine[:0]
	for row, v := range vertices {
		q := at.computer(v)
		p.who, p.local = append(p.who, int32(q)), append(p.local, count[q])
		count[q]++
		if q == at.me {
			p.mine = append(p.mine, uint32(row))
		}
	}
}

// take copies what is known of the worker's vertices, and its seeds.
func (p *splitter) take(at *server, whole *sample.Batch, of *store.Known, own *sample.Batch, known *store.Known) {
	own.Reset(whole.Epoch, whole.Number, 0)
	own.Scale = whole.Scale
	known.IDs, known.NoLoops = known.IDs[:0], known.NoLoops[:0]
	for _, row := range p.mine {
		own.Vertices = append(own.Vertices, whole.Vertices[row])
		known.IDs, known.NoLoops = append(known.IDs, of.IDs[row]), append(known.NoLoops, of.NoLoops[row])
	}
	for i, row := range whole.Seeds {
		if int(p.who[row]) != at.me {
			continue
		}
		own.Seeds = append(own.Seeds, uint32(p.local[row]))
		if len(whole.SeedWeights) > 0 {
			own.SeedWeights = append(own.SeedWeights, whole.SeedWeights[i])
		}
	}
}

// below is how many of the worker's rows are among the first n.
func (p *splitter) below(n int) int {
	i, _ := slices.BinarySearch(p.mine, uint32(n))
	return i
}

// block makes the worker's share of a block.
func (p *splitter) block(at *server, from *sample.Block, layer int, of *store.Known, to *shareBlock, edgeDim int) {
	x, known := &to.Blocks[0], &to.Pulled.Known
	x.Dst, to.local = p.below(from.Dst), p.below(from.Src)
	p.lists = p.needs(at, from)
	for q := range at.workers {
		to.haloPtr = append(to.haloPtr, to.haloPtr[q]+int64(len(p.lists[q])))
		for _, row := range p.lists[at.workers+q] {
			to.send = append(to.send, uint32(p.local[row]))
		}
		to.sendPtr = append(to.sendPtr, int64(len(to.send)))
	}
	p.rows(at, to, of)
	for _, row := range p.mine[:x.Dst] {
		known.All = append(known.All, of.All[row])
		lo, hi := from.Indptr[row], from.Indptr[row+1]
		for e := lo; e < hi; e++ {
			x.Indices = append(x.Indices, p.rowOf(at, from.Indices[e]))
		}
		if len(from.Weights) > 0 {
			x.Weights = append(x.Weights, from.Weights[lo:hi]...)
		}
		if len(from.Relations) > 0 {
			x.Relations = append(x.Relations, from.Relations[lo:hi]...)
		}
		if len(from.RowWeights) > 0 {
			x.RowWeights = append(x.RowWeights, from.RowWeights[row])
		}
		if edgeDim > 0 {
			known.EdgeFeatures[0] = append(known.EdgeFeatures[0],
				of.EdgeFeatures[layer][int(lo)*edgeDim:int(hi)*edgeDim]...)
		}
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	}
	x.Src = len(to.Vertices)
}

// needs lists the rows that this worker needs of each, and after those the rows that each needs of
// it, ascending.
func (p *splitter) needs(at *server, from *sample.Block) [][]uint32 {
	lists := p.lists
	for len(lists) < 2*at.workers {
		lists = append(lists, nil)
	}
	for q := range lists {
		lists[q] = lists[q][:0]
	}
	if p.need == nil {
		p.need = map[uint64]bool{}
	}
	clear(p.need)
	for i := range from.Dst {
		to := int(p.who[i])
		for _, u := range from.Indices[from.Indptr[i]:from.Indptr[i+1]] {
			by := int(p.who[u])
			list := by
			switch {
			case to == by || to != at.me && by != at.me:
				continue
			case to != at.me:
				list = at.workers + to
			}
			if key := uint64(list)<<32 | uint64(u); !p.need[key] {
				p.need[key] = true
				lists[list] = append(lists[list], u)
			}
		}
	}
	for q := range lists {
		slices.Sort(lists[q])
	}
	return lists
}

// rows lists the vertices of a block's rows: the local ones, and those that come from others.
func (p *splitter) rows(at *server, to *shareBlock, of *store.Known) {
	if p.place == nil {
		p.place = map[uint32]uint32{}
	}
	clear(p.place)
	known := &to.Pulled.Known
	add := func(row uint32) {
		to.Vertices = append(to.Vertices, row)
		known.IDs, known.NoLoops = append(known.IDs, of.IDs[row]), append(known.NoLoops, of.NoLoops[row])
	}
	for _, row := range p.mine[:to.local] {
		add(row)
	}
	for q := range at.workers {
		for _, row := range p.lists[q] {
			p.place[row] = uint32(len(to.Vertices))
			add(row)
		}
	}
}

// pull makes the rows that the first block needs of other workers own vertices, whose features are pulled.
func (p *splitter) pull(whole *sample.Batch, of *store.Known, own *sample.Batch, known *store.Known, to *shareBlock) {
	for _, row := range to.Vertices[to.local:] {
		own.Vertices = append(own.Vertices, whole.Vertices[row])
		known.IDs, known.NoLoops = append(known.IDs, of.IDs[row]), append(known.NoLoops, of.NoLoops[row])
	}
	to.local, to.send = len(to.Vertices), to.send[:0]
	clear(to.haloPtr)
	clear(to.sendPtr)
}

// rowOf is a row of the whole batch in the block at hand.
func (p *splitter) rowOf(at *server, row uint32) uint32 {
	if int(p.who[row]) == at.me {
		return uint32(p.local[row])
	}
	return p.place[row]
}
