package train

import "starling/nn"

// Peers are the other workers, for what is not rows of vertices. Calls are named by the
// epoch and the batch that they belong to.
type Peers interface {
	// AllReduce adds numbers over all workers, in place, to the same bits on each.
	AllReduce(epoch, batch int, v []float64) error
	// Gradients begins the all-reduce of the gradients of all parameters.
	Gradients(epoch, batch int, params []*nn.Param) (Gradients, error)
}

// Gradients is an all-reduce of gradients in flight, in place.
type Gradients interface {
	// Ready says that those of some parameters are final here.
	Ready(params []*nn.Param)
	// Wait returns when all are reduced. All must be Ready before.
	Wait() error
}

// Alone is a worker without others.
type Alone struct{}

func (Alone) AllReduce(int, int, []float64) error                { return nil }
func (Alone) Gradients(int, int, []*nn.Param) (Gradients, error) { return Alone{}, nil }
func (Alone) Ready([]*nn.Param)                                  {}
func (Alone) Wait() error                                        { return nil }
