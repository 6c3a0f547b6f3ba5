package train

import (
	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// Share is a worker's share of the data, on its device.
type Share struct {
	X      nn.Input
	Task   nn.Task
	Splits [3]tensor.Index // train, validation, test: rows of this worker
	Known  Known
	IDs    tensor.Index  // vertex ids of the rows; none: row i is vertex i
	Types  []graph.Run   // of which types rows are, in a typed graph
	Schema *graph.Schema // of a typed graph
	Own    int           // rows that are not replicas of other workers'; 0: all
	// Replicas: workers compute replicas of others' rows.
	Replicas bool
	// TrainOn and MeasureOn bring the rows of neighbours.
	TrainOn, MeasureOn Strategy
	Vertices           int64 // of all workers
	Training           int64 // training vertices of all workers
}

// measured is what measuring passes start from: replicas are of the strategy that trains.
func (s *Share) measured() nn.Input {
	x := s.X
	switch {
	case s.Own == 0 || s.MeasureOn == s.TrainOn:
	case x.Sparse != nil:
		x.Sparse = x.Sparse.Slice(0, s.Own)
	default:
		x.Matrix = x.Slice(0, s.Own)
	}
	return x
}
