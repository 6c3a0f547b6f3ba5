package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"starling/cost"
	"starling/graph"
	"starling/sample"
	"starling/setup"
	"starling/spec"
	"starling/tensor/cpu/simd"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// What a cache of rows saves is computed from how probable it is that batches need a vertex (sample.Access), not
// drawn: the run chooses by up to batch.CountedBatches batches, which for every policy would take longer than all
// else of a plan. Batches without a cache are drawn, and what they send is multiplied by the share that is left.

// predicted reports whether what a candidate's cache saves is computed.
func (p *planner) predicted(s *spec.Spec, d *train.Descriptor) bool {
	return s.Mode == string(train.MiniBatch) && s.Batches.Sampler == "neighbour" && !s.LearnsPairs() &&
		s.Embeddings.Dim == 0 && d.Option("cache") != nil && p.open[0].Features != nil &&
		p.open[0].Features.Kind() != graph.Sparse
}

// cache is what the cache of a candidate saves; nil: it has no cache.
func (p *planner) cache(s *spec.Spec, c train.Choice, steps int) (*cached, error) {
	policy, roots := c.Setting("cache"), c.Setting("roots")
	if policy == "auto" {
		policy = batch.Probability
	}
	if policy == "none" || max(p.Cluster.Servers, 1) == 1 {
		return nil, nil
	}
	budget, err := batch.CacheBytes(c.Setting("cache_budget"), p.featureBytes()*p.parts.Book.Nodes)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(policy, roots, budget)
	if p.caches[key] == nil {
		access, err := p.access(s, roots, steps)
		if err != nil {
			return nil, err
		}
		p.caches[key] = p.newCached(access, policy, budget)
	}
	return p.caches[key], nil
}

// access is how probable it is that the workers' batches need vertices.
func (p *planner) access(s *spec.Spec, roots string, steps int) ([]*sample.Access, error) {
	if p.accesses[roots] != nil {
		return p.accesses[roots], nil
	}
	one := *s
	one.ForData(&p.parts.Meta, simd.Best().String())
	batches, err := one.BatchSettings(&p.parts.Meta)
	if err != nil {
		return nil, err
	}
	list := make([]*sample.Access, p.Cluster.Workers)
	var all sync.WaitGroup
	for r := range list {
		all.Go(func() {
			list[r] = sample.NewAccess(p.open, p.seeds(r, roots, steps), batches.Fanouts, batches.Replace,
				min(steps, batch.CountedBatches))
		})
	}
	all.Wait()
	p.accesses[roots] = list
	return list, nil
}

// seeds are the probabilities that a batch of a worker has vertices as seeds.
func (p *planner) seeds(rank int, roots string, steps int) []float32 {
	book := p.parts.Book
	var training []uint32
	for q, part := range p.open {
		for _, v := range part.Splits.Train {
			training = append(training, uint32(book.Offsets[q])+v)
		}
	}
	out := batch.ExpectedSeeds(roots, book, training, rank)
	for v := range out {
		out[v] /= float32(max(steps, 1))
	}
	return out
}

// newCached is what caches of a policy save, each of budget bytes.
func (p *planner) newCached(access []*sample.Access, policy string, budget int64) *cached {
	n := len(p.open)
	c := &cached{left: make([]float64, n), saved: make([]float64, n), rows: make([]int64, n), width: p.featureBytes()}
	asked := make([]float64, n)
	most := budget / max(c.width, 1)
	for r, a := range access {
		kept, rows := p.keptOf(r, a, policy, most)
		c.rows[r] = rows
		for q := range n {
			if setup.ServerOf(&p.Spec, q) == setup.ServerOf(&p.Spec, r) { // read in place
				continue
			}
			for v := p.parts.Book.Offsets[q]; v < p.parts.Book.Offsets[q+1]; v++ {
				need := float64(a.Batch[v])
				asked[q] += need
				c.left[q] += need * (1 - float64(kept[v]))
				c.saved[r] += need * float64(kept[v])
			}
		}
	}
	for q := range c.left {
		if asked[q] > 0 {
			c.left[q] /= asked[q]
		}
	}
	return c
}

