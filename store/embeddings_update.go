package store

import (
	"encoding/binary"
	"math"
	"sync"
	"unsafe"
)

// Updating rows with the gradients that workers pushed. A row may have gradients of several workers; they are chained
// in the order of workers and added up in it, so that sums do not depend on how rows are divided over threads.

// chains are the gradients of each row. Gradients are numbered from 1 over all pushes.
type chains struct {
	first  []uint32 // by row of this worker; 0: it has none
	next   []uint32 // by gradient, the row's next; 0: it is the last
	pushes []*stepPush
	from   []int // gradients before each push
}

// link chains the gradients of pushes to some of rows.
func (c *chains) link(rows int, pushes []*stepPush) {
	if len(c.first) < rows {
		c.first = make([]uint32, rows)
	}
	c.pushes, c.from = pushes, c.from[:0]
	n := 0
	for _, p := range pushes {
		c.from = append(c.from, n)
		n += len(p.rows)
	}
	c.next = resize(c.next, n)
	for i := len(pushes) - 1; i >= 0; i-- {
		for k := len(pushes[i].rows) - 1; k >= 0; k-- {
			v := pushes[i].rows[k]
			at := c.from[i] + k
			c.next[at], c.first[v] = c.first[v], uint32(at+1)
		}
	}
}

// unlink forgets them.
func (c *chains) unlink() {
	for _, p := range c.pushes {
		for _, v := range p.rows {
			c.first[v] = 0
		}
	}
	c.pushes = nil
}

// values are the numbers of a gradient.
func (c *chains) values(gradient uint32, width int) []byte {
	i, at := len(c.from)-1, int(gradient)-1
	for c.from[i] > at {
		i--
	}
	return c.pushes[i].values[(at-c.from[i])*width:]
}

// leastRows are the fewest that another thread is started for.
const leastRows = 512

// update is a step of the rows that pushes have gradients of. REQUIRES: no other update is under way.
func (e *Embeddings) update(pushes []*stepPush) {
	e.rows.mu.Lock()
	defer e.rows.mu.Unlock()
	e.Steps++
	e.chains.link(len(e.rows.Data)/e.rows.Width, pushes)
	defer e.chains.unlink()
	var wg sync.WaitGroup
	defer wg.Wait()
	step := e.newStep(pushes[0].rate)
	for i, p := range pushes {
		each := max(leastRows, (len(p.rows)+e.Threads)/max(e.Threads, 1))
		for lo := 0; lo < len(p.rows); lo += each {
			hi := min(lo+each, len(p.rows))
			if hi == len(p.rows) {
				e.updateRows(step, i, lo, hi)
			} else {
				wg.Go(func() { e.updateRows(step, i, lo, hi) })
			}
		}
	}
}

// updateRows updates those rows whose first gradient is one of a push's lo to hi.
func (e *Embeddings) updateRows(step *optimizerStep, push, lo, hi int) {
	c, width, sum := &e.chains, e.rows.Width, make([]float64, e.Dim)
	p := c.pushes[push]
	for k := lo; k < hi; k++ {
		v, gradient := p.rows[k], uint32(c.from[push]+k+1)
		if c.first[v] != gradient {
			continue
		}
		clear(sum)
		addNumbers(sum, p.values[k*width:], e.Size)
		for gradient = c.next[gradient-1]; gradient > 0; gradient = c.next[gradient-1] {
			addNumbers(sum, c.values(gradient, width), e.Size)
		}
		step.update(int(v), sum)
	}
}

// addNumbers adds the first numbers of a table's bytes to a sum.
func addNumbers(sum []float64, b []byte, size int) {
	b = b[:len(sum)*size]
	if size == 4 {
		if at := unsafe.Pointer(unsafe.SliceData(b)); len(sum) > 0 && uintptr(at)%4 == 0 {
			addRow(sum, unsafe.Slice((*float32)(at), len(sum)))
			return
		}
		for i := range sum { // a message may begin at any address
			sum[i] += float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
		return
	}
	for i := range sum {
		sum[i] += math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

// optimizerStep is a step of the optimizer, whose corrections are the same for all rows.
type optimizerStep struct {
	e       *Embeddings
	rate    float64
	first   float64 // corrects first moments
	factors *adamFactors
}

// newStep divides once per step: a division per number costs more than all the rest.
func (e *Embeddings) newStep(rate float64) *optimizerStep {
	first, second := 1-math.Pow(beta1, float64(e.Steps)), 1-math.Pow(beta2, float64(e.Steps))
	o := &optimizerStep{e: e, first: first, factors: newAdamFactors(0, 1/second)}
	o.at(rate)
	return o
}

// at sets the learning rate.
func (o *optimizerStep) at(rate float64) { o.rate, o.factors.rate = rate, rate/o.first }

// update makes the step of a row. REQUIRES: the table's lock held.
func (o *optimizerStep) update(v int, gradient []float64) {
	e := o.e
	if e.Size == 4 {
		updateRow[float32](o, v, gradient, e.rows.Data, e.moments)
	} else {
		updateRow[float64](o, v, gradient, e.rows.Data, e.moments)
	}
}

func updateRow[F float32 | float64](o *optimizerStep, v int, gradient []float64, rows []byte, moments [2][]byte) {
	n := len(gradient)
	x, s := rowOf[F](rows, v, n), rowOf[F](moments[1], v, n)
	if o.e.Adagrad {
		for c, g := range gradient {
			sum := float64(s[c]) + g*g
			s[c] = F(sum)
			x[c] = F(float64(x[c]) - o.rate*g/(math.Sqrt(sum)+epsilon))
		}
		return
	}
	adamRow(x, rowOf[F](moments[0], v, n), s, gradient, o.factors)
}

// rowOf is row v of a table of n columns, which tableOf made.
func rowOf[F float32 | float64](table []byte, v, n int) []F {
	width := n * int(unsafe.Sizeof(F(0)))
	row := table[v*width : (v+1)*width]
	return unsafe.Slice((*F)(unsafe.Pointer(unsafe.SliceData(row))), n)
}
