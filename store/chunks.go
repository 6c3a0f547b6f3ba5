package store

import (
	"context"
	"errors"

	"starling/coflow"
	"starling/sample"
)

// Chunks draws batches as Sampler does, to the bit, in chunks of hops that are drawn side by side:
//
//	seeds ──┬▶ hop 1, chunk 1 ─▶ stitch ─┬▶ hop 2, chunk 1 ─▶ stitch ─▶ …
//	branch ─┴▶ hop 1, chunk 2 ─▶ stitch ─┴▶ hop 2, chunk 2 ─▶ stitch ─▶ …
//
// A vertex draws as soon as its row is known: those of a hop that has not ended draw in the next one already. Only
// stitching is in order. So what a chunk is depends on the batch alone, and never on what was there first.
//
// A chunk's Ask, Wait and Take belong to one goroutine, others may be at work on other chunks. All other methods are
// called one at a time.
type Chunks struct {
	*Sampler
	// Least is how many destinations a chunk has at least, where a hop has them.
	Least int

	hops   []chunkedHop
	unused []*Chunk
	all    []*Chunk
	whole  bool // all seed vertices are there
}

// chunkedHop is the chunks of a hop.
type chunkedHop struct {
	asked    int // of the destinations, in chunks
	size     int // of a chunk; 0: not known yet
	all      int // destinations; -1: not known yet
	chunks   []*Chunk
	stitched int // chunks
}

// Chunk is some destinations of a hop. Ask, Wait and Take follow each other, again as long as GoesOn after a Take.
type Chunk struct {
	Hop int
	// Cost is how many neighbours the destinations have.
	Cost     int64
	Vertices []uint32

	first int // its first destination's row
	id    coflow.ID
	query *query
	draws draws
	taken bool
}

const (
	chunksOfHop = 4   // about, of hops with many destinations
	leastChunk  = 256 // destinations; requests for fewer are mostly heads
)

// Chunks makes one, with memory of its own.
func (s *Store) Chunks(fanouts []int, seed uint64, opt Options) *Chunks {
	return &Chunks{Sampler: s.Sampler(fanouts, seed, opt), Least: leastChunk}
}

// Begin begins a batch whose seed vertices Add gives.
func (c *Chunks) Begin(b *sample.Batch, known *Known, epoch, number int) {
	c.Sampler.Begin(b, known, nil, epoch, number)
	c.unused = append(c.unused[:0], c.all...)
	for len(c.hops) < len(c.Fanouts) {
		c.hops = append(c.hops, chunkedHop{})
	}
	for i := range c.hops {
		c.hops[i] = chunkedHop{all: -1, chunks: c.hops[i].chunks[:0]}
	}
	c.whole = false
}

// Add adds seed vertices, none of them twice: a branch, which draws side by side with others. REQUIRES: it is known
// what the batch is drawn by.
func (c *Chunks) Add(branch []uint32) []*Chunk {
	for _, v := range branch {
		_, c.batch.Vertices = c.rows.add(c.batch.Vertices, v)
	}
	if c.known.grow(len(c.batch.Vertices)); len(c.Fanouts) == 0 {
		return nil
	}
	c.hops[0].size = c.chunkSize(len(branch))
	return c.cut(nil, 0, len(c.batch.Vertices), true)
}

// Complete says that there are no more seed vertices.
func (c *Chunks) Complete() []*Chunk {
	n := len(c.batch.Vertices)
	c.batch.FirstSeeds(n)
	if c.whole = true; len(c.hops) == 0 {
		return nil
	}
	c.hops[0].all = n
	return c.ready()
}

// Next is the chunk that is stitched next, if it was taken; nil: there is none, or it was not.
func (c *Chunks) Next() *Chunk {
	if !c.whole { // rows of seed vertices come first
		return nil
	}
	for h := range c.hops {
		p := &c.hops[h]
		if p.stitched < len(p.chunks) {
			if next := p.chunks[p.stitched]; next.taken {
				return next
			}
			return nil
		}
		if !p.ended() {
			return nil
		}
	}
	return nil
}

