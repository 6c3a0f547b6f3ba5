package shards

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"starling/disk/tasks"
	"starling/event"
	"starling/graph"
)

// piece is a range of vertices.
type piece struct {
	blocks      [2]int // of targets, from and to
	first, rows int64
	edges       int64 // at most
}

// pieceEdges and pieceRows bound a piece, so that its sorting fits the memory.
func (j *job) pieceEdges() int64 { return max(j.opt.Memory/32, 1<<10) }
func (j *job) pieceRows() int64 {
	return max(min(j.opt.Memory/32, j.opt.Memory/4/int64(4*j.rowWords())), 1<<10)
}

// divide makes pieces of consecutive blocks.
func (j *job) divide() error {
	totals := make([]uint64, j.blockCount())
	one := make([]uint64, len(totals))
	for k := range j.edges {
		if len(j.counts[k].Chunks) == 0 {
			continue
		}
		r, err := j.f.Open("spread", k, "totals")
		if err != nil {
			return err
		}
		_, err = io.ReadFull(r, bytesOf(one))
		r.Close()
		if err != nil {
			return err
		}
		for b, n := range one {
			totals[b] += n
		}
	}
	width := int64(1) << j.blockShift()
	j.pieces = nil
	for b, n := range totals {
		if least := 4 * int64(j.edgeWords()) * int64(n); least > j.opt.Memory {
			return &graph.InputError{Field: "--memory", Found: fmt.Sprintf("%s, too little for the %s of vertices %d to %d", event.Bytes(j.opt.Memory),
				event.Tally(int64(n), "in-edge"), int64(b)*width, min(int64(b+1)*width, j.numbers.n)-1),
				Want: "at least " + event.Bytes(least+least/1000), Fix: "remove " + j.f.Dir + " and give more"}
		}
		rows := min(width, j.numbers.n-int64(b)*width)
		if len(j.pieces) > 0 {
			if p := &j.pieces[len(j.pieces)-1]; p.edges+int64(n) <= j.pieceEdges() && p.rows+rows <= j.pieceRows() {
				p.blocks[1], p.rows, p.edges = b+1, p.rows+rows, p.edges+int64(n)
				continue
			}
		}
		j.pieces = append(j.pieces, piece{[2]int{b, b + 1}, int64(b) * width, rows, int64(n)})
	}
	return nil
}

// sortResult is what is known of a piece after stage sort.
type sortResult struct {
	Edges     int64
	Asymmetry uint64 `json:",string"` // as graph.CSR.Symmetric sums it
}

// sort is stage sort.
func (j *job) sort() error {
	if err := j.planPieces(); err != nil {
		return err
	}
	if err := j.f.Do(j.ctx, "sort", len(j.pieces), j.sortPiece); err != nil {
		return err
	}
	if err := j.f.Drop("spread", 0, len(j.edges)); err != nil {
		return err
	}
	j.sorted = make([]sortResult, len(j.pieces))
	for k := range j.pieces {
		if err := j.f.Result("sort", k, &j.sorted[k]); err != nil {
			return err
		}
	}
	return nil
}

// piecesResult are the pieces, in files that outlive the edges they were made of.
type piecesResult struct {
	Blocks [][2]int
	Rows   []int64
	Edges  []int64
	Listed int64
	Loops  int64
}

// planPieces divides the vertices once, as the totals are dropped later.
func (j *job) planPieces() error {
	if err := j.f.Do(j.ctx, "divide", 1, func(int, *tasks.Out) (any, error) {
		if err := j.divide(); err != nil {
			return nil, err
		}
		var r piecesResult
		for _, p := range j.pieces {
			r.Blocks, r.Rows, r.Edges = append(r.Blocks, p.blocks), append(r.Rows, p.rows), append(r.Edges, p.edges)
		}
		for k := range j.edges {
			var s spreadResult
			if err := j.f.Result("spread", k, &s); err != nil {
				return nil, err
			}
			r.Loops += s.Loops
			r.Listed += j.counts[k].Edges
		}
		return r, nil
	}); err != nil {
		return err
	}
	var r piecesResult
	if err := j.f.Result("divide", 0, &r); err != nil {
		return err
	}
	j.pieces, j.listed, j.loops = nil, r.Listed, r.Loops
	first := int64(0)
	for k := range r.Blocks {
		j.pieces = append(j.pieces, piece{r.Blocks[k], first, r.Rows[k], r.Edges[k]})
		first += r.Rows[k]
	}
	return nil
}

