package sample

// Locality is how many of the vertices that seed vertices need have the same owner (Chen et al.,
// "HopGNN", 2024, table 1): with N_s the vertices of the micrograph of seed s, its k-hop neighbourhood
// as drawn, and N the vertices of the whole batch's subgraph,
//
//	R_micro = Σ_s |{v ≠ s in N_s: owner(v) = owner(s)}| / Σ_s |N_s|
//	R_sub   = Σ_s |{v ≠ s in N:   owner(v) = owner(s)}| / Σ_s |N|
type Locality struct {
	Seeds  int
	inside [2]float64 // of micrographs, of subgraphs
	all    [2]float64
	seen   []int
	mark   int
	rows   []uint32
}

// Micro is R_micro of the batches that were added.
func (l *Locality) Micro() float64 { return l.inside[0] / max(l.all[0], 1) }

// Sub is R_sub.
func (l *Locality) Sub() float64 { return l.inside[1] / max(l.all[1], 1) }

// Add counts a batch of a block for each layer. owner is of vertices.
func (l *Locality) Add(b *Batch, owner func(v uint32) int) {
	count := map[int]int{}
	for _, v := range b.Vertices {
		count[owner(v)]++
	}
	for len(l.seen) < len(b.Vertices) {
		l.seen = append(l.seen, 0)
	}
	for _, seed := range b.Seeds {
		home := owner(b.Vertices[seed])
		l.Seeds++
		l.inside[1] += float64(count[home] - 1)
		l.all[1] += float64(len(b.Vertices))
		l.micrograph(b, seed)
		l.all[0] += float64(len(l.rows))
		for _, row := range l.rows[1:] {
			if owner(b.Vertices[row]) == home {
				l.inside[0]++
			}
		}
	}
}

// micrograph finds the rows that a seed needs, itself first.
func (l *Locality) micrograph(b *Batch, seed uint32) {
	l.mark++
	l.seen[seed], l.rows = l.mark, append(l.rows[:0], seed)
	for i := len(b.Blocks) - 1; i >= 0; i-- {
		x := &b.Blocks[i]
		for _, row := range l.rows[:len(l.rows):len(l.rows)] {
			for _, u := range x.Indices[x.Indptr[row]:x.Indptr[row+1]] {
				if l.seen[u] != l.mark {
					l.seen[u], l.rows = l.mark, append(l.rows, u)
				}
			}
		}
	}
}
