package shards

import (
	"io"
	"math/bits"
	"slices"

	"starling/disk/tasks"
)

// mostBlocks bounds the blocks of targets, of which pieces are made.
const mostBlocks = 1 << 14

// blocks of vertices: those equal above a bit.
func (j *job) blockShift() int {
	return max(0, bits.Len64(uint64(j.numbers.n-1))-bits.Len64(mostBlocks-1))
}

func (j *job) blockCount() int { return int((j.numbers.n-1)>>j.blockShift()) + 1 }

// spreadResult is what is known of a shard after stage spread.
type spreadResult struct {
	Chunks []int64 // the edges before each chunk, and in all
	Loops  int64   // self-loops that were listed
}

// spread is stage spread.
func (j *job) spread() error {
	if err := j.f.Do(j.ctx, "spread", len(j.edges), j.spreadShard); err != nil {
		return err
	}
	return j.f.Drop("read", 0, len(j.edges))
}

// lookup finds the numbers of the ids of a shard, chunk by chunk.
type lookup struct {
	d       *dictionary
	text    bool
	keys    *tasks.Reader
	key     []byte
	numbers []uint32
}

func (j *job) newLookup(k int) (l *lookup, err error) {
	l = &lookup{text: j.text}
	if l.d, err = j.openDictionary(); err != nil {
		return l, err
	}
	l.keys, err = j.f.Open("read", k, "keys")
	return l, err
}

func (l *lookup) Close() {
	if l.d != nil {
		l.d.Close()
	}
	if l.keys != nil {
		l.keys.Close()
	}
}

// next are the numbers of the following chunk's ids.
func (l *lookup) next(c chunkInfo) (numbers []uint32, err error) {
	if l.d != nil {
		l.d.restart()
	}
	l.numbers = slices.Grow(l.numbers[:0], c.IDs)[:c.IDs]
	for i := range l.numbers {
		if l.key, err = readKey(l.keys.Reader, l.text, l.key); err != nil {
			return nil, err
		}
		if l.d == nil {
			l.numbers[i] = uint32(numberOf(l.key))
		} else if l.numbers[i], err = l.d.find(l.key); err != nil {
			return nil, err
		}
	}
	return l.numbers, nil
}

// spreadShard groups the edges of a shard by blocks of targets.
func (j *job) spreadShard(k int, out *tasks.Out) (any, error) {
	r := &spreadResult{Chunks: []int64{0}}
	if len(j.counts[k].Chunks) == 0 {
		return r, nil
	}
	l, err := j.newLookup(k)
	defer l.Close()
	if err != nil {
		return nil, err
	}
	ends, err := j.f.Open("read", k, "ends")
	if err != nil {
		return nil, err
	}
	defer ends.Close()
	s := &spreader{j: j, r: r, starts: make([]uint32, j.blockCount()+1), totals: make([]uint64, j.blockCount())}
	var weights *tasks.Reader
	if j.opt.Weights {
		if weights, err = j.f.Open("read", k, "weights"); err != nil {
			return nil, err
		}
		defer weights.Close()
	}
	for name, w := range map[string]**tasks.Writer{"edges": &s.edges, "starts": &s.index, "totals": &s.sums} {
		if *w, err = out.Create(name); err != nil {
			return nil, err
		}
	}
	for _, c := range j.counts[k].Chunks {
		if err := j.ctx.Err(); err != nil {
			return nil, err
		}
		numbers, err := l.next(c)
		if err != nil {
			return nil, err
		}
		s.ends = slices.Grow(s.ends[:0], c.Ends)[:c.Ends]
		if _, err := io.ReadFull(ends, bytesOf(s.ends)); err != nil {
			return nil, err
		}
		if weights != nil {
			s.weights = slices.Grow(s.weights[:0], c.Ends/2)[:c.Ends/2]
			if _, err := io.ReadFull(weights, bytesOf(s.weights)); err != nil {
				return nil, err
			}
		}
		for i, x := range s.ends {
			s.ends[i] = numbers[x]
		}
		if err := s.group(); err != nil {
			return nil, err
		}
	}
	_, err = s.sums.Write(bytesOf(s.totals))
	return r, err
}

// spreader groups a chunk. An edge is its target, its source, and its weight, if edges have some.
type spreader struct {
	j       *job
	r       *spreadResult
	ends    []uint32
	weights []float32
	grouped []uint32
	starts  []uint32
	totals  []uint64

	edges, index, sums *tasks.Writer
}

// edgeWords is how many words an edge takes in a shard that was spread.
func (j *job) edgeWords() int {
	if j.opt.Weights {
		return 3
	}
	return 2
}

func (s *spreader) group() error {
	o, shift := &s.j.opt, s.j.blockShift()
	clear(s.starts)
	for i := 0; i < len(s.ends); i += 2 {
		u, v := s.ends[i], s.ends[i+1]
		if u == v {
			if s.r.Loops++; !o.KeepSelfLoops {
				continue
			}
		}
		s.starts[v>>shift+1]++
		if o.Symmetrize && u != v {
			s.starts[u>>shift+1]++
		}
	}
	for b := range s.totals {
		s.totals[b] += uint64(s.starts[b+1])
		s.starts[b+1] += s.starts[b]
	}
	if _, err := s.index.Write(bytesOf(s.starts)); err != nil {
		return err
	}
	words, n := s.j.edgeWords(), int(s.starts[len(s.totals)])
	s.grouped = slices.Grow(s.grouped[:0], words*n)[:words*n]
	put := func(u, v uint32, edge int) {
		at := words * int(s.starts[v>>shift])
		s.starts[v>>shift]++
		s.grouped[at], s.grouped[at+1] = v, u
		if words == 3 {
			copy(bytesOf(s.grouped[at+2:at+3]), bytesOf(s.weights[edge:edge+1]))
		}
	}
	for i := 0; i < len(s.ends); i += 2 {
		u, v := s.ends[i], s.ends[i+1]
		if u == v && !o.KeepSelfLoops {
			continue
		}
		put(u, v, i/2)
		if o.Symmetrize && u != v {
			put(v, u, i/2)
		}
	}
	s.r.Chunks = append(s.r.Chunks, s.r.Chunks[len(s.r.Chunks)-1]+int64(n))
	_, err := s.edges.Write(bytesOf(s.grouped))
	return err
}
