package innet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Graph is the edges between vertices of different hosts.
type Graph struct {
	Host     []uint16 // of each vertex
	Src, Dst []uint32 // edges; one may be there several times
	// Shuffled rows leave in a random order, the same on all hosts, instead of Order's.
	Shuffled bool
}

// Cut divides a graph of so many vertices into parts of at most limit vertices: the part of
// each. Edges are as in Graph. Limits that are not kept cost time, not correctness.
type Cut func(vertices int, src, dst []uint32, parts, limit int) ([]uint32, error)

// Block is rows and aggregators that pass the switch together.
type Block struct {
	Rows     []uint32 // source vertices, in the order of Order
	RowHost  []uint16
	Ptr      []uint32 // row r is added to slots Into[Ptr[r]:Ptr[r+1]]
	Into     []uint32
	Slots    []uint32 // destination vertices, by host
	SlotHost []uint16
	Need     []uint16 // rows that are added to each slot
	InPtr    []uint32 // slot s is the sum of rows From[InPtr[s]:InPtr[s+1]]
	From     []uint32
}

// Limits of a block, and of what a plan may try.
const (
	maxNeed   = math.MaxUint16
	maxBlocks = math.MaxUint16
	maxLevels = 12
)

// Blocks divides the edges of a graph into blocks of at most limit aggregators (§3.3): the
// graph is cut into parts of as many vertices, edges inside a part are a block, and the cut
// edges make a new graph, which is divided the same way. Where cutting keeps no edge inside
// parts, or has gone on for many levels, what is left is divided by destination.
func Blocks(g *Graph, limit int, cut Cut) (blocks []*Block, err error) {
	if limit < 1 {
		return nil, fmt.Errorf("a switch with no memory for a single aggregator")
	}
	edges := edgeList{g.Src, g.Dst}
	for level := 0; len(edges.src) > 0; level++ {
		if len(blocks) > maxBlocks {
			return nil, fmt.Errorf("more than %d blocks: the switch has memory for only %d aggregators", maxBlocks, limit)
		}
		groups, rest, err := divide(edges, limit, level, cut)
		if err != nil {
			return nil, err
		}
		for _, e := range groups {
			b, over := newBlock(g, e)
			blocks, rest = append(blocks, b), rest.and(over)
		}
		edges = rest
	}
	return blocks, nil
}

type edgeList struct{ src, dst []uint32 }

func (e *edgeList) add(u, v uint32) { e.src, e.dst = append(e.src, u), append(e.dst, v) }

func (e edgeList) and(o edgeList) edgeList {
	return edgeList{append(e.src, o.src...), append(e.dst, o.dst...)}
}

// divide is one level: groups of edges with at most limit destinations each, and the rest.
func divide(e edgeList, limit, level int, cut Cut) (groups []edgeList, rest edgeList, err error) {
	if len(distinct(e.dst)) <= limit {
		return []edgeList{e}, rest, nil
	}
	if level >= maxLevels || limit < 2 || cut == nil {
		return byDestination(e, limit), rest, nil
	}
	vertices := distinct(e.src, e.dst)
	local := edgeList{places(vertices, e.src), places(vertices, e.dst)}
	parts := (len(vertices) + limit - 1) / limit
	part, err := cut(len(vertices), local.src, local.dst, parts, limit)
	if err != nil {
		return nil, rest, err
	}
	inside := make([]edgeList, parts)
	for i, u := range local.src {
		if k := part[u]; k == part[local.dst[i]] {
			inside[k].add(e.src[i], e.dst[i])
		} else {
			rest.add(e.src[i], e.dst[i])
		}
	}
	for _, in := range inside {
		switch {
		case len(in.src) == 0:
		case len(distinct(in.dst)) <= limit:
			groups = append(groups, in)
		default:
			groups = append(groups, byDestination(in, limit)...)
		}
	}
	if len(groups) == 0 || len(rest.src) > len(e.src)*9/10 { // hardly anything is inside parts
		return byDestination(e, limit), edgeList{}, nil
	}
	return groups, rest, nil
}

// byDestination are groups of limit destinations each, with all their edges.
func byDestination(e edgeList, limit int) []edgeList {
	slots := distinct(e.dst)
	groups := make([]edgeList, (len(slots)+limit-1)/limit)
	for i, place := range places(slots, e.dst) {
		groups[int(place)/limit].add(e.src[i], e.dst[i])
	}
	return groups
}

