package batch

import (
	"context"
	"slices"
	"sync"

	"starling/sample"
	"starling/store"
)

// drawnFirst are the first batches of a run, which are drawn before training begins to know what they need. Training
// takes those that there is memory for as they are, so that they are drawn once.
type drawnFirst struct {
	list []*drawnBatch // until the run is planned
	mu   struct {
		sync.Mutex
		kept map[[2]int]*drawnBatch // by epoch and number, until training takes them
	}
	mean []store.Traffic // of batches that were drawn as training draws them, by owner
}

// drawnBatch is a batch as it was drawn, or only what the run is planned by.
type drawnBatch struct {
	batch  sample.Batch
	known  store.Known
	any    bool // some worker has a seed vertex of it
	number [2]int
	took   []store.Traffic // to draw it, by owner
	early  bool            // before in-edges were kept that training draws from
	needs  []uint32        // vertices whose rows it needs, each once
	bytes  int64           // that it took as it was drawn
	beside Beside          // what was drawn beside blocks; nil: nothing
}

// Beside is what some samplers draw of a batch beside blocks.
type Beside interface {
	// Drawn is about what it takes, with what is prepared of it.
	Drawn() int64
	// Thin leaves what says what a batch sends.
	Thin()
}

// BesideSampler is a sampler of batches that are more than blocks.
type BesideSampler interface {
	Sampler
	// Beside is what was drawn beside the last batch.
	Beside() Beside
	// Take is the same, which is the caller's from now on.
	Take() Beside
}

// drawFirst draws at least some batches of a run, and as many as most that fit the memory, which is a function of the
// first batch. After some keep is called, which may have in-edges kept by what was counted of their draws.
func (p *Pipeline) drawFirst(seeds Seeds, least, most int, memory func(first *drawnBatch) int64, some int,
	keep func(list []*drawnBatch) error) (*drawnFirst, error) {
	d, m := &drawnFirst{}, p.NewSampler(seeds)
	d.mu.kept = map[[2]int]*drawnBatch{}
	fit := fitting{p: p}
	if some > 0 {
		p.Store.CountDraws()
	}
	for k := range most {
		if k == some && k > 0 {
			if err := d.counted(p, keep); err != nil {
				return nil, err
			}
		}
		x, err := drawOne(p, m, k/p.all, k%p.all)
		if err != nil {
			return nil, err
		}
		if d.list = append(d.list, x); k == 0 {
			if err := fit.begin(memory(x), x.bytes/2); err != nil {
				return nil, err
			}
		}
		if fit.add(x.bytes / 2) { // nothing is prepared
			d.mu.kept[x.number] = x
			continue
		}
		x.thin()
		if k+1 >= least {
			break
		}
	}
	return d, nil
}

