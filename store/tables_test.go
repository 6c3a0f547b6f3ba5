package store

import (
	"slices"
	"testing"

	"starling/internal/testseed"
)

// TestRowTable: vertices are numbered as a map numbers them, also when the table is used again.
func TestRowTable(t *testing.T) {
	r := testseed.Rand(t)
	var table rowTable
	for range 5 {
		table.begin()
		var rows []uint32
		twin := map[uint32]uint32{}
		below := 1 + r.Uint32N(5000)
		for range r.IntN(4000) {
			v := r.Uint32N(below)
			want, ok := twin[v]
			if row, found := table.find(v); found != ok || ok && row != want {
				t.Fatalf("vertex %d is row %d (%v), want %d (%v)", v, row, found, want, ok)
			}
			if !ok {
				want = uint32(len(twin))
				twin[v] = want
			}
			var row uint32
			if row, rows = table.add(rows, v); row != want || rows[row] != v || len(rows) != len(twin) {
				t.Fatalf("vertex %d is row %d of %d, want %d", v, row, len(rows), want)
			}
		}
	}
}

// TestSplit: every number is with the part whose range has it, in the order of the list; parts may be empty.
func TestSplit(t *testing.T) {
	r := testseed.Rand(t)
	for range 100 {
		parts := 1 + r.IntN(6)
		offsets := []int64{0}
		for k := range parts {
			offsets = append(offsets, offsets[k]+int64(r.IntN(5)))
		}
		all := offsets[parts]
		if all == 0 {
			continue
		}
		numbers, _ := numbersBelow(r, 30, uint32(all))
		s, by := &Store{here: make([]*Owner, parts)}, split{places: [][]uint32{{7, 8, 9}}}
		s.split(&by, offsets, numbers)
		for q := range parts {
			var want []uint32
			for i, v := range numbers {
				if offsets[q] <= int64(v) && int64(v) < offsets[q+1] {
					want = append(want, uint32(i))
				}
			}
			if !slices.Equal(by.places[q], want) {
				t.Fatalf("part %d of %v has %v of %v, want %v", q, offsets, by.places[q], numbers, want)
			}
		}
	}
}

// TestLocalRows: an owner takes the numbers of its range, and no others.
func TestLocalRows(t *testing.T) {
	from := &rowSource{name: "rows", first: 10, count: 5}
	numbers := []uint32{10, 14, 12, 10}
	if err := from.local(numbers); err != nil || !slices.Equal(numbers, []uint32{0, 4, 2, 0}) {
		t.Errorf("%v, %v", numbers, err)
	}
	for _, v := range []uint32{9, 15, 0, 1<<32 - 1} {
		if err := from.local([]uint32{v}); err == nil {
			t.Errorf("row %d is taken", v)
		}
	}
}

// TestStaticCache: rows of chosen vertices are copied to their places, the places of others remain, and both are
// counted.
func TestStaticCache(t *testing.T) {
	r := testseed.Rand(t)
	const width = 4
	chosen := []uint32{30, 10, 20}
	c := &counted{Cache: newStatic(chosen, width)}
	for i, v := range chosen {
		copy(c.Cache.(*static).rows[i*width:], bytesOf([]uint32{v + 1000}))
	}
	hits, misses := 0, 0
	for range 20 {
		numbers, places := numbersBelow(r, 12, 40)
		for i := range numbers {
			numbers[i] = numbers[i] / 10 * 10
		}
		to, want := make([]uint32, len(numbers)), make([]uint32, len(numbers))
		var left []uint32
		for _, i := range places {
			if slices.Contains(chosen, numbers[i]) {
				want[i] = numbers[i] + 1000
				hits++
			} else {
				left = append(left, i)
				misses++
			}
		}
		if got := c.take(bytesOf(to), width, numbers, places); !slices.Equal(got, left) || !slices.Equal(to, want) {
			t.Fatalf("%v with %v left, want %v with %v", to, got, want, left)
		}
		c.keep(bytesOf(to), width, numbers, left) // changes nothing
	}
	if c.hits.Load() != int64(hits) || c.misses.Load() != int64(misses) {
		t.Errorf("%d hits and %d misses, want %d and %d", c.hits.Load(), c.misses.Load(), hits, misses)
	}
	var none *counted
	if places := []uint32{1, 2}; !slices.Equal(none.take(nil, width, nil, places), places) {
		t.Error("no cache has rows")
	}
}

// TestColumns: a set of columns and what it leaves out are all columns, and its bits say which.
func TestColumns(t *testing.T) {
	r := testseed.Rand(t)
	for range 100 {
		c := someColumns(r, 1+r.IntN(100))
		if c.Count()+len(c.others) != c.all {
			t.Fatalf("%d and %d of %d", c.Count(), len(c.others), c.all)
		}
		got, rest, err := columnsFrom(append(slices.Clone(c.bits), 5, 6), c.all)
		if err != nil || !slices.Equal(got.List(), c.List()) || !slices.Equal(rest, []uint32{5, 6}) {
			t.Fatalf("%v and %v, %v, want %v", got, rest, err, c.List())
		}
	}
}
