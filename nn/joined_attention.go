package nn

import "starling/tensor"

// joinedAttention is attention over the edges of all relations of a vertex, with one softmax for all of them. Relations
// are gone through one by one: each has a softmax of its own, which is joined with those before, so that only the sums
// and the statistics of all are kept. Backwards each relation's coefficients are made again from these.
type joinedAttention struct {
	heads     int
	slope     float64
	attDrop   float64
	att, stat tensor.Matrix
}

func (j *joinedAttention) begin(p *Pass, rows, cols int) {
	j.att = p.Dev.Scratch(p.rowType(), rows, cols)
	j.stat = p.Dev.Scratch(p.Dev.Type(), rows, 2*j.heads)
}

// clear says of rows lo to hi that no relation has been joined.
func (j *joinedAttention) clear(p *Pass, lo, hi int) {
	p.Dev.Zero(j.att.Slice(lo, hi))
	p.Dev.Zero(j.stat.Slice(lo, hi))
}

func (j *joinedAttention) free(p *Pass) { freeAll(p, &j.att, &j.stat) }

// join attends over the edges of a relation that lead to rows lo to hi of all, and joins that.
func (j *joinedAttention) join(p *Pass, rel *RelationEdges, lo, hi int, z, left, right tensor.Matrix,
	op tensor.Attention) {
	in := rel.In.Slice(lo-rel.To.Lo, hi-rel.To.Lo)
	part, stat := p.Dev.Scratch(p.rowType(), hi-lo, z.Cols), p.Dev.Scratch(p.Dev.Type(), hi-lo, 2*j.heads)
	p.Dev.Attend(part, stat, in, z, left, right, op)
	p.Dev.JoinAttend(j.att.Slice(lo, hi), j.stat.Slice(lo, hi), in, part, stat)
	freeAll(p, &part, &stat)
}

// of are the settings of a relation's attention for rows lo to hi of all.
func (j *joinedAttention) of(p *Pass, layer int, e *Edges, rel *RelationEdges, r, lo, hi int) tensor.Attention {
	return relationAttention(p, layer, j.heads, j.slope, j.attDrop, e, rel, r, lo, hi)
}

// relationAttention are the settings of attention over a relation's edges that lead to rows lo to hi; equal pairs in
// several relations draw apart.
func relationAttention(p *Pass, layer, heads int, slope, drop float64, e *Edges, rel *RelationEdges, r, lo,
	hi int) tensor.Attention {
	d := p.dropout(layer, drawAttention, drop).Slice(lo, hi)
	d.Key += uint64(r) * 0x9e3779b97f4a7c15
	ids := e.ids(p)
	if ids.IsZero() {
		ids = rel.columnIDs
	} else {
		ids = ids.Slice(rel.From.Lo, rel.From.Hi)
	}
	return tensor.Attention{Heads: heads, Slope: slope, Dropout: d, SrcIDs: ids}
}

// targets are the rows among lo to hi that a relation leads to and that are needed; ok is false where nothing is to do.
func (e *RelationEdges) targets(need []bool, lo, hi int) (from, to int, ok bool) {
	from, to = max(lo, e.To.Lo), min(hi, e.To.Hi)
	return from, to, from < to && need[e.To.Type] && e.In.Entries() > 0
}
