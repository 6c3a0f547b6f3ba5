package measure

import "math/rand/v2"

// graph has neighbours drawn evenly from all rows, the worst there is.
type graph struct {
	ptr   []int64
	index []uint32
}

func newGraph(rows, degree int) *graph {
	r := rand.New(rand.NewPCG(1, 1))
	g := &graph{make([]int64, rows+1), make([]uint32, rows*degree)}
	for i := range rows {
		g.ptr[i+1] = int64((i + 1) * degree)
	}
	for e := range g.index {
		g.index[e] = r.Uint32N(uint32(rows))
	}
	return g
}

// own is the neighbours of all rows, each row's own number behind them.
func (g *graph) own() (list []uint32) {
	for i := range g.ptr[1:] {
		list = append(append(list, g.index[g.ptr[i]:g.ptr[i+1]]...), uint32(i))
	}
	return list
}

// transpose is the same edges by their other end, and the place of each in g.
func (g *graph) transpose() (ptr []int64, index, place []uint32) {
	ptr, index, place = make([]int64, len(g.ptr)), make([]uint32, len(g.index)), make([]uint32, len(g.index))
	for _, j := range g.index {
		ptr[j+1]++
	}
	for j := range ptr[1:] {
		ptr[j+1] += ptr[j]
	}
	next := append([]int64(nil), ptr...)
	for i := range g.ptr[1:] {
		for e := g.ptr[i]; e < g.ptr[i+1]; e++ {
			at := &next[g.index[e]]
			index[*at], place[*at] = uint32(i), uint32(e)
			*at++
		}
	}
	return ptr, index, place
}
