package multilevel

import "starling/rng"

// localized refines by searches that each start at one boundary vertex and spread from
// there, so that every region can go through worse states: one search over the whole
// boundary ends when its patience does, wherever that is.
//
// P. Sanders, C. Schulz: Engineering multilevel graph partitioning algorithms, 2011.
func (f *kwayFM) localized(rounds, patience int, key rng.Key) (gained int64) {
	for round := range rounds {
		seeds := f.boundary()
		shuffle := key.Fold(uint64(round))
		for i := len(seeds) - 1; i > 0; i-- {
			j := shuffle.IntN(uint64(i), i+1)
			seeds[i], seeds[j] = seeds[j], seeds[i]
		}
		var sum int64
		for _, v := range seeds {
			if !f.locked[v] {
				sum += f.search(v, patience)
			}
		}
		gained += sum
		if sum == 0 {
			break
		}
	}
	return gained
}

// boundary lists the vertices with neighbours in other parts and unlocks all. Only
// vertices that have been in the queue can be on the boundary.
func (f *kwayFM) boundary() []uint32 {
	clear(f.locked)
	f.seeds = f.seeds[:0]
	for _, v := range f.queued {
		if _, boundary := f.gain(v); boundary {
			f.seeds = append(f.seeds, v)
		}
	}
	return f.seeds
}

// search moves vertices from v on and keeps the best prefix of the moves.
func (f *kwayFM) search(v uint32, patience int) int64 {
	key, ok := f.gain(v)
	if !ok {
		return 0
	}
	f.queue.clear()
	f.moves = f.moves[:0]
	f.queue.set(v, key)
	var sum, best int64
	kept, waited := 0, 0
	for waited < patience {
		v, to, gain, ok := f.next()
		if !ok {
			break
		}
		sum += gain
		f.moves = append(f.moves, move{v, f.a.part[v]})
		f.move(v, to, true)
		waited++
		if sum > best {
			best, kept, waited = sum, len(f.moves), 0
		}
	}
	f.undo(kept)
	return best
}
