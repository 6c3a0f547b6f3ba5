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
			if t.Name == name && len(t.Data) == n {
				list = t.Data
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

func (s *site) download(list []remembered) (out []nn.Tensor) {
	for _, r := range list {
		t := nn.Tensor{Name: r.name, Shape: []int{r.rows.Rows, r.rows.Cols}, F64: r.rows.Type() == tensor.F64, Data: make([]float64, r.rows.Rows*r.rows.Cols)}
		s.dev.Download(t.Data, r.rows)
		out = append(out, t)
	}
	return out
}

// recall fills a matrix with what it was when the run was saved that this one goes
// on from. It reports whether there was any.
func (s *site) recall(name string, m tensor.Matrix) bool {
	if s.opt.Resume == nil {
		return false
	}
	for _, t := range s.opt.Resume.Caches {
		if t.Name == name && slices.Equal(t.Shape, []int{m.Rows, m.Cols}) {
			s.dev.Upload(m, t.Data)
			return true
		}
	}
	return false
}
