package exchange

import (
	"fmt"
	"slices"
	"strings"

	"starling/event"
	"starling/nn"
	"starling/tensor"
)

// Stale keeps rows and gradients as they last came, to stand in for those that do not come
// in an epoch. It is part of a checkpoint.
type Stale struct {
	First int // epoch of the run: nothing is kept before
	w     *Worker
	kept  map[StaleKey]tensor.Matrix
	noted bool
}

// StaleKey names a matrix that outlives a pass.
type StaleKey struct {
	Layer int
	What  string // halo: peers' rows; returned: gradients that peers sent; sent: own rows as last sent
}

// NewStale is empty, unless the run continues from one of the same strategy.
func NewStale(w *Worker) *Stale {
	s := &Stale{w: w, kept: map[StaleKey]tensor.Matrix{}}
	ours := func(t nn.Tensor) bool { return strings.HasPrefix(t.Name, w.Strategy+".") }
	if w.Saved.Resumed && !slices.ContainsFunc(w.Saved.Tensors, ours) {
		s.First = w.Saved.Epoch
	}
	return s
}

// name is what a checkpoint calls a matrix.
func (s *Stale) name(k StaleKey) string {
	return fmt.Sprintf("%s.%d.rows.%s", s.w.Strategy, k.Layer, k.What)
}

// Rows is the matrix of a name. fresh: it was made now, and nothing was recalled into it.
func (s *Stale) Rows(k StaleKey, t tensor.DType, rows, cols int) (kept tensor.Matrix, fresh bool) {
	kept, ok := s.kept[k]
	if !ok {
		kept = s.w.Dev.New(t, rows, cols)
		s.kept[k] = kept
		ok = s.w.Recall(s.name(k), kept)
	}
	return kept, !ok
}

// Save lists every matrix that outlives a pass.
func (s *Stale) Save() []SavedRows { return SavedByName(s.kept, s.name) }

// Note says once what is kept, when all of it is there: after the first epoch.
func (s *Stale) Note() {
	if len(s.kept) == 0 || s.noted {
		return
	}
	s.noted = true
	var bytes int64
	for _, kept := range s.kept {
		bytes += kept.Bytes()
	}
	s.w.Note("%s: worker 0 keeps %s of what others sent last", s.w.Strategy, event.Bytes(bytes))
}