// counted ends the batches by which it is known which in-edges to keep.
func (d *drawnFirst) counted(p *Pipeline, keep func(list []*drawnBatch) error) error {
	if err := keep(d.list); err != nil {
		return err
	}
	vertices, _ := p.Store.KeptEdges()
	none, err := p.least(bit(vertices == 0)) // where batches are drawn together, all workers draw the same again
	for _, x := range d.list {
		x.early = none == 0
	}
	return err
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// least is a worker's number, or the least of all workers' where they draw batches together.
func (p *Pipeline) least(n int) (int, error) {
	if !p.DrawnTogether {
		return n, nil
	}
	all, err := p.Setup.Share(float64(n))
	for _, v := range all {
		n = min(n, int(v[0]))
	}
	return n, err
}

// fitting says which batches there is memory for: the first. Workers that draw together have as many, by the bytes of
// the first batch.
type fitting struct {
	p          *Pipeline
	held, room int64
	left       int
}

func (f *fitting) begin(room, first int64) (err error) {
	f.room = room
	f.left, err = f.p.least(int(room / max(1, first)))
	return err
}

// add reports whether a batch fits that takes some bytes.
func (f *fitting) add(bytes int64) bool {
	f.held += bytes
	f.left--
	if f.p.DrawnTogether {
		return f.left >= 0
	}
	return f.held <= f.room
}

// drawOne draws a batch, with memory of its own.
func drawOne(p *Pipeline, m Sampler, epoch, number int) (x *drawnBatch, err error) {
	x = &drawnBatch{number: [2]int{epoch, number}}
	if x.any, err = m.Fill(p.Site.Ctx, &x.batch, &x.known, epoch, number); err != nil {
		return nil, err
	}
	x.took, x.bytes = m.Drawn(), drawnBytes(&x.batch)
	if x.needs = x.batch.Vertices; x.batch.Temporal {
		x.needs, _ = x.batch.Distinct(nil, nil)
	}
	if s, ok := m.(BesideSampler); ok {
		x.beside = s.Take()
		x.bytes += x.beside.Drawn()
	}
	return x, nil
}

// thin leaves a batch's vertices and the sizes of its blocks.
func (x *drawnBatch) thin() {
	b := sample.Batch{Epoch: x.number[0], Number: x.number[1], Vertices: x.batch.Vertices, Temporal: x.batch.Temporal}
	for _, block := range x.batch.Blocks {
		b.Blocks = append(b.Blocks, sample.Block{Dst: block.Dst, Src: block.Src})
	}
	if x.batch, x.known = b, (store.Known{}); x.beside != nil {
		x.beside.Thin()
	}
}

// needs are the vertices whose rows the batches need.
func (d *drawnFirst) needs() (lists [][]uint32) {
	for _, x := range d.list {
		lists = append(lists, x.needs)
	}
	return lists
}

// keep leaves the first n batches for training; others are drawn again.
func (d *drawnFirst) keep(n int) {
	for k, x := range d.list {
		if k >= n {
			delete(d.mu.kept, x.number)
		}
	}
}

// planned gives f batches that say what an epoch costs, as training draws them: some that are not the last of an epoch,
// and one that is.
func (d *drawnFirst) planned(p *Pipeline,
	f func(m Sampler, b *sample.Batch, known *store.Known, any bool)) (err error) {
	var list []*drawnBatch
	var last *drawnBatch
	for _, x := range d.list {
		switch {
		case x.early:
		case x.number[1] == p.all-1:
			last = x
		case len(list) < p.all-1:
			list = append(list, x)
		}
	}
	d.list = nil
	if last == nil {
		if last, err = drawOne(p, p.Sampler(), 0, p.all-1); err != nil {
			return err
		}
	}
	d.average(list, last)
	for _, x := range append(list, last) {
		f(drawnSampler{p.Store, x}, &x.batch, &x.known, x.any)
	}
	return nil
}

// average is what a batch takes to be drawn, about.
func (d *drawnFirst) average(list []*drawnBatch, last *drawnBatch) {
	if len(list) == 0 {
		list = append(list, last)
	}
	d.mean = make([]store.Traffic, len(last.took))
	for q := range d.mean {
		t := &d.mean[q]
		for _, x := range list {
			t.Add(x.took[q])
		}
		t.Requests, t.Edges = t.Requests/int64(len(list)), t.Edges/int64(len(list))
	}
}

// took is what an epoch's plan has for the batches that training takes as they were drawn, by owner.
func (d *drawnFirst) took(owners int) []store.Traffic {
	sum := make([]store.Traffic, owners)
	for _, x := range d.mu.kept {
		took := x.took
		if x.early {
			took = d.mean
		}
		for q, t := range took {
			sum[q].Add(t)
		}
	}
	return sum
}

// take moves a batch to b and known, if it was drawn; nil: it was not.
func (d *drawnFirst) take(b *sample.Batch, known *store.Known, epoch, number int) *drawnBatch {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.mu.kept[[2]int{epoch, number}]
	if x != nil {
		delete(d.mu.kept, x.number)
		*b, *known = x.batch, x.known
	}
	return x
}

// drawnSampler is the sampler of a batch that was drawn, as plans ask it.
type drawnSampler struct {
	s *store.Store
	x *drawnBatch
}

func (d drawnSampler) Fill(context.Context, *sample.Batch, *store.Known, int, int) (bool, error) {
	return d.x.any, nil
}

func (d drawnSampler) Drawn() []store.Traffic { return slices.Clone(d.x.took) }

func (d drawnSampler) Traffic(*sample.Batch) []store.Traffic {
	t := d.Drawn()
	d.s.AddFeatures(t, d.x.needs)
	return t
}

func (d drawnSampler) Beside() Beside { return d.x.beside }
func (d drawnSampler) Take() Beside   { return d.x.beside }

// EachKept gives f what was drawn beside the blocks of each batch that training takes as it was drawn.
func (p *Pipeline) EachKept(f func(x Beside)) {
	if p.ahead == nil {
		return
	}
	for _, x := range p.ahead.drawn.mu.kept {
		f(x.beside)
	}
}
