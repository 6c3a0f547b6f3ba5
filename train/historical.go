package train

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"starling/event"
	"starling/nn"
	"starling/tensor"
)

// historical keeps rows and gradients as they last came, to stand in for those that
// do not come in an epoch. It is part of a checkpoint.
type historical struct {
	*site
	first int // epoch of the run: nothing is kept before
	kept  map[keep]tensor.Matrix
	noted bool
}

// newHistorical is empty, unless the run goes on from one of the same strategy.
func newHistorical(s *site) *historical {
	h := &historical{site: s, kept: map[keep]tensor.Matrix{}}
	ours := func(t nn.Tensor) bool { return strings.HasPrefix(t.Name, s.opt.Strategy.Name+".") }
	if s.opt.Resume != nil && !slices.ContainsFunc(s.opt.Resume.Caches, ours) {
		h.first = s.opt.Resume.Epoch
	}
	return h
}

// keep names a matrix that outlives a pass.
type keep struct {
	layer int
	what  string // far: peers' rows; back: gradients that peers gave back; own: own rows as last sent
}

// name is what a checkpoint calls a matrix.
func (h *historical) name(k keep) string {
	return fmt.Sprintf("%s.%d.rows.%s", h.opt.Strategy.Name, k.layer, k.what)
}

// keeper is the matrix of a name, made when first asked for.
func (h *historical) keeper(k keep, t tensor.DType, rows, cols int) (kept tensor.Matrix, made bool) {
	kept, ok := h.kept[k]
	if !ok {
		kept = h.dev.New(t, rows, cols)
		h.kept[k] = kept
		ok = h.recall(h.name(k), kept)
	}
	return kept, !ok
}

// all lists every matrix that outlives a pass.
func (h *historical) all() (out []remembered) {
	for k, kept := range h.kept {
		out = append(out, remembered{h.name(k), kept})
	}
	slices.SortFunc(out, func(a, b remembered) int { return cmp.Compare(a.name, b.name) })
	return out
}

// note says once what is kept, when all of it is there: after the first epoch. One worker
// says it, as the others keep about as much.
func (h *historical) note() {
	if h.end.Rank() != 0 || len(h.kept) == 0 || h.noted {
		return
	}
	h.noted = true
	var bytes int64
	for _, kept := range h.kept {
		bytes += kept.Bytes()
	}
	h.events.On(event.Note{Minor: true, Text: fmt.Sprintf("%s: worker 0 keeps %.3g MiB of remote rows and their gradients", h.opt.Strategy.Name, float64(bytes)/(1<<20))})
}