// ended reports whether all destinations were stitched.
func (p *chunkedHop) ended() bool {
	return p.all >= 0 && p.asked == p.all && p.stitched == len(p.chunks)
}

// Ended is how many hops have.
func (c *Chunks) Ended() (n int) {
	for n < len(c.hops) && c.hops[n].ended() {
		n++
	}
	return n
}

// Done reports whether all hops have ended.
func (c *Chunks) Done() bool {
	return c.whole && c.Ended() == len(c.hops)
}

// Taken says that a chunk's draws were taken.
func (c *Chunks) Taken(x *Chunk) { x.taken = true }

// Stitch adds what a chunk, which is next, drew to the block of its hop, and returns the chunks that can be asked now.
func (c *Chunks) Stitch(x *Chunk) []*Chunk {
	p := &c.hops[x.Hop]
	c.Sampler.stitch(&x.draws, x.Hop, x.first, x.Vertices)
	p.stitched++
	return c.ready()
}

// ready ends hops whose destinations were all stitched, and cuts chunks of rows that are known.
func (c *Chunks) ready() (list []*Chunk) {
	for h := range c.hops {
		p := &c.hops[h]
		if h > 0 && p.all < 0 && c.hops[h-1].ended() {
			c.end(h-1, c.hops[h-1].all)
			p.all = len(c.batch.Vertices)
		}
		if h > 0 && p.size == 0 && c.hops[h-1].all >= 0 {
			p.size = c.chunkSize(c.bound(h))
		}
		known := p.all
		if known < 0 && c.draws.s.Book.Schema == nil { // types are put in order when a hop ends
			known = len(c.batch.Vertices)
		}
		if h > 0 && c.whole && p.size > 0 && known >= 0 {
			list = c.cut(list, h, known, p.all >= 0)
		}
	}
	if len(c.hops) > 0 && c.Done() {
		c.end(len(c.hops)-1, c.hops[len(c.hops)-1].all)
	}
	return list
}

// bound is about the most destinations that a hop has, from how many the hop before has.
func (c *Chunks) bound(hop int) int {
	before, in := c.hops[hop-1].all, c.draws.s.Part.In
	fanout := c.Fanouts[hop-1]
	if fanout == sample.All {
		fanout = int(in.Edges() / int64(max(1, in.Nodes())))
	}
	return int(min(int64(before)*int64(1+fanout), c.draws.s.Book.Nodes))
}

func (c *Chunks) chunkSize(destinations int) int {
	return max(c.Least, (destinations+chunksOfHop-1)/chunksOfHop)
}

// cut makes chunks of a hop's destinations up to a row; rest: of a few that remain too.
func (c *Chunks) cut(list []*Chunk, hop, known int, rest bool) []*Chunk {
	p := &c.hops[hop]
	for left := known - p.asked; left >= p.size || rest && left > 0; left = known - p.asked {
		n := min(left, p.size)
		x := c.chunk()
		x.Hop, x.first, x.taken = hop, p.asked, false
		x.Vertices = c.batch.Vertices[p.asked : p.asked+n : p.asked+n]
		x.id, x.query = c.query(hop)
		if by := x.query.visits; by != nil {
			x.Cost = by.walksOf(n)
		} else {
			x.Cost = neighbours(c.draws.s, x.Vertices, c.known.NoLoops[x.first:])
		}
		p.asked += n
		p.chunks, list = append(p.chunks, x), append(list, x)
	}
	return list
}

func (c *Chunks) chunk() *Chunk {
	if n := len(c.unused); n > 0 {
		x := c.unused[n-1]
		c.unused = c.unused[:n-1]
		return x
	}
	x := &Chunk{draws: newDraws(c.draws.s, c.draws.opt)}
	c.all = append(c.all, x)
	return x
}

