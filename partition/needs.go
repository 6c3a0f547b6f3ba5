package partition

import "slices"

// needs are the vertices of each part that others need, each once: a bit for each part and vertex where parts are few,
// else a list that is sorted when it has doubled since it was last.
type needs struct {
	k     int
	bits  []bitset // by part
	nodes int
	list  []uint64 // part and number
	most  int      // entries of the list, then it is sorted
}

// fewParts have four bytes of bits for each vertex at most.
const fewParts = 32

// leastSorted is the length from which on a list is sorted before its end.
var leastSorted = 1 << 20

func newNeeds(k, nodes int) *needs {
	n := &needs{k: k, nodes: nodes, most: leastSorted}
	if k <= fewParts {
		for range k {
			n.bits = append(n.bits, newBits(nodes))
		}
	}
	return n
}

// add notes that others need a vertex of a part.
func (n *needs) add(part, v uint32) {
	if n.bits != nil {
		n.bits[part].set(v)
		return
	}
	if n.list = append(n.list, uint64(part)<<32|uint64(v)); len(n.list) >= n.most {
		n.sort()
		n.most = max(leastSorted, 2*len(n.list))
	}
}

func (n *needs) sort() {
	slices.Sort(n.list)
	n.list = slices.Compact(n.list)
}

// byPart lists the vertices in ascending order, part by part, and where each part's begin.
func (n *needs) byPart() (list []uint32, first []int64) {
	first = make([]int64, n.k+1)
	for p := range n.bits {
		for v := range uint32(n.nodes) {
			if n.bits[p].has(v) {
				list = append(list, v)
			}
		}
		first[p+1] = int64(len(list))
	}
	if n.bits != nil {
		return list, first
	}
	n.sort()
	list = make([]uint32, len(n.list))
	for i, x := range n.list {
		list[i] = uint32(x)
		first[x>>32+1]++
	}
	for p := range n.k {
		first[p+1] += first[p]
	}
	return list, first
}
