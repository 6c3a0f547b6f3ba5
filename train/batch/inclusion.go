package batch

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"starling/exchange"
	"starling/sample"
	"starling/wire"
)

// How probable it is that batches of a worker need a vertex is computed before training, by all workers together
// (sample.Access has the formula, and the paper): of one worker after the other, each of them spreads what its own
// vertices pass on to their neighbours, and sends owners the part of their vertices, once per hop.

// computed reports whether the probabilities that batches of seeds need vertices are known: of neighbours that are
// drawn evenly, from seeds that are training vertices.
func (p *Pipeline) computed(seeds Seeds) bool {
	o := &p.Options
	_, expected := seeds.(expecting)
	return expected && p.task == nil && p.guide == nil && o.Sampler == "neighbour" && o.Temporal == "" && !o.Weighted &&
		p.Site.Part.Book.Schema == nil
}

// inclusion is the computation on one worker.
type inclusion struct {
	*Pipeline
	halo  [][]uint32 // by owner, places in the part
	asked [][]uint32 // by worker, own vertices that are in its halo
}

// probabilities score the vertices of others that batches of this worker need most probably, of each owner at most
// some.
func (p *Pipeline) probabilities(seeds expecting, most int) (map[uint32]float64, error) {
	c, err := p.newInclusion()
	if err != nil {
		return nil, err
	}
	part, out := p.Site.Part, map[uint32]float64{}
	first, n := part.Book.Offsets[part.Meta.Part], p.Setup.W.End.Size()
	for rank := range n {
		need := seeds.expect(part.Book, p.training, rank)[first:][:part.Core()]
		for v := range need {
			need[v] /= float32(max(p.all, 1))
		}
		for _, fanout := range p.Options.Fanouts {
			if need, err = c.hop(need, fanout); err != nil {
				return nil, err
			}
		}
		if err := c.tell(rank, need, most, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// newInclusion has workers tell owners which of their vertices they have as halo.
func (p *Pipeline) newInclusion() (*inclusion, error) {
	part, n := p.Site.Part, p.Setup.W.End.Size()
	c := &inclusion{p, make([][]uint32, n), make([][]uint32, n)}
	out := make([][]byte, n)
	for i, v := range part.Halo {
		q := part.Book.Owner(v)
		c.halo[q] = append(c.halo[q], uint32(part.Core()+i))
		out[q] = binary.LittleEndian.AppendUint32(out[q], v-uint32(part.Book.Offsets[q]))
	}
	in, err := p.Setup.Swap(wire.Topology, out)
	if err != nil {
		return nil, err
	}
	for q, b := range in {
		c.asked[q] = exchange.Numbers(b)
		if len(b)%4 != 0 || slices.ContainsFunc(c.asked[q], func(v uint32) bool { return int(v) >= part.Core() }) {
			return nil, fmt.Errorf("worker %d has vertices in its halo that worker %d does not own", q, part.Meta.Part)
		}
	}
	return c, nil
}

// hop is how probable own vertices are needed after one more hop of draws.
func (c *inclusion) hop(need []float32, fanout int) ([]float32, error) {
	part := c.Site.Part
	without := make([]float32, part.Core()+len(part.Halo))
	for v, p := range need {
		without[v] = sample.Without(p)
	}
	sample.Reach(part.In, need, fanout, c.Options.Replace, without)
	out := make([][]byte, len(c.halo))
	for q, list := range c.halo {
		for _, v := range list {
			out[q] = binary.LittleEndian.AppendUint32(out[q], math.Float32bits(without[v]))
		}
	}
	in, err := c.Setup.Swap(wire.Topology, out)
	if err != nil {
		return nil, err
	}
	for q, b := range in {
		if len(b) != 4*len(c.asked[q]) {
			return nil, fmt.Errorf("worker %d tells of %d vertices in %d bytes", q, len(c.asked[q]), len(b))
		}
		for i, bits := range exchange.Numbers(b) {
			without[c.asked[q][i]] += math.Float32frombits(bits)
		}
	}
	next := make([]float32, part.Core())
	for v := range next {
		next[v] = sample.Needed(without[v])
	}
	return next, nil
}

// tell gives a worker the own vertices that its batches need most probably, and takes in what others tell this one.
func (c *inclusion) tell(rank int, need []float32, most int, into map[uint32]float64) error {
	part, me := c.Site.Part, c.Site.Part.Meta.Part
	out := make([][]byte, len(c.halo))
	if rank != me {
		for _, v := range highest(need, most) {
			out[rank] = binary.LittleEndian.AppendUint32(out[rank], v)
			out[rank] = binary.LittleEndian.AppendUint32(out[rank], math.Float32bits(need[v]))
		}
	}
	in, err := c.Setup.Swap(wire.Topology, out)
	if err != nil {
		return err
	}
	for q, b := range in {
		if len(b)%8 != 0 {
			return fmt.Errorf("worker %d tells of probable vertices in %d bytes", q, len(b))
		}
		for at := range slices.Chunk(exchange.Numbers(b), 2) {
			if int64(at[0]) >= part.Book.Size(q) {
				return fmt.Errorf("worker %d tells of vertex %d, and has %d", q, at[0], part.Book.Size(q))
			}
			into[uint32(part.Book.Offsets[q])+at[0]] = float64(math.Float32frombits(at[1]))
		}
	}
	return nil
}

// highest are at most some vertices that are needed at all, the most probable ones.
func highest(need []float32, most int) (list []uint32) {
	for v, p := range need {
		if p > 0 {
			list = append(list, uint32(v))
		}
	}
	if len(list) > most {
		slices.SortFunc(list, func(a, b uint32) int { return cmp.Or(cmp.Compare(need[b], need[a]), cmp.Compare(a, b)) })
		list = list[:most]
	}
	return list
}
