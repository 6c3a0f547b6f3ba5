package exchange

import (
	"cmp"
	"fmt"
	"slices"

	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// SavedRows is a matrix that the next epoch needs from this one, beside weights and the
// optimiser's state. A run resumed without it would take another path.
type SavedRows struct {
	Name string
	Rows tensor.Matrix
}

// Saving is a policy that has such matrices.
type Saving interface {
	// Save lists them, in a fixed order. Nothing is in flight to them after it.
	Save() []SavedRows
}

// SavedByName lists matrices in the order of their names.
func SavedByName[K comparable](matrices map[K]tensor.Matrix, name func(K) string) (out []SavedRows) {
	for k, m := range matrices {
		out = append(out, SavedRows{name(k), m})
	}
	slices.SortFunc(out, func(a, b SavedRows) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Saved is what a checkpoint has of a worker, and what the next one will have beside rows.
type Saved struct {
	// Resumed: the run continues from a checkpoint, made after Epoch epochs.
	Resumed bool
	Epoch   int
	// Tensors are the tensors of the checkpoint. Each is forgotten once it is used.
	Tensors []nn.Tensor
	// Figures are the figures that the strategy was chosen from.
	Figures []nn.Tensor
}

// Caches are what the policy needs from the epochs before. A worker that sent nothing has
// no residuals, and others may: its list is empty then, not nil.
func (a *Aggregator) Caches() []nn.Tensor {
	s, ok := a.policy.(Saving)
	if !ok {
		return a.W.Saved.Figures
	}
	list := append(a.W.readable(s.Save()), a.W.Saved.Figures...)
	if list == nil && codecs[a.W.WireDType] != tensor.Unpacked {
		list = []nn.Tensor{}
	}
	return list
}

// Chosen reports whether the strategy has chosen from figures of this machine, which another start
// would measure differently.
func (a *Aggregator) Chosen() bool { return len(a.W.Saved.Figures) > 0 }

// Kept is how many bytes Caches have.
func (a *Aggregator) Kept() (bytes int64) {
	if s, ok := a.policy.(Saving); ok {
		for _, m := range s.Save() {
			bytes += int64(m.Rows.Rows) * int64(m.Rows.Cols) * int64(a.W.Dev.Type().Size())
		}
	}
	return bytes
}

// readable are matrices to be read in place: a copy of all would be as large as they are.
func (w *Worker) readable(list []SavedRows) (out []nn.Tensor) {
	for _, r := range list {
		m := r.Rows
		out = append(out, nn.Tensor{Name: r.Name, Shape: []int{m.Rows, m.Cols}, F64: m.Type() == tensor.F64,
			Read: func(into []float64, row int) {
				w.Dev.Download(into, m.Slice(row, row+len(into)/m.Cols))
			}})
	}
	return out
}

// Recall fills a matrix with what it was in the checkpoint that the run continues from. It
// reports whether there was any. That is then forgotten: it takes memory.
func (w *Worker) Recall(name string, m tensor.Matrix) bool {
	i := slices.IndexFunc(w.Saved.Tensors, func(t nn.Tensor) bool { return t.Name == name })
	if i < 0 {
		return false
	}
	t := w.Saved.Tensors[i]
	w.Saved.Tensors = slices.Delete(w.Saved.Tensors, i, i+1)
	if !slices.Equal(t.Shape, []int{m.Rows, m.Cols}) {
		return false
	}
	t.Pieces(func(numbers []float64, row int) {
		w.Dev.Upload(m.Slice(row, row+len(numbers)/m.Cols), numbers)
	})
	return true
}

// Figures are numbers that the clock or the machine decides, and that choices follow from.
// A run that continues takes those it began with: it must choose as before.
func (w *Worker) Figures(name string, n int, measure func() ([]float64, error)) (list []float64, err error) {
	for _, t := range w.Saved.Tensors {
		if t.Name == name && slices.Equal(t.Shape, []int{1, n}) {
			list = t.Numbers()
		}
	}
	if list == nil && w.MemoryOnly {
		return nil, fmt.Errorf("%s of %s: %w", name, w.Strategy, wire.ErrUnplanned)
	}
	if list == nil {
		if list, err = measure(); err != nil {
			return nil, err
		}
	}
	w.Saved.Figures = append(w.Saved.Figures, nn.Tensor{Name: name, Shape: []int{1, n}, F64: true, Data: list})
	return list, nil
}
