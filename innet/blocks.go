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
	Division Division
}

// Division is how edges are divided into blocks.
type Division string

const (
	// ByCut is the paper's (§3.3): parts of a cut, parts of what was cut, and so on.
	ByCut Division = "cut"
	// ByGrid is ours: groups of destinations and of sources, and any two make a block.
	ByGrid Division = "grid"
	// Fewest is the one of the two by which fewer rows and sums pass the switch; so is "".
	Fewest Division = "auto"
)

// Divisions are all of them.
var Divisions = []Division{ByCut, ByGrid, Fewest}

// Cut divides a graph into parts of at most limit vertices and returns the part of each
// vertex. Edges are as in Graph. Limits that are not kept cost time, not correctness.
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

// Blocks divides the edges of a graph into blocks that fit a switch (§3.3): the graph is cut into
// parts of as many vertices as there are aggregators, edges inside a part are a block, and the cut
// edges make a new graph, which is divided the same way. Where cutting keeps no edge inside
// parts, or has gone on for many levels, what is left is divided by destination and source. Where
// fewer rows and sums pass the switch if all is, as in a dense graph, all is, unless the graph's
// Division says otherwise.
func Blocks(g *Graph, room Budget, cut Cut) (blocks []*Block, err error) {
	if !room.fits(1, 1) {
		return nil, fmt.Errorf("a switch with no memory for a single aggregator")
	}
	slots, rows := edgeList{g.Src, g.Dst}.counts()
	switch {
	case room.fits(slots, rows):
		return blocksWithin(g, caps{slots, rows}, nil)
	case cut == nil || room.Aggregators() < 2 || g.Division == ByGrid:
		return blocksWithin(g, room.forGrid(slots, rows), nil)
	case g.Division == ByCut:
		return blocksWithin(g, room.forCut(), cut)
	}
	blocks, err = blocksWithin(g, room.forGrid(slots, rows), nil)
	inParts, failed := blocksWithin(g, room.forCut(), cut)
	if failed == nil && (err != nil || passing(inParts) <= passing(blocks)) {
		return inParts, nil
	}
	return blocks, err
}

// passing is how many rows and sums pass the switch.
func passing(blocks []*Block) (n int) {
	for _, b := range blocks {
		n += len(b.Rows) + len(b.Slots)
	}
	return n
}

// blocksWithin are blocks that keep to caps.
func blocksWithin(g *Graph, room caps, cut Cut) (blocks []*Block, err error) {
	edges := edgeList{g.Src, g.Dst}
	for level := 0; len(edges.src) > 0; level++ {
		if len(blocks) > maxBlocks {
			return nil, fmt.Errorf("more than %d blocks: the switch has memory for only %d aggregators", maxBlocks,
				room.slots)
		}
		groups, rest, err := divide(edges, room, level, cut)
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

func (e edgeList) counts() (slots, rows int) { return len(distinct(e.dst)), len(distinct(e.src)) }

// divide is one level: groups of edges that fit each, and the rest.
func divide(e edgeList, room caps, level int, cut Cut) (groups []edgeList, rest edgeList, err error) {
	if level >= maxLevels || cut == nil || room.fit(e.counts()) {
		return inGrid(e, room), rest, nil
	}
	vertices := distinct(e.src, e.dst)
	local := edgeList{places(vertices, e.src), places(vertices, e.dst)}
	parts := ceil(len(vertices), room.slots)
	part, err := cut(len(vertices), local.src, local.dst, parts, room.slots)
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
		if len(in.src) > 0 {
			groups = append(groups, inGrid(in, room)...)
		}
	}
	if len(groups) == 0 || len(rest.src) > len(e.src)*9/10 { // hardly anything is inside parts
		return inGrid(e, room), edgeList{}, nil
	}
	return groups, rest, nil
}

// inGrid are groups of destinations and sources that fit, with all their edges. Vertices of a host follow each other, and
// neighbours in a row are in different groups: so every block has some of every host, and no link is idle while one
// host's are sent.
func inGrid(e edgeList, room caps) (groups []edgeList) {
	slots, rows := distinct(e.dst), distinct(e.src)
	across, down := ceil(len(slots), room.slots), ceil(len(rows), min(room.rows, len(rows)))
	all := make([]edgeList, across*down)
	slot, row := places(slots, e.dst), places(rows, e.src)
	for i := range e.src {
		all[int(slot[i])%across*down+int(row[i])%down].add(e.src[i], e.dst[i])
	}
	for _, one := range all {
		if len(one.src) > 0 {
			groups = append(groups, one)
		}
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
