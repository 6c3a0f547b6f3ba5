package train

import (
	"slices"
	"strings"

	"starling/nn"
	"starling/tensor"
)

// Learnt are rows of vertices without features, as parameters of the worker that has the vertices. Their gradients are
// complete there, so that they travel nowhere, and so is the optimiser's state. They are saved with what the worker
// keeps for itself.
type Learnt struct {
	params []*nn.Param
	ids    [][]uint32 // of their rows
	optim  *nn.Optimiser
	best   []nn.Tensor
}

// The names of what is saved begin with these.
const (
	learntRows = "learnt.rows."
	learntBest = "learnt.best."
	learntStep = "learnt.optimiser."
	learntIDs  = "learnt.ids." // vertices of the rows
)

func newLearnt(dev tensor.Device, x *nn.TypedInput, c nn.OptimConfig) *Learnt {
	l := learntOf(x)
	if l != nil {
		l.optim = nn.NewOptimiser(dev, l.params, c)
	}
	return l
}

// learntOf are the learnt rows of an input, which are not trained; nil: it has none.
func learntOf(x *nn.TypedInput) *Learnt {
	if x == nil {
		return nil
	}
	l := &Learnt{}
	for t, p := range x.Learnt {
		if p != nil {
			l.params, l.ids = append(l.params, p), append(l.ids, x.Vertices[t])
		}
	}
	if len(l.params) == 0 {
		return nil
	}
	return l
}

// LearntNumbers is how many numbers the learnt rows of the whole graph have.
func (f *Loop) LearntNumbers() (n int) {
	for t := range f.Schema.Count() {
		if typ := &f.Schema.Types[t]; typ.Features == nil {
			n += int(typ.Count) * f.Opt.Model.Hidden
		}
	}
	return n
}

// LearntTensors are learnt rows of a type, and the vertices that they are of, as a run starts from them.
func LearntTensors(rows nn.Tensor, vertices []uint32) []nn.Tensor {
	return append(prefixed(learntRows, []nn.Tensor{rows}), IDsTensor(learntIDs+rows.Name, vertices))
}

// start takes rows from another run; those of types that it does not have stay as they are.
func (l *Learnt) start(dev tensor.Device, saved []nn.Tensor) error {
	if l == nil {
		return nil
	}
	known := &Learnt{}
	for i, p := range l.params {
		if slices.ContainsFunc(saved, func(t nn.Tensor) bool { return t.Name == learntIDs+p.Name }) {
			known.params, known.ids = append(known.params, p), append(known.ids, l.ids[i])
		}
	}
	own, err := known.own(saved)
	if err != nil {
		return err
	}
	return nn.LoadTensors(dev, known.params, unprefixed(learntRows, own))
}

func (l *Learnt) zeroGrad(dev tensor.Device) {
	if l == nil {
		return
	}
	for _, p := range l.params {
		dev.Zero(p.Grad)
	}
}

func (l *Learnt) step(lr float64) {
	if l != nil {
		l.optim.Step(lr)
	}
}

func (l *Learnt) keepBest(dev tensor.Device) {
	if l != nil {
		l.best = nn.Tensors(dev, l.params)
	}
}

// loadBest makes the rows those of the best epoch.
func (l *Learnt) loadBest(dev tensor.Device) error {
	if l == nil || l.best == nil {
		return nil
	}
	return nn.LoadTensors(dev, l.params, l.best)
}

// tensors are all that a worker needs to go on.
func (l *Learnt) tensors(dev tensor.Device) []nn.Tensor {
	list := prefixed(learntRows, nn.Tensors(dev, l.params))
	for i, p := range l.params {
		list = append(list, IDsTensor(learntIDs+p.Name, l.ids[i]))
	}
	list = append(list, prefixed(learntStep, l.optim.State())...)
	return append(list, prefixed(learntBest, l.best)...)
}

func prefixed(prefix string, list []nn.Tensor) (out []nn.Tensor) {
	for _, t := range list {
		t.Name = prefix + t.Name
		out = append(out, t)
	}
	return out
}

// unprefixed are the tensors whose names begin so, without that.
func unprefixed(prefix string, list []nn.Tensor) (out []nn.Tensor) {
	for _, t := range list {
		if name, ok := strings.CutPrefix(t.Name, prefix); ok {
			t.Name = name
			out = append(out, t)
		}
	}
	return out
}

// load goes on from what tensors has saved.
func (l *Learnt) load(dev tensor.Device, saved []nn.Tensor, steps int) error {
	if l == nil {
		return nil
	}
	saved, err := l.own(saved)
	if err != nil {
		return err
	}
	rows := unprefixed(learntRows, saved)
	if err := nn.LoadTensors(dev, l.params, rows); err != nil {
		return err
	}
	l.best = unprefixed(learntBest, saved)
	return l.optim.Load(unprefixed(learntStep, saved), steps)
}

// Rows are the learnt rows of the best epoch, or of the last without one.
func (l *Learnt) Rows(dev tensor.Device) []nn.Tensor {
	if l.best != nil {
		return l.best
	}
	return nn.Tensors(dev, l.params)
}
