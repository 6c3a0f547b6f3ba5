package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"starling/coflow"
	"starling/rng"
	"starling/sample"
)

// Embeddings are rows of vertices that are learnt, one per vertex, each kept and updated by its
// owner. Only rows that a batch needs are pulled, and only these have gradients and are updated:
//
//	adam      m ← β1 m + (1-β1) g,  s ← β2 s + (1-β2) g²,  x ← x - lr m̂ / (√ŝ + ε)
//	adagrad   s ← s + g²,  x ← x - lr g / (√s + ε)
//
// with Adam's corrections for the number of steps of the table, as PyTorch's SparseAdam has them.
// Gradients are pushed in one of two ways:
//
//	Step   all workers push, perhaps nothing, and the owner adds up what they pushed in the
//	       order of ranks, updates, and only then answers: rows are equal to one worker's
//	       (embeddings_step.go)
//	Async  the owner updates with each push when it arrives, as DistDGL does (Hogwild): rows
//	       depend on the order in which pushes happen to arrive (push.go)
type Embeddings struct {
	Dim, Size int // numbers of a row, bytes of a number: 4 or 8
	Adagrad   bool
	Steps     int // updates so far
	Threads   int // that update rows; 0: one

	s       *Store
	rows    *Rows
	table   Table
	moments [2][]byte
	by      split      // of a step
	own     stepPush   // this worker's gradients of a step
	chains  chains     // of the gradients of a step
	ahead   *rowsAhead // nil: rows are pulled when a step begins
	mu      struct {
		sync.Mutex
		rounds map[uint32]*round // of Step, by step
	}
}

const beta1, beta2, epsilon = 0.9, 0.999, 1e-8

var useEmbeddings = sample.Use("embeddings")

// AddEmbeddings adds a table of embeddings, drawn from a normal distribution of deviation 1/√dim
// by seed and id of the vertex. All workers call it.
func (s *Store) AddEmbeddings(dim, size int, adagrad bool, seed uint64) (*Embeddings, error) {
	core := s.Part.Core()
	e := newEmbeddings(core, dim, size)
	e.s, e.Adagrad, e.rows.Offsets = s, adagrad, s.Book.Offsets
	scale := 1 / math.Sqrt(float64(dim))
	for v := range core {
		key := rng.New(seed).Fold(useEmbeddings).Fold(uint64(s.Part.IDs[v]))
		for c := range dim {
			putNumber(e.rows.Data, v*dim+c, size, scale*key.Normal(uint64(c)))
		}
	}
	return e, s.addEmbeddings(e)
}

// number and putNumber read and write number i of a table whose numbers have size bytes.
func number(b []byte, i, size int) float64 {
	if size == 8 {
		return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
}

func putNumber(b []byte, i, size int, x float64) {
	if size == 8 {
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
	} else {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(x)))
	}
}

// Numbers are all numbers of a table's bytes.
func (e *Embeddings) Numbers(b []byte) []float64 {
	out := make([]float64, len(b)/e.Size)
	if e.Size == 4 {
		for i := range out {
			out[i] = number(b, i, 4)
		}
		return out
	}
	copy(bytesOf(out), b)
	return out
}

// Bytes are numbers as the table has them: the inverse of Numbers.
func (e *Embeddings) Bytes(numbers []float64) []byte {
	b := make([]byte, len(numbers)*e.Size)
	for i, x := range numbers {
		putNumber(b, i, e.Size, x)
	}
	return b
}

// Pull fills to with the rows of vertices.
func (e *Embeddings) Pull(ctx context.Context, p *Puller, id coflow.ID, to []byte, numbers []uint32) error {
	return p.Rows(ctx, id, e.table, to, numbers)
}

// Own is a copy of this worker's rows, and of the optimizer's moments of them.
func (e *Embeddings) Own() (rows []byte, moments [2][]byte) {
	e.rows.mu.RLock()
	defer e.rows.mu.RUnlock()
	return slices.Clone(e.rows.Data), [2][]byte{slices.Clone(e.moments[0]), slices.Clone(e.moments[1])}
}

// OwnRows is a copy of this worker's rows.
func (e *Embeddings) OwnRows() []byte {
	e.rows.mu.RLock()
	defer e.rows.mu.RUnlock()
	return slices.Clone(e.rows.Data)
}

// Restore takes the numbers that Own returned, and the steps.
func (e *Embeddings) Restore(rows []float64, moments [2][]float64, steps int) error {
	for i, list := range [][]float64{rows, moments[0], moments[1]} {
		to := [][]byte{e.rows.Data, e.moments[0], e.moments[1]}[i]
		if len(list)*e.Size != len(to) {
			return fmt.Errorf("%d numbers of embeddings, this worker has %d", len(list), len(to)/e.Size)
		}
		for k, x := range list {
			putNumber(to, k, e.Size, x)
		}
	}
	e.Steps = steps
	return nil
}

// Async gives owners the gradients of rows, which they are updated with when they arrive.
func (e *Embeddings) Async(ctx context.Context, id coflow.ID, lr float64, numbers []uint32, gradients []byte) error {
	values := make([]byte, len(numbers)*e.rows.PushWidth)
	for i := range numbers {
		to := values[i*e.rows.PushWidth:]
		copy(to, gradients[i*e.rows.Width:(i+1)*e.rows.Width])
		putNumber(to, e.Dim, e.Size, lr)
	}
	return e.s.Push(ctx, id, e.table, numbers, values)
}

// applyNow updates rows with a push of Async.
func (e *Embeddings) applyNow(rows []uint32, values []byte) error {
	e.Steps++
	step, gradient := e.newStep(0), make([]float64, e.Dim)
	for k, v := range rows {
		from := values[k*e.rows.PushWidth:]
		clear(gradient)
		addNumbers(gradient, from, e.Size)
		step.at(number(from, e.Dim, e.Size))
		step.update(int(v), gradient)
	}
	return nil
}
