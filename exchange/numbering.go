package exchange

import "iter"

// Numbering numbers vertices from 0, in the order in which they come. It is a table as long as the graph, of
// which there are only the pages that have vertices: 4 bytes per vertex at most, and a lookup is two reads. (Maps
// took most of the time in which neighbourhoods are found.) The zero value has none.
type Numbering struct {
	IDs   []uint32 // by number
	pages []*page
}

const pageSize = 512

// page has the numbers of consecutive vertices, and one; 0: none.
type page [pageSize]uint32

// At is the number of a vertex, if it has one.
func (n *Numbering) At(v uint32) (uint32, bool) {
	if i := int(v / pageSize); i < len(n.pages) && n.pages[i] != nil {
		at := n.pages[i][v%pageSize]
		return at - 1, at > 0
	}
	return 0, false
}

// Put is the number of a vertex, and whether it has just got it.
func (n *Numbering) Put(v uint32) (at uint32, fresh bool) {
	i := int(v / pageSize)
	if i >= len(n.pages) {
		n.pages = append(n.pages, make([]*page, i+1-len(n.pages))...)
	}
	if n.pages[i] == nil {
		n.pages[i] = new(page)
	}
	entry := &n.pages[i][v%pageSize]
	if *entry == 0 {
		n.IDs = append(n.IDs, v)
		*entry, fresh = uint32(len(n.IDs)), true
	}
	return *entry - 1, fresh
}

// Ascending are the vertices and their numbers, by vertex.
func (n *Numbering) Ascending() iter.Seq2[uint32, uint32] {
	return func(yield func(v, at uint32) bool) {
		for i, p := range n.pages {
			if p == nil {
				continue
			}
			for j, at := range p {
				if at > 0 && !yield(uint32(i*pageSize+j), at-1) {
					return
				}
			}
		}
	}
}

// Vertices are what is known of vertices that others own.
type Vertices struct {
	Numbering
	list []Vertex // by number
}

// Of is a vertex, if it is known. Of none nothing is.
func (k *Vertices) Of(v uint32) (Vertex, bool) {
	if k == nil {
		return Vertex{}, false
	}
	at, ok := k.At(v)
	if !ok {
		return Vertex{}, false
	}
	return k.list[at], true
}

// Know sets what is known of a vertex.
func (k *Vertices) Know(v uint32, m Vertex) {
	if at, fresh := k.Put(v); !fresh {
		k.list[at] = m
		return
	}
	k.list = append(k.list, m)
}
