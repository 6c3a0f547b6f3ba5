package store

// places numbers vertices that come and go: a hash table with open addressing, of which what is removed leaves no mark.
type places struct {
	list []vertexPlace
	used int
}

type vertexPlace struct {
	vertex uint32
	place  int32 // -1: free
}

func newPlaces() places {
	p := places{}
	p.grow(1 << 8)
	return p
}

func (p *places) grow(n int) {
	old := p.list
	p.list, p.used = make([]vertexPlace, n), 0
	for i := range p.list {
		p.list[i].place = -1
	}
	for _, x := range old {
		if x.place >= 0 {
			p.put(x.vertex, x.place)
		}
	}
}

// home is where a vertex is, unless others are there.
func (p *places) home(v uint32) int {
	h := v * 0x9e3779b1
	return int(h^h>>15) & (len(p.list) - 1)
}

// at is where a vertex is, or would be.
func (p *places) at(v uint32) int {
	i, mask := p.home(v), len(p.list)-1
	for p.list[i].place >= 0 && p.list[i].vertex != v {
		i = (i + 1) & mask
	}
	return i
}

// find is the place of a vertex; -1: it has none.
func (p *places) find(v uint32) int32 { return p.list[p.at(v)].place }

// put gives a place to a vertex that has none.
func (p *places) put(v uint32, place int32) {
	if 2*p.used >= len(p.list) {
		p.grow(2 * len(p.list))
	}
	p.list[p.at(v)] = vertexPlace{v, place}
	p.used++
}

// set gives another place to a vertex that has one.
func (p *places) set(v uint32, place int32) { p.list[p.at(v)].place = place }

// remove takes a vertex's place, and moves those after it that would not be found any more.
func (p *places) remove(v uint32) {
	i, mask := p.at(v), len(p.list)-1
	if p.list[i].place < 0 {
		return
	}
	p.used--
	for j := (i + 1) & mask; p.list[j].place >= 0; j = (j + 1) & mask {
		if home := p.home(p.list[j].vertex); (j-home)&mask >= (j-i)&mask {
			p.list[i], i = p.list[j], j
		}
	}
	p.list[i].place = -1
}
