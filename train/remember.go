package train

import (
	"fmt"
	"slices"

	"starling/nn"
	"starling/tensor"
)

// remembered is a matrix that the next epoch needs from this one, beside weights and
// the optimiser's state. A checkpoint without it would go on another way.
type remembered struct {
	name string
	rows tensor.Matrix
}

// remembering is a mover that has such matrices.
type remembering interface {
	// remember lists them, in a fixed order. Nothing is on its way to them after it.
	remember() []remembered
}

// Caches are what the strategy needs from the epochs before. A worker that sent nothing
// has no rests, and others may: its list is empty then, not nil.
func (x *exchanging) Caches() []nn.Tensor {
	m, ok := x.move.(remembering)
	if !ok {
		return x.known
	}
	list := append(x.download(m.remember()), x.known...)
	if list == nil && x.opt.Strategy.WireRows != "" {
		list = []nn.Tensor{}
	}
	return list
}

// figures are numbers that the clock or the machine decides, and that choices follow
// from. A run that goes on takes those it began with: it must choose as before.
func (s *site) figures(name string, n int, measure func() ([]float64, error)) (list []float64, err error) {
	if s.opt.Resume != nil {
		for _, t := range s.opt.Resume.Caches {
			if t.Name == name && slices.Equal(t.Shape, []int{1, n}) {
				list = t.Numbers()
			}
		}
	}
	if list == nil && s.rehearsed {
		return nil, fmt.Errorf("%s: %w", s.opt.Strategy.Name, ErrUnplanned)
	}
	if list == nil {
		if list, err = measure(); err != nil {
			return nil, err
		}
	}
	s.known = append(s.known, nn.Tensor{Name: name, Shape: []int{1, n}, F64: true, Data: list})
	return list, nil
}

// download gives matrices out as they lie: a copy of all would be as large as they are.
func (s *site) download(list []remembered) (out []nn.Tensor) {
	for _, r := range list {
		m := r.rows
		out = append(out, nn.Tensor{Name: r.name, Shape: []int{m.Rows, m.Cols}, F64: m.Type() == tensor.F64, Read: func(into []float64, row int) {
			s.dev.Download(into, m.Slice(row, row+len(into)/m.Cols))
		}})
	}
	return out
}

// recall fills a matrix with what it was when the run was saved that this one goes
// on from. It reports whether there was any. That is then forgotten: it takes memory.
func (s *site) recall(name string, m tensor.Matrix) bool {
	if s.opt.Resume == nil {
		return false
	}
	all := s.opt.Resume.Caches
	i := slices.IndexFunc(all, func(t nn.Tensor) bool { return t.Name == name })
	if i < 0 {
		return false
	}
	t := all[i]
	s.opt.Resume.Caches = slices.Delete(all, i, i+1)
	if !slices.Equal(t.Shape, []int{m.Rows, m.Cols}) {
		return false
	}
	t.Pieces(func(numbers []float64, row int) {
		s.dev.Upload(m.Slice(row, row+len(numbers)/m.Cols), numbers)
	})
	return true
}
