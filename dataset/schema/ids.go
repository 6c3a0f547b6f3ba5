package schema

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"

	"starling/dataset/table"
)

// ids are the names of a type's vertices, in the order of its rows: whole numbers, or else text. Numbers 0, 1, 2, …
// take no memory, others 8 bytes and a slot of 4 to 8, text its bytes, 8 and a slot.
type ids struct {
	n       int
	plain   bool // ids are 0 to n-1
	text    bool
	numbers []int64
	data    []byte
	ends    []int64
	slots   []uint32 // open addressing: 1 + vertex; 0: free
	seed    maphash.Seed
}

func newIDs() *ids { return &ids{plain: true, seed: maphash.MakeSeed()} }

// counted are n vertices that are named by their numbers.
func counted(n int) *ids { return &ids{n: n, plain: true, seed: maphash.MakeSeed()} }

// add takes the ids of a batch. It refuses missing ones and those that are there already.
func (x *ids) add(b *table.Batch, v *table.Values, column string) error {
	refuse := func(i int, found, want, fix string) error {
		return place{b.File, fmt.Sprintf("%s, column %s", b.Place(i), column)}.wrong(found, want, fix)
	}
	for i := range b.Rows {
		if v.IsMissing(i) {
			return refuse(i, "no id", "an id in every row", "fill it in, or remove the row")
		}
		if x.n >= math.MaxUint32-1 {
			return refuse(i, "more than 2^32 vertices", "fewer", "split the graph")
		}
		var at int
		var fresh bool
		if v.Text != nil {
			at, fresh = x.addText(v.Text[i])
		} else {
			at, fresh = x.addNumber(v.Whole[i])
		}
		if !fresh {
			return refuse(i, fmt.Sprintf("%.60q a second time, first in row %d", x.name(at), at),
				"every id once",
				"remove one of the rows, or rename it")
		}
	}
	return nil
}

// canonical reads a whole number that is written as numbers are: 7, and not 007.
func canonical(s string) (int64, bool) {
	if len(s) == 0 || len(s) > 20 || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || s[0] == '0' && len(s) > 1 || s[0] == '-' && (n == 0 || s[1] == '0') {
		return 0, false
	}
	return n, true
}

func (x *ids) addText(s string) (at int, fresh bool) {
	if !x.text {
		if n, ok := canonical(s); ok {
			return x.addNumber(n)
		}
		x.toText()
	}
	x.grow()
	slot, found := x.lookText(s)
	if found {
		return int(*slot - 1), false
	}
	x.data = append(x.data, s...)
	x.ends = append(x.ends, int64(len(x.data)))
	x.n++
	*slot = uint32(x.n)
	return x.n - 1, true
}

func (x *ids) addNumber(n int64) (at int, fresh bool) {
	if x.text {
		return x.addText(strconv.FormatInt(n, 10))
	}
	if x.plain {
		if n == int64(x.n) {
			x.n++
			return x.n - 1, true
		}
		x.unplain()
	}
	x.grow()
	slot, found := x.lookNumber(n)
	if found {
		return int(*slot - 1), false
	}
	x.numbers = append(x.numbers, n)
	x.n++
	*slot = uint32(x.n)
	return x.n - 1, true
}

// unplain writes the numbers 0 to n-1 down.
func (x *ids) unplain() {
	x.plain = false
	n := x.n
	x.n = 0
	for i := range n {
		x.addNumber(int64(i))
	}
}

// toText turns numbers into text.
func (x *ids) toText() {
	n, numbers, plain := x.n, x.numbers, x.plain
	x.n, x.numbers, x.plain, x.text, x.slots = 0, nil, false, true, nil
	for i := range n {
		if plain {
			x.addText(strconv.Itoa(i))
		} else {
			x.addText(strconv.FormatInt(numbers[i], 10))
		}
	}
}

// grow keeps a quarter of the slots free for one id more.
func (x *ids) grow() {
	if 4*(x.n+1) <= 3*len(x.slots) {
		return
	}
	x.slots = make([]uint32, max(64, 2*len(x.slots)))
	for v := range x.n {
		var slot *uint32
		if x.text {
			slot, _ = x.lookText(x.name(v))
		} else {
			slot, _ = x.lookNumber(x.numbers[v])
		}
		*slot = uint32(v + 1)
	}
}

func (x *ids) lookText(s string) (slot *uint32, found bool) {
	mask := len(x.slots) - 1
	for at := int(maphash.String(x.seed, s)) & mask; ; at = (at + 1) & mask {
		slot = &x.slots[at]
		if *slot == 0 {
			return slot, false
		}
		if string(x.line(int(*slot-1))) == s {
			return slot, true
		}
	}
}

func (x *ids) lookNumber(n int64) (slot *uint32, found bool) {
	mask := len(x.slots) - 1
	h := uint64(n) * 0x9e3779b97f4a7c15
	for at := int(h^h>>32) & mask; ; at = (at + 1) & mask {
		slot = &x.slots[at]
		if *slot == 0 {
			return slot, false
		}
		if x.numbers[*slot-1] == n {
			return slot, true
		}
	}
}

func (x *ids) line(v int) []byte {
	start := int64(0)
	if v > 0 {
		start = x.ends[v-1]
	}
	return x.data[start:x.ends[v]]
}

// name is the id of a vertex.
func (x *ids) name(v int) string {
	switch {
	case x.plain:
		return strconv.Itoa(v)
	case x.text:
		return string(x.line(v))
	}
	return strconv.FormatInt(x.numbers[v], 10)
}

// find is the vertex of row i of a batch.
func (x *ids) find(v *table.Values, i int) (uint32, bool) {
	if v.Text != nil {
		return x.findText(v.Text[i])
	}
	return x.findNumber(v.Whole[i])
}

func (x *ids) findText(s string) (uint32, bool) {
	if !x.text {
		n, ok := canonical(s)
		if !ok {
			return 0, false
		}
		return x.findNumber(n)
	}
	if len(x.slots) == 0 {
		return 0, false
	}
	slot, found := x.lookText(s)
	return *slot - 1, found
}

func (x *ids) findNumber(n int64) (uint32, bool) {
	switch {
	case x.plain:
		return uint32(n), n >= 0 && n < int64(x.n)
	case x.text:
		return x.findText(strconv.FormatInt(n, 10))
	case len(x.slots) == 0:
		return 0, false
	}
	slot, found := x.lookNumber(n)
	return *slot - 1, found
}

// names are all ids as text.
func (x *ids) names() []string {
	out := make([]string, x.n)
	for v := range out {
		out[v] = x.name(v)
	}
	return out
}

// settle puts whole numbers in order: vertices that have no table are in that of their ids.
func (x *ids) settle() {
	if x.plain || x.text {
		return
	}
	numbers := x.numbers
	slices.Sort(numbers)
	*x = ids{plain: true, seed: x.seed}
	for _, n := range numbers {
		x.addNumber(n)
	}
}
