package shards

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"slices"

	"starling/disk/tasks"
	"starling/event"
	"starling/graph"
)

// rangeResult is what is known of a range of the dictionary.
type rangeResult struct{ Keys int64 }

// vertices says how many there are, and whether they are called by their numbers.
type numbering struct {
	n        int64
	identity bool
	ranges   []rangeResult
}

const (
	mostRanges  = 1024
	leastBuffer = 1 << 10
)

// ranges is how many pieces the dictionary is made in.
func (j *job) ranges() int {
	var keys int64
	for i := range j.counts {
		keys += j.counts[i].KeysBytes
	}
	return int(min(max(keys/(j.opt.Memory/16), 1), mostRanges)) // more than would fit, so that several processes have work
}

// number is stage number: it merges the runs of all shards.
func (j *job) number() error {
	if j.opt.Nodes > 0 && !j.text {
		j.numbers = numbering{n: j.opt.Nodes, identity: true}
		return nil
	}
	n := j.ranges()
	if err := j.f.Do(j.ctx, "number", n, j.mergeRange); err != nil {
		return err
	}
	x := &j.numbers
	for k := range n {
		var r rangeResult
		if err := j.f.Result("number", k, &r); err != nil {
			return err
		}
		x.ranges = append(x.ranges, r)
		x.n += r.Keys
	}
	if x.n > graph.MaxNodes {
		return &graph.InputError{File: j.dir, Found: event.Tally(x.n, "vertex"), Want: "fewer than 2^32", Fix: "split the graph"}
	}
	if !j.text {
		least, most := int64(0), int64(-1)
		first := true
		for i := range j.counts {
			if c := &j.counts[i]; c.Edges > 0 {
				if first {
					least, most = c.Least, c.Most
				}
				first, least, most = false, min(least, c.Least), max(most, c.Most)
			}
		}
		x.identity = least == 0 && most == x.n-1
	}
	return nil
}

// mergeRange merges what all runs have between two splitters.
func (j *job) mergeRange(k int, out *tasks.Out) (any, error) {
	n := j.ranges()
	indices := make([][]blockStart, len(j.counts))
	var starts [][]byte
	runs := 0
	for s := range j.counts {
		if j.counts[s].Edges == 0 {
			continue
		}
		var err error
		if indices[s], err = readIndex(j.f, "read", s, j.text); err != nil {
			return nil, err
		}
		for _, b := range indices[s] {
			starts = append(starts, b.key)
		}
		runs += len(j.counts[s].Chunks)
	}
	slices.SortFunc(starts, bytes.Compare)
	splitter := func(i int) []byte {
		if i <= 0 || i >= n {
			return nil
		}
		return starts[int64(i)*int64(len(starts))/int64(n)]
	}
	lo, hi := splitter(k), splitter(k+1)
	if int64(runs)*leastBuffer > j.opt.Memory/2 && runs > 1 {
		return nil, &graph.InputError{Field: "--memory", Found: event.Bytes(j.opt.Memory) + " for " + event.Tally(runs, "run") + " of ids",
			Want: "at least " + event.Bytes(2*int64(runs)*leastBuffer), Fix: "give more, and begin again"}
	}
	buffer := int(min(max(j.opt.Memory/4/int64(runs), leastBuffer), 1<<18))
	var m merge
	for s := range j.counts {
		if len(j.counts[s].Chunks) == 0 {
			continue
		}
		path, err := j.f.Path("read", s, "keys")
		if err != nil {
			return nil, err
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		for i, c := range j.counts[s].Chunks {
			end := j.counts[s].KeysBytes
			if i+1 < len(j.counts[s].Chunks) {
				end = j.counts[s].Chunks[i+1].KeysAt
			}
			from := startOf(indices[s], c.KeysAt, end, lo)
			m = append(m, &run{text: j.text, r: bufio.NewReaderSize(io.NewSectionReader(f, from, end-from), buffer)})
		}
	}
	indices, starts = nil, nil
	w := keyWriter{text: j.text}
	var err error
	if w.keys, err = out.Create("keys"); err != nil {
		return nil, err
	}
	if w.index, err = out.Create("index"); err != nil {
		return nil, err
	}
	if err := m.each(lo, hi, w.put); err != nil {
		return nil, err
	}
	return rangeResult{w.n}, j.ctx.Err()
}

// startOf is where the last block of a run begins whose first key is not above lo.
func startOf(index []blockStart, from, to int64, lo []byte) int64 {
	at, _ := slices.BinarySearchFunc(index, from, func(b blockStart, x int64) int { return int(min(max(b.at-x, -1), 1)) })
	start := from
	for ; at < len(index) && index[at].at < to && lo != nil && bytes.Compare(index[at].key, lo) <= 0; at++ {
		start = index[at].at
	}
	return start
}

// openDictionary opens all ranges; nil: ids are their numbers.
func (j *job) openDictionary() (*dictionary, error) {
	if j.numbers.identity {
		return nil, nil
	}
	d := &dictionary{text: j.text}
	first := int64(0)
	for k, r := range j.numbers.ranges {
		path, err := j.f.Path("number", k, "keys")
		if err != nil {
			return d, err
		}
		x := dictRange{first: uint32(first)}
		if x.index, err = readIndex(j.f, "number", k, j.text); err != nil {
			return d, err
		}
		if x.f, err = os.Open(path); err != nil {
			return d, err
		}
		info, err := x.f.Stat()
		if err != nil {
			return d, err
		}
		x.size = info.Size()
		first += r.Keys
		if r.Keys > 0 {
			d.ranges = append(d.ranges, x)
		} else {
			x.f.Close()
		}
	}
	return d, nil
}
