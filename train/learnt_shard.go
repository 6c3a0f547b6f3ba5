package train

import (
	"slices"

	"starling/nn"
)

// Learnt rows are each worker's own, also when the run ends: a worker's result has those of its vertices, of the best
// epoch, with their places. Row i is of vertex i of its type, however the graph was cut.

// LearntFile has the learnt rows of one worker: a file that it wrote, or the rows themselves.
type LearntFile struct {
	Path   string
	Bytes  int64
	CRC32C string
	Rows   []nn.Tensor
}

// shardLearnt adds this worker's learnt rows to its result.
func (s *Site) shardLearnt(f *Loop, r *Result) {
	if f.Learnt == nil || r.Best == nil {
		return
	}
	best := f.Learnt.Rows(f.Dev)
	for i, p := range f.Learnt.params {
		places := slices.Clone(f.Learnt.ids[i])
		for k, v := range places {
			places[k] = v - uint32(s.Part.Book.Schema.Types[s.Part.Book.Schema.TypeOf(v)].First)
		}
		r.LearntRows = append(r.LearntRows, best[i], nn.PlacesOf(p.Name, places))
	}
}

// wholeLearnt has the only worker's result have its learnt rows among the weights.
func (r *Result) wholeLearnt(workers int) error {
	if workers > 1 || r.LearntRows == nil {
		return nil
	}
	tables, _, err := nn.JoinRows([][]nn.Tensor{r.LearntRows})
	r.Best, r.LearntRows = append(slices.Clip(r.Best), tables...), nil
	return err
}
