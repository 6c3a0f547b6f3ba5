package g3

import (
	"fmt"
	"os"

	"starling/disk"
	"starling/event"
	"starling/nn"
	"starling/tensor"
	"starling/train"
)

// spill lets finished bins of earlier layers leave memory until the backward pass comes back
// to them (§4.4.1: a bin is loaded, computed, and transferred out). With --memory-budget and
// --spill, once all bins of a phase are through and the matrices of a worker take more than
// the budget, the rows that the oldest phases keep go to a file, and before the backward
// pass of a phase those it needs are read again:
//
//	forward   phase 0 │ 1 │ 2 ▶ out 0 │ 3 ▶ out 1 │ …        backward  … │ 3 │ in 1 ▶ 2 │ in 0 ▶ 1 │ 0
//
// The oldest are needed last, so none that left is wanted soon. What a pass needs at once,
// the rows of three phases, is always there, whatever the budget.
type spill struct {
	dev    tensor.Evictor
	all    tensor.Device
	dir    string
	budget int64
	fail   func(error)

	file    *os.File
	end     int64             // of the file
	at      map[[2]int]int64  // places in it, by phase and matrix
	out     [][]tensor.Matrix // by phase: those that have left
	looked  int               // phases below have been looked at
	written int64             // bytes in this pass
	most    int64
}

// newSpill is nil where nothing is to leave.
func newSpill(dev tensor.Device, dir string, budget int64, fail func(error)) (*spill, error) {
	if dir == "" {
		return nil, nil
	}
	can, ok := dev.(tensor.Evictor)
	if !ok {
		return nil, train.Mistake("--spill %s: the rows of this device cannot leave its memory; use --device cpu, or "+
			"leave out --spill", dir)
	}
	return &spill{dev: can, all: dev, dir: dir, budget: budget, fail: fail, at: map[[2]int]int64{}}, nil
}

// begin opens a pass.
func (s *spill) begin(phases int) {
	if s != nil {
		s.out, s.looked, s.written = make([][]tensor.Matrix, phases), 0, 0
	}
}

// ended lets phases leave that the forward pass is done with, the oldest first, while there
// is more than the budget.
func (s *spill) ended(run *nn.Ranges, phase int) {
	if s == nil {
		return
	}
	for ; s.looked <= phase-2; s.looked++ {
		if inUse, _ := s.all.Usage(); inUse <= s.budget {
			break
		}
		for i, m := range run.Kept(s.looked) {
			left, err := s.dev.Evict(m, func(bytes []byte) error { return s.write([2]int{s.looked, i}, bytes) })
			if err != nil {
				s.fail(fmt.Errorf("g3 cannot let rows leave memory to %s: %w; give --spill another folder, or leave "+
					"it out", s.dir, err))
				return
			}
			if left {
				s.out[s.looked] = append(s.out[s.looked], m)
				s.written += m.Bytes()
			}
		}
	}
	s.most = max(s.most, s.written)
}

// need brings back what the backward pass of a phase needs.
func (s *spill) need(phase int) {
	if s == nil {
		return
	}
	for p := phase; p >= max(phase-1, 0); p-- {
		for i, m := range s.out[p] {
			err := s.dev.Restore(m, func(bytes []byte) error {
				_, err := s.file.ReadAt(bytes, s.at[[2]int{p, i}])
				return err
			})
			if err != nil {
				s.fail(fmt.Errorf("g3 cannot read rows back from %s: %w", s.dir, err))
			}
		}
		s.out[p] = nil
	}
}

// write puts a matrix in the file, in the same place in every epoch.
func (s *spill) write(key [2]int, bytes []byte) (err error) {
	if s.file == nil {
		if s.file, err = disk.Nameless(s.dir, "spilled rows", 0); err != nil {
			return err
		}
	}
	at, ok := s.at[key]
	if !ok {
		at = s.end
		s.at[key], s.end = at, s.end+int64(len(bytes))
	}
	_, err = s.file.WriteAt(bytes, at)
	return err
}

// close says what left, and frees the file.
func (s *spill) close(note func(text string, values ...any)) {
	if s == nil {
		return
	}
	if s.most > 0 {
		note("g3: %s of rows per epoch left memory on worker 0, for a budget of %s", event.Bytes(s.most),
			event.Bytes(s.budget))
	}
	if s.file != nil {
		s.file.Close()
	}
}