// segments calls each with the edges of a piece, shard by shard and chunk by chunk, in the order they were listed.
func (j *job) segments(p piece, each func(edges []uint32) error) error {
	words := int64(j.edgeWords())
	buf := make([]uint32, words<<15)
	blocks := int64(j.blockCount())
	for k := range j.edges {
		if len(j.counts[k].Chunks) == 0 {
			continue
		}
		if err := j.ctx.Err(); err != nil {
			return err
		}
		var r spreadResult
		if err := j.f.Result("spread", k, &r); err != nil {
			return err
		}
		if err := func() error {
			index, err := j.open("spread", k, "starts")
			if err != nil {
				return err
			}
			defer index.Close()
			edges, err := j.open("spread", k, "edges")
			if err != nil {
				return err
			}
			defer edges.Close()
			for c := range len(r.Chunks) - 1 {
				var lo, hi [1]uint32
				at := int64(c) * (blocks + 1) * 4
				if _, err := index.ReadAt(bytesOf(lo[:]), at+4*int64(p.blocks[0])); err != nil {
					return err
				}
				if _, err := index.ReadAt(bytesOf(hi[:]), at+4*int64(p.blocks[1])); err != nil {
					return err
				}
				for from := int64(lo[0]); from < int64(hi[0]); {
					n := min(int64(hi[0])-from, int64(len(buf))/words)
					if _, err := edges.ReadAt(bytesOf(buf[:n*words]), 4*words*(r.Chunks[c]+from)); err != nil {
						return err
					}
					if err := each(buf[:n*words]); err != nil {
						return err
					}
					from += n
				}
			}
			return nil
		}(); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) open(stage string, k int, name string) (*os.File, error) {
	path, err := j.f.Path(stage, k, name)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// sortPiece makes the rows of a piece.
func (j *job) sortPiece(k int, out *tasks.Out) (any, error) {
	p := j.pieces[k]
	words := j.edgeWords()
	starts := make([]uint32, p.rows+1)
	if p.edges > math.MaxUint32 {
		return nil, &graph.InputError{Field: "--memory", Found: fmt.Sprint(j.opt.Memory), Want: "at most 64 GiB", Fix: "give less"}
	}
	if err := j.segments(p, func(edges []uint32) error {
		for i := 0; i < len(edges); i += words {
			starts[int64(edges[i])-p.first+1]++
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for i := range p.rows {
		starts[i+1] += starts[i]
	}
	s := &pieceSorter{j: j, p: p, sources: make([]uint32, starts[p.rows])}
	if words == 3 {
		s.weights = make([]float32, len(s.sources))
	}
	if err := j.segments(p, func(edges []uint32) error {
		for i := 0; i < len(edges); i += words {
			at := &starts[int64(edges[i])-p.first]
			s.sources[*at] = edges[i+1]
			if words == 3 {
				copy(bytesOf(s.weights[*at:*at+1]), bytesOf(edges[i+2:i+3]))
			}
			*at++
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for name, w := range map[string]**tasks.Writer{"sources": &s.toSources, "degrees": &s.toDegrees} {
		var err error
		if *w, err = out.Create(name); err != nil {
			return nil, err
		}
	}
	if words == 3 {
		var err error
		if s.toWeights, err = out.Create("weights"); err != nil {
			return nil, err
		}
	}
	from := uint32(0)
	for i := range p.rows { // starts[i] is where row i ends now
		if err := s.row(uint32(p.first+i), from, starts[i]); err != nil {
			return nil, err
		}
		from = starts[i]
	}
	return s.r, nil
}

type pieceSorter struct {
	j       *job
	p       piece
	r       sortResult
	sources []uint32
	weights []float32
	row64   []uint64
	kept    []float32

	toSources, toDegrees, toWeights *tasks.Writer
}

// row sorts and writes the row of v.
func (s *pieceSorter) row(v, from, to uint32) error {
	row := s.sources[from:to]
	var weights []float32
	if s.weights == nil {
		slices.Sort(row)
		if !s.j.opt.KeepDuplicates {
			row = slices.Compact(row)
		}
	} else {
		row, weights = s.weighted(row, s.weights[from:to])
	}
	for i, u := range row {
		var w float32
		if weights != nil {
			w = weights[i]
		}
		s.r.Asymmetry += graph.SignedHash(uint64(u), uint64(v), w)
	}
	s.r.Edges += int64(len(row))
	degree := [1]uint32{uint32(len(row))}
	if _, err := s.toDegrees.Write(bytesOf(degree[:])); err != nil {
		return err
	}
	if _, err := s.toSources.Write(bytesOf(row)); err != nil || weights == nil {
		return err
	}
	_, err := s.toWeights.Write(bytesOf(weights))
	return err
}

// weighted sorts a row with its weights; of equal edges the first that was listed stays.
func (s *pieceSorter) weighted(row []uint32, weights []float32) ([]uint32, []float32) {
	s.row64 = s.row64[:0]
	for i, u := range row {
		s.row64 = append(s.row64, uint64(u)<<32|uint64(i))
	}
	slices.Sort(s.row64)
	s.kept = s.kept[:0]
	n := 0
	for i, x := range s.row64 {
		if i > 0 && !s.j.opt.KeepDuplicates && x>>32 == s.row64[i-1]>>32 {
			continue
		}
		row[n] = uint32(x >> 32)
		s.kept = append(s.kept, weights[uint32(x)])
		n++
	}
	return row[:n], s.kept
}