// keptOf is how probable it is that a worker's cache has a vertex that a batch needs, and how many rows it has memory
// for.
func (p *planner) keptOf(rank int, a *sample.Access, policy string, most int64) ([]float32, int64) {
	if policy != batch.Belady {
		return p.keptRows(rank, a, policy, most)
	}
	var list []uint32
	needed := 0.0 // by a batch
	for q := range p.open {
		for v := p.parts.Book.Offsets[q]; v < p.parts.Book.Offsets[q+1]; v++ {
			needed += float64(a.Batch[v])
			if a.Batch[v] > 0 && setup.ServerOf(&p.Spec, q) != setup.ServerOf(&p.Spec, rank) {
				list = append(list, uint32(v))
			}
		}
	}
	most += int64(needed * float64(batch.FreedBatches(max(p.Spec.Machine.Cores(), 1))))
	return keptAhead(a.Batch, list, most), min(most, int64(len(list)))
}

// keptAhead is how probable it is that a cache of some rows has those that a batch needs, where what is needed last
// leaves first. A row stays if it is needed again within h batches: one that batches need with probability p is then
// there with 1-(1-p)^h, and takes place for a share of the time, p·Σ_{d≤h} d·p(1-p)^(d-1). The cache is full at the
// largest h that fits.
func keptAhead(need []float32, list []uint32, most int64) []float32 {
	fits := func(h float64) bool {
		place := 0.0
		for _, v := range list {
			p := float64(need[v])
			gone := math.Pow(1-p, h)
			place += 1 - gone - h*p*gone
		}
		return place <= float64(most)
	}
	low, high := 0.0, 1.0
	for high < mostAhead && fits(high) {
		low, high = high, 2*high
	}
	for range 20 {
		if middle := (low + high) / 2; fits(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	kept := make([]float32, len(need))
	for _, v := range list {
		kept[v] = float32(1 - math.Pow(1-float64(need[v]), low))
	}
	return kept
}

// mostAhead is more batches than any row waits for.
const mostAhead = 1 << 20

// keptRows is how probable it is that a worker's cache has a vertex, and how many rows it has memory for.
func (p *planner) keptRows(rank int, a *sample.Access, policy string, most int64) (kept []float32, rows int64) {
	kept = make([]float32, len(a.Batch))
	var list []uint32
	score, chance := a.Batch, func(v uint32) float32 { return a.Counts[v] }
	switch policy {
	case batch.Probability:
		chance = func(uint32) float32 { return 1 }
	case "degree":
		part := p.open[rank]
		score, chance = make([]float32, len(a.Batch)), func(uint32) float32 { return 1 }
		for i, v := range part.Halo {
			score[v] = float32(part.Degrees[part.Core()+i])
		}
	}
	for q := range p.open {
		for v := p.parts.Book.Offsets[q]; v < p.parts.Book.Offsets[q+1] && setup.ServerOf(&p.Spec, q) != setup.ServerOf(&p.Spec, rank); v++ {
			if score[v] > 0 {
				list = append(list, uint32(v))
			}
		}
	}
	sum := 0.0
	for _, v := range list {
		sum += float64(chance(v))
	}
	if sum > float64(most) { // those that are needed most often
		slices.SortFunc(list, func(a, b uint32) int { return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b)) })
	}
	sum = 0
	for _, v := range list {
		if sum += float64(chance(v)); sum > float64(most) {
			break
		}
		kept[v] = chance(v)
	}
	if policy == "s3fifo" { // has its memory from the beginning
		return kept, most
	}
	return kept, min(int64(sum), most)
}

// featureBytes is the size of a row of features.
func (p *planner) featureBytes() int64 {
	f := p.open[0].Features
	if f.Kind() == graph.BFloat16 {
		return 2 * int64(f.Cols)
	}
	return 4 * int64(f.Cols)
}

// applyTo makes a worker's demands those with a cache.
func (c *cached) applyTo(d *cost.Demand, rank int) {
	if c == nil {
		return
	}
	sent := wire.Bytes{}
	for class, bytes := range d.Sent {
		switch {
		case class.Link != wire.BetweenServers:
		case class.Kind == wire.Feature:
			bytes = int64(float64(bytes) * c.left[rank])
		case class.Kind == wire.Topology: // the numbers of rows that are not asked for
			bytes = max(bytes/8, bytes-int64(4*c.saved[rank]*float64(d.Steps)))
		}
		sent.Add(class, bytes)
	}
	d.Sent = sent
	d.Memory += setup.WithGarbage(c.rows[rank] * c.width)
}
