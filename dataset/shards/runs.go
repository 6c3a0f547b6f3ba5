package shards

import (
	"bufio"
	"bytes"
	"container/heap"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"

	"starling/disk/tasks"
)

// A file of keys has numbers of 8 bytes each, or names behind their lengths. Every blockKeys keys a block begins, whose
// first key and place are in an index.
const blockKeys = 1024

// keyWriter writes ascending keys, and their index.
type keyWriter struct {
	text       bool
	keys       *tasks.Writer
	index      *tasks.Writer
	n          int64
	inBlock    int
	first      []byte // of all
	last       []byte
	buf        [binary.MaxVarintLen64]byte
	begin, end int64
}

func (w *keyWriter) put(key []byte) error {
	if w.inBlock == 0 {
		if err := w.putIndex(key); err != nil {
			return err
		}
	}
	if w.inBlock++; w.inBlock == blockKeys {
		w.inBlock = 0
	}
	if w.n == 0 {
		w.first = bytes.Clone(key)
	}
	w.last = append(w.last[:0], key...)
	w.n++
	return w.putKey(w.keys, key)
}

func (w *keyWriter) putKey(to io.Writer, key []byte) error {
	if w.text {
		if _, err := to.Write(w.buf[:binary.PutUvarint(w.buf[:], uint64(len(key)))]); err != nil {
			return err
		}
	}
	_, err := to.Write(key)
	return err
}

func (w *keyWriter) putIndex(key []byte) error {
	var at [8]byte
	binary.LittleEndian.PutUint64(at[:], uint64(w.keys.Bytes()))
	if _, err := w.index.Write(at[:]); err != nil {
		return err
	}
	return w.putKey(w.index, key)
}

// startRun begins a run: its first key begins a block.
func (w *keyWriter) startRun() { w.inBlock = 0 }

// blockStart is where a block begins, and with which key.
type blockStart struct {
	at  int64
	key []byte
}

// readIndex reads the index of a file of keys.
func readIndex(f *tasks.Folder, stage string, k int, text bool) (list []blockStart, err error) {
	r, err := f.Open(stage, k, "index")
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		var at [8]byte
		if _, err := io.ReadFull(r, at[:]); err == io.EOF {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		key, err := readKey(r.Reader, text, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, blockStart{int64(binary.LittleEndian.Uint64(at[:])), key})
	}
}

// mostKey bounds the memory that a damaged file can take.
const mostKey = 1 << 20

// readKey reads a key into a buffer.
func readKey(r *bufio.Reader, text bool, into []byte) ([]byte, error) {
	n := uint64(8)
	if text {
		var err error
		if n, err = binary.ReadUvarint(r); err != nil {
			return nil, err
		}
		if n > mostKey {
			return nil, fmt.Errorf("a name of %d bytes", n)
		}
	}
	into = slices.Grow(into[:0], int(n))[:n]
	_, err := io.ReadFull(r, into)
	if err == io.EOF && text {
		err = io.ErrUnexpectedEOF
	}
	return into, err
}

// run is one run on its way through a merge.
type run struct {
	r    *bufio.Reader
	text bool
	key  []byte
}

// next goes to the following key; false at the end of the run.
func (r *run) next() (bool, error) {
	var err error
	r.key, err = readKey(r.r, r.text, r.key)
	if err == io.EOF {
		return false, nil
	}
	return err == nil, err
}

// merge passes the keys of all runs in order, each once.
type merge []*run

func (m merge) Len() int           { return len(m) }
func (m merge) Less(i, j int) bool { return bytes.Compare(m[i].key, m[j].key) < 0 }
func (m merge) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(any)          {}
func (m *merge) Pop() any {
	old := *m
	last := old[len(old)-1]
	*m = old[:len(old)-1]
	return last
}

// each passes keys from lo on up to hi; nil: from the first, to the last.
func (m merge) each(lo, hi []byte, put func(key []byte) error) error {
	var alive merge
	for _, r := range m {
		for {
			more, err := r.next()
			if err != nil {
				return err
			}
			if !more {
				break
			}
			if lo == nil || bytes.Compare(r.key, lo) >= 0 {
				alive = append(alive, r)
				break
			}
		}
	}
	heap.Init(&alive)
	var last []byte
	some := false
	for len(alive) > 0 {
		r := alive[0]
		if hi != nil && bytes.Compare(r.key, hi) >= 0 {
			return nil
		}
		if !some || !bytes.Equal(r.key, last) {
			some = true
			last = append(last[:0], r.key...)
			if err := put(last); err != nil {
				return err
			}
		}
		more, err := r.next()
		if err != nil {
			return err
		}
		if more {
			heap.Fix(&alive, 0)
		} else {
			heap.Pop(&alive)
		}
	}
	return nil
}

// dictionary finds the numbers of keys that come in ascending order.
type dictionary struct {
	text   bool
	ranges []dictRange
	at     int // the range of the last key
	block  int // its block
	loaded bool
	keys   *bufio.Reader
	key    []byte
	number uint32 // of key
	valid  bool
	raw    []byte
}

type dictRange struct {
	f     *os.File
	size  int64
	first uint32
	index []blockStart
}

func (d *dictionary) Close() {
	for i := range d.ranges {
		if d.ranges[i].f != nil {
			d.ranges[i].f.Close()
		}
	}
}

// restart begins with the least key again.
func (d *dictionary) restart() { d.at, d.block, d.loaded = 0, 0, false }

// find is the number of a key, which is there.
func (d *dictionary) find(key []byte) (uint32, error) {
	if err := d.seek(key); err != nil {
		return 0, err
	}
	for {
		if !d.valid {
			return 0, fmt.Errorf("an id of an edge is missing in the dictionary")
		}
		switch bytes.Compare(d.key, key) {
		case 0:
			return d.number, nil
		case 1:
			return 0, fmt.Errorf("an id of an edge is missing in the dictionary")
		}
		if err := d.step(); err != nil {
			return 0, err
		}
	}
}

// seek loads the block that the key is in, if it is another one.
func (d *dictionary) seek(key []byte) error {
	at, block := d.at, d.block
	for at+1 < len(d.ranges) && len(d.ranges[at+1].index) > 0 && bytes.Compare(d.ranges[at+1].index[0].key, key) <= 0 {
		at, block = at+1, 0
	}
	index := d.ranges[at].index
	// Gallop: the next key is near.
	step := 1
	for block+step < len(index) && bytes.Compare(index[block+step].key, key) <= 0 {
		block += step
		step *= 2
	}
	for ; step > 0; step /= 2 {
		if block+step < len(index) && bytes.Compare(index[block+step].key, key) <= 0 {
			block += step
		}
	}
	if d.loaded && at == d.at && block == d.block {
		return nil
	}
	d.at, d.block, d.loaded = at, block, true
	r := &d.ranges[at]
	from, to := int64(0), r.size
	if len(index) > 0 {
		from = index[block].at
	}
	if block+1 < len(index) {
		to = index[block+1].at
	}
	d.raw = slices.Grow(d.raw[:0], int(to-from))[:to-from]
	if _, err := r.f.ReadAt(d.raw, from); err != nil && err != io.EOF {
		return err
	}
	if d.keys == nil {
		d.keys = bufio.NewReaderSize(nil, 1<<12)
	}
	d.keys.Reset(bytes.NewReader(d.raw))
	d.number = r.first + uint32(block*blockKeys) - 1
	return d.step()
}

// step goes to the next key of the block.
func (d *dictionary) step() (err error) {
	d.key, err = readKey(d.keys, d.text, d.key)
	d.number++
	d.valid = err == nil
	if err == io.EOF {
		err = nil
	}
	return err
}
