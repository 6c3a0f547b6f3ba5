package rows

import (
	"fmt"
	"os"
	"sync/atomic"
)

// packed is a file in which the rows that each batch of a window misses are together.
type packed struct {
	f  *os.File
	at []int64 // of each batch's rows
}

// packer writes such files.
type packer struct {
	layout  *layout
	e       engine
	buffers [][]byte // that rows are read into
	writes  int      // bytes of those that rows are written from
	dir     string
	stats   *Stats
	ended   *atomic.Bool
}

// leastWrite and mostWrite bound the pieces that are written.
const leastWrite, mostWrite = 16 << 10, 256 << 10

// pack makes the file of a window. full is why the disk does not hold it.
func (p *packer) pack(needs []*need) (out *packed, full, err error) {
	out = &packed{at: make([]int64, len(needs))}
	total := int64(0)
	lists := make([][]uint32, len(needs))
	for k, n := range needs {
		out.at[k], lists[k] = total, n.read
		total += up(int64(len(n.read)) * int64(p.layout.width))
	}
	if out.f, full = openScratch(p.dir); full != nil {
		return nil, full, nil
	}
	if full = reserve(out.f, total); full != nil {
		return nil, full, out.f.Close()
	}
	w, err := p.newWriter(out, len(needs))
	if err == nil {
		err = p.fill(w, lists)
		free(w.all)
	}
	if err != nil {
		out.f.Close()
		return nil, nil, err
	}
	return out, nil, nil
}

// fill passes over the files and gives each batch its rows.
func (p *packer) fill(w *writer, lists [][]uint32) error {
	left := make([][]uint32, len(lists))
	copy(left, lists)
	err := p.layout.sweep(p.e, p.buffers, p.layout.piecesOf(lists), p.stats, func(x *piece, b []byte) error {
		for k := range left {
			for len(left[k]) > 0 && left[k][0] < x.hi {
				if err := w.add(k, p.layout.row(x, b, left[k][0])); err != nil {
					return err
				}
				left[k] = left[k][1:]
			}
		}
		if p.ended.Load() {
			return errEnded
		}
		return nil
	})
	for k := range lists {
		if err == nil {
			err = w.flush(k)
		}
	}
	for _, r := range w.running {
		if failed := finish(p.e, r); err == nil { // all have to end: they read from memory that is freed
			err = failed
		}
	}
	return err
}

// writer collects rows by batch and writes full buffers.
type writer struct {
	p       *packer
	f       *os.File
	all     []byte
	size    int
	to      [][]byte // by batch
	at      []int64  // where the next buffer of a batch goes
	free    [][]byte
	running []*request
}

// spareWrites is the number of buffers that may be on their way to the disk.
const spareWrites = 16

func (p *packer) newWriter(to *packed, batches int) (*writer, error) {
	size := min(max(p.writes/(batches+spareWrites), leastWrite), mostWrite) / block * block
	w := &writer{p: p, f: to.f, size: size, at: append([]int64(nil), to.at...), to: make([][]byte, batches)}
	var err error
	if w.all, err = memory(size * (batches + spareWrites)); err != nil {
		return nil, err
	}
	for i := range batches + spareWrites {
		b := w.all[i*size : i*size : (i+1)*size]
		if i < batches {
			w.to[i] = b
		} else {
			w.free = append(w.free, b)
		}
	}
	return w, nil
}

// add adds a row to a batch's.
func (w *writer) add(k int, row []byte) error {
	for len(row) > 0 {
		n := min(len(row), cap(w.to[k])-len(w.to[k]))
		w.to[k] = append(w.to[k], row[:n]...)
		if row = row[n:]; len(w.to[k]) == w.size {
			if err := w.flush(k); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes what a batch has, in whole blocks.
func (w *writer) flush(k int) error {
	b := w.to[k]
	if len(b) == 0 {
		return nil
	}
	whole := b[:up(int64(len(b)))]
	clear(whole[len(b):])
	r := &request{file: w.f, at: w.at[k], buf: whole, need: len(whole), write: true}
	w.at[k] += int64(len(whole))
	w.p.stats.wrote(len(whole))
	if err := w.p.e.start(r); err != nil {
		return err
	}
	w.running = append(w.running, r)
	if len(w.free) == 0 {
		if err := w.reuse(); err != nil {
			return err
		}
	}
	last := len(w.free) - 1
	w.to[k], w.free = w.free[last], w.free[:last]
	return nil
}

// reuse waits for the buffer that has been on its way for longest.
func (w *writer) reuse() error {
	r := w.running[0]
	if err := finish(w.p.e, r); err != nil {
		return fmt.Errorf("packing rows of features: %w", err)
	}
	w.running = w.running[1:]
	w.free = append(w.free, r.buf[:0:w.size])
	return nil
}
