package nn

import (
	"hash/fnv"
	"math"

	"starling/rng"
	"starling/tensor"
)

// Param is a trained matrix and its gradient.
type Param struct {
	Name  string // as PyG's state dict has it
	Shape []int  // as PyG's state dict has it
	// Transposed: weights are kept [in, out], so that rows times weights needs no
	// transpose, and saved [out, in].
	Transposed bool
	Layer      int // which layer it belongs to, for decay on the first only

	Value, Grad tensor.Matrix
	state       []tensor.Matrix // the optimiser's
}

// State is what the optimiser keeps beside the parameter.
func (p *Param) State() []tensor.Matrix { return p.state }

// Buffer is a matrix that is saved with the weights but not trained (running statistics).
type Buffer struct {
	Name  string
	Value tensor.Matrix
}

// initial draws the first values of a parameter.
type initial func(p *Param, key rng.Key) []float64

// zeros starts a parameter at zero, ones at one.
func zeros(p *Param, _ rng.Key) []float64 { return make([]float64, p.Value.Rows*p.Value.Cols) }

func ones(p *Param, _ rng.Key) []float64 {
	v := zeros(p, 0)
	for i := range v {
		v[i] = 1
	}
	return v
}

// uniform draws from [-bound, bound).
func uniform(bound float64) initial {
	return func(p *Param, key rng.Key) []float64 {
		v := zeros(p, 0)
		for i := range v {
			v[i] = bound * (2*key.Float64(uint64(i)) - 1)
		}
		return v
	}
}

// glorot keeps the variance of rows through a layer (Glorot and Bengio 2010):
// uniform within sqrt(6/(fanIn+fanOut)).
func glorot(fanIn, fanOut int) initial { return uniform(math.Sqrt(6 / float64(fanIn+fanOut))) }

// fanIn is what PyTorch's Linear starts from: uniform within 1/sqrt(fanIn).
func fanIn(n int) initial { return uniform(1 / math.Sqrt(float64(max(n, 1)))) }

// builder makes parameters while a model is put together. A parameter's draws are
// keyed by its name, so adding a layer does not change the others.
type builder struct {
	dev     tensor.Device
	key     rng.Key
	prefix  string
	layer   int
	params  []*Param
	buffers []*Buffer
}

// name is a name under the builder's prefix.
func (b *builder) name(s string) string { return b.prefix + s }

func (b *builder) add(name string, shape []int, transposed bool, rows, cols int, init initial) *Param {
	p := &Param{Name: b.name(name), Shape: shape, Transposed: transposed, Layer: b.layer,
		Value: b.dev.New(b.dev.Type(), rows, cols), Grad: b.dev.New(b.dev.Type(), rows, cols)}
	if _, ok := b.dev.(dryRun); !ok {
		b.dev.Upload(p.Value, init(p, b.key.Fold(hash(p.Name))))
	}
	b.params = append(b.params, p)
	return p
}

// weight is an in x out matrix, saved out x in.
func (b *builder) weight(name string, in, out int, init initial) *Param {
	return b.add(name, []int{out, in}, true, in, out, init)
}

// vector is a row of n numbers.
func (b *builder) vector(name string, n int, init initial) *Param {
	return b.add(name, []int{n}, false, 1, n, init)
}

func (b *builder) buffer(name string, start []float64) *Buffer {
	f := &Buffer{Name: b.name(name), Value: b.dev.New(tensor.F64, 1, len(start))}
	b.dev.Upload(f.Value, start)
	b.buffers = append(b.buffers, f)
	return f
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}