// neighbours is how many in-edges some vertices have together. Of remote ones it is what was learned of them when they
// were found, if anything, else the mean here.
func neighbours(s *Store, vertices []uint32, learned []float64) int64 {
	mean, sum := 1.0, 0.0
	if n := s.Part.Core(); n > 0 {
		mean = max(1, float64(s.Part.In.Edges())/float64(n))
	}
	for i, v := range vertices {
		switch o := s.here[s.Book.Owner(v)]; {
		case o != nil:
			sum += float64(len(o.part.In.Neighbors(v - o.first)))
		case i < len(learned) && learned[i] > 0 && !s.Book.Weighted:
			sum += learned[i]
		default:
			sum += mean
		}
	}
	return int64(sum)
}

// Ask has the owners of a chunk's destinations draw: remote ones are asked first, and the others draw now.
// Of walks that go on it has them take another step.
func (x *Chunk) Ask() error {
	if x.draws.goesOn() {
		return x.draws.goOn()
	}
	return x.draws.ask(x.id, x.Vertices, x.query)
}

// GoesOn reports whether walks go on: Ask, Wait and Take follow once more.
func (x *Chunk) GoesOn() bool { return x.draws.goesOn() }

// Waits reports whether any owner was asked.
func (x *Chunk) Waits() bool {
	if x.draws.goesOn() {
		return len(x.draws.walks.f.calls.list) > 0
	}
	return len(x.draws.calls.list) > 0
}

// Wait waits for the replies of remote owners.
func (x *Chunk) Wait(ctx context.Context) error { return x.draws.wait(ctx) }

// Take reads these.
func (x *Chunk) Take() error { return x.draws.take() }

// Sample draws a whole batch of some branches of seed vertices, one chunk after the other. It sends what chunks side by
// side send.
func (c *Chunks) Sample(ctx context.Context, branches ...[]uint32) error {
	var list []*Chunk
	for _, b := range branches {
		list = append(list, c.Add(b)...)
	}
	for list = append(list, c.Complete()...); len(list) > 0; list = list[1:] {
		x := list[0]
		if err := errors.Join(x.Ask(), x.draws.waitAll(ctx)); err != nil {
			return err
		}
		if err := x.Take(); err != nil {
			return err
		}
		c.Taken(x)
		for next := c.Next(); next != nil; next = c.Next() {
			list = append(list, c.Stitch(next)...)
		}
	}
	return nil
}

// Final is how many rows of the batch will not move any more.
func (c *Chunks) Final() int {
	final := len(c.batch.Vertices)
	if c.draws.s.Book.Schema == nil || !c.whole || c.Done() {
		return final
	}
	for h := range c.hops {
		if n := c.hops[h].all; n >= 0 {
			final = n
		}
	}
	return final
}

// Bytes is about what the chunks' draws hold.
func (c *Chunks) Bytes() int64 { return bytesOfChunks(c.all) }

// Bytes is about what they hold.
func (m *SubgraphSampler) Bytes() int64 { return bytesOfChunks(m.chunks) }

func bytesOfChunks(all []*Chunk) (n int64) {
	for _, x := range all {
		for i := range x.draws.parts {
			d := &x.draws.parts[i]
			n += 8*int64(cap(d.Indptr)+cap(d.all)+cap(d.noLoops)) + 4*int64(cap(d.Indices)+cap(d.Places)+cap(d.Weights)+
				cap(d.number)+cap(d.id)+cap(d.features)) + 12*int64(len(d.seen.entries))
		}
	}
	return n
}

// Drawn is what was sent and received, by owner, for the edges drawn since it was last called.
func (c *Chunks) Drawn() []Traffic { return drawnBy(&c.draws, c.all) }

// Traffic is that, and what pulling the rows of a batch will take.
func (c *Chunks) Traffic(b *sample.Batch) []Traffic {
	out := c.Drawn()
	c.draws.s.AddFeatures(out, b.Vertices)
	return out
}
