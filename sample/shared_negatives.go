package sample

import "starling/rng"

// Shared are negatives that the pairs of a batch have in common, so that a batch needs few rows for them:
//
//	in-batch   the other ends of K other pairs of the batch, drawn for each pair without replacement
//	joint      K vertices drawn for every Chunk pairs of a batch, as DGL-KE does (Zheng et al., SIGIR 2020); 0: for all
//	           of them
//
// A pair's own ends are left out of its negatives, and so are those that would be edges: it then has fewer than K.
//
// A draw is a function of seed, epoch, batch, and of the pair or the chunk of the batch.
type Shared struct {
	InBatch bool
	Chunk   int
	Each    int // K
}

// Positive is a pair of a batch: the end that negatives keep, the other, and the key of its negatives.
type Positive struct {
	Kept, Other uint32
	Key         rng.Key
}

// Of appends the negatives of one pair of a batch, edges among them. joint is the key of a chunk's vertices, vertex the
// vertex of a key.
func (s *Shared) Of(batch []Positive, at int, joint func(chunk int) rng.Key, vertex func(rng.Key) uint32,
	to []uint32) []uint32 {
	p := &batch[at]
	take := func(w uint32) {
		if w != p.Kept && w != p.Other {
			to = append(to, w)
		}
	}
	if s.InBatch {
		for _, i := range othersOf(p.Key, at, len(batch), s.Each) {
			take(batch[i].Other)
		}
		return to
	}
	chunk := 0
	if s.Chunk > 0 {
		chunk = at / s.Chunk
	}
	key := joint(chunk)
	for k := range s.Each {
		take(vertex(key.Fold(uint64(k))))
	}
	return to
}

// othersOf are k of n places other than one, drawn without replacement; all where there are no more. It is the
// beginning of Fisher and Yates' shuffle, of which only what moved is kept.
func othersOf(key rng.Key, at, n, k int) []int {
	k = min(k, n-1)
	list, moved := make([]int, 0, k), make(map[int]int, k)
	place := func(i int) int {
		if to, ok := moved[i]; ok {
			return to
		}
		return i
	}
	for i := range k {
		j := i + key.IntN(uint64(i), n-1-i)
		other := place(j)
		moved[j] = place(i)
		if other >= at {
			other++
		}
		list = append(list, other)
	}
	return list
}

// JointKey is the key of the vertices that a chunk of a batch has for negatives.
func (n *Negatives) JointKey(epoch, batch, chunk int) rng.Key {
	return n.key.Fold(useJoint).Fold(uint64(epoch)).Fold(uint64(batch)).Fold(uint64(chunk))
}

// Any is the vertex of a key, whether it is linked or not.
func (n *Negatives) Any(key rng.Key) uint32 { return n.any(key, 0) }

// Takes reports whether w is no negative for u.
func (n *Negatives) Takes(u, w uint32) bool { return n.taken != nil && n.taken(u, w) }

// JointKey is the same for the relation's pairs of a batch.
func (n *RelationNegatives) JointKey(epoch, batch, chunk int) rng.Key {
	return n.key.Fold(useJoint).Fold(uint64(epoch)).Fold(uint64(batch)).Fold(uint64(chunk))
}

// Any is the destination of a key, by id.
func (n *RelationNegatives) Any(key rng.Key) uint32 { return n.First + n.Negatives.Any(key) }

// Takes reports whether a destination, by id, is no negative for a source, which is as Of is given it.
func (n *RelationNegatives) Takes(source, w uint32) bool { return n.Negatives.Takes(source, w-n.First) }

// DrawShared fills d with pairs of a source and the negatives that they share.
func (d *Drawn) DrawShared(source PairSource, n *Negatives, s *Shared, epoch, batch int, pairs []uint32) {
	d.Left, d.Right, d.batch = d.Left[:0], d.Right[:0], d.batch[:0]
	for _, i := range pairs {
		if u, v, ok := source.Pair(epoch, int(i)); ok {
			d.Left, d.Right = append(d.Left, u), append(d.Right, v)
			d.batch = append(d.batch, Positive{u, v, n.Key(epoch, batch, int(i))})
		}
	}
	d.Positives = len(d.Left)
	joint := func(chunk int) rng.Key { return n.JointKey(epoch, batch, chunk) }
	for at := range d.batch {
		u := d.batch[at].Kept
		d.negatives = s.Of(d.batch, at, joint, n.Any, d.negatives[:0])
		for _, w := range d.negatives {
			if !n.Takes(u, w) {
				d.Left, d.Right = append(d.Left, u), append(d.Right, w)
			}
		}
	}
}

// drawShared appends the negatives that a relation's pairs of a batch share, which list has.
func (s *relationSampler) drawShared(source *RelationSource, list []int, epoch, number int) {
	n, batch := source.Negatives, make([]Positive, len(list))
	for at, i := range list {
		batch[at] = Positive{source.U[i], source.V[i], n.Key(epoch, source.U[i], source.V[i])}
	}
	joint := func(chunk int) rng.Key { return n.JointKey(epoch, number, chunk) }
	var drawn []uint32
	for at, i := range list {
		drawn = s.of.Shared.Of(batch, at, joint, n.Any, drawn[:0])
		for _, w := range drawn {
			if !n.Takes(source.Rows[i], w) {
				s.left, s.right = append(s.left, source.U[i]), append(s.right, w)
			}
		}
	}
}