// distinct are the different numbers of lists, ascending.
func distinct(lists ...[]uint32) []uint32 {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// places is where each number is in a sorted list that has them all.
func places(sorted, numbers []uint32) []uint32 {
	out := make([]uint32, len(numbers))
	if len(sorted) == 0 {
		return out
	}
	if span := int(sorted[len(sorted)-1]) + 1; span < 8*(len(sorted)+len(numbers)) {
		at := make([]uint32, span)
		for i, v := range sorted {
			at[v] = uint32(i)
		}
		for i, v := range numbers {
			out[i] = at[v]
		}
		return out
	}
	for i, v := range numbers {
		place, _ := slices.BinarySearch(sorted, v)
		out[i] = uint32(place)
	}
	return out
}

// newBlock is a block of edges; those that are too many for a count are over.
func newBlock(g *Graph, e edgeList) (b *Block, over edgeList) {
	e, over = countable(e)
	b = &Block{Slots: distinct(e.dst)}
	slices.SortStableFunc(b.Slots, func(x, y uint32) int { return int(g.Host[x]) - int(g.Host[y]) })
	if b.Rows = sendOrder(e); g.Shuffled {
		rand.New(rand.NewPCG(1, uint64(len(b.Rows)))).Shuffle(len(b.Rows), func(i, j int) {
			b.Rows[i], b.Rows[j] = b.Rows[j], b.Rows[i]
		})
	}
	for _, v := range b.Rows {
		b.RowHost = append(b.RowHost, g.Host[v])
	}
	for _, v := range b.Slots {
		b.SlotHost = append(b.SlotHost, g.Host[v])
	}
	row, slot := inverse(b.Rows, e.src), inverse(b.Slots, e.dst)
	b.Ptr, b.Into = group(len(b.Rows), row, slot)
	b.InPtr, b.From = group(len(b.Slots), slot, row)
	for s := range b.Slots {
		b.Need = append(b.Need, uint16(b.InPtr[s+1]-b.InPtr[s]))
	}
	return b, over
}

// countable leaves out edges of destinations that have more than a count can hold.
func countable(e edgeList) (kept, over edgeList) {
	if len(e.src) <= maxNeed {
		return e, over
	}
	count := map[uint32]int{}
	for i, v := range e.dst {
		if count[v]++; count[v] > maxNeed {
			over.add(e.src[i], v)
		} else {
			kept.add(e.src[i], v)
		}
	}
	return kept, over
}

// sendOrder are the sources of edges, ordered by the graph that the edges make.
func sendOrder(e edgeList) []uint32 {
	vertices := distinct(e.src, e.dst)
	src, dst := places(vertices, e.src), places(vertices, e.dst)
	ptr, adj := group(len(vertices), slices.Concat(src, dst), slices.Concat(dst, src))
	sends := make([]bool, len(vertices))
	for _, u := range src {
		sends[u] = true
	}
	var out []uint32
	for _, v := range Order(ptr, adj) {
		if sends[v] {
			out = append(out, vertices[v])
		}
	}
	return out
}

// inverse is the place of each number in a list that has them all.
func inverse(list, numbers []uint32) []uint32 {
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	at := make([]uint32, len(list))
	for i, place := range places(sorted, list) {
		at[place] = uint32(i)
	}
	out := places(sorted, numbers)
	for i, place := range out {
		out[i] = at[place]
	}
	return out
}

// group lists values by key, in the order they come.
func group(keys int, key, value []uint32) (ptr, list []uint32) {
	ptr, list = make([]uint32, keys+2), make([]uint32, len(key))
	for _, k := range key {
		ptr[k+2]++
	}
	for k := range keys {
		ptr[k+2] += ptr[k+1]
	}
	for i, k := range key {
		list[ptr[k+1]] = value[i]
		ptr[k+1]++
	}
	return ptr[:keys+1], list
}

// Plan is the blocks of one or several graphs, numbered through.
type Plan struct {
	Blocks []*Block
	Hosts  int
}

// MaxNeed is the most rows that are added to an aggregator of blocks lo to hi.
func (p *Plan) MaxNeed(lo, hi int) (most int) {
	for _, b := range p.Blocks[lo:hi] {
		for _, n := range b.Need {
			most = max(most, int(n))
		}
	}
	return most
}

// RowsFrom is how many rows a host sends in blocks lo to hi.
func (p *Plan) RowsFrom(host, lo, hi int) (rows int) {
	for _, b := range p.Blocks[lo:hi] {
		for _, h := range b.RowHost {
			if int(h) == host {
				rows++
			}
		}
	}
	return rows
}

// SumsTo is how many sums a host receives in blocks lo to hi.
func (p *Plan) SumsTo(host, lo, hi int) (sums int) {
	for _, b := range p.Blocks[lo:hi] {
		for _, h := range b.SlotHost {
			if int(h) == host {
				sums++
			}
		}
	}
	return sums
}
