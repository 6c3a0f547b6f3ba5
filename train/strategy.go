package train

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

// Strategy is an aggregator with the life of a run: what a worker does to get
// the rows, or the sums, of vertices that live elsewhere.
type Strategy interface {
	nn.Aggregator
	// Begin opens a pass through the model.
	Begin(epoch int, training bool)
	// Err is the failure that has made rows since then meaningless.
	Err() error
	// Caches are what the next epoch needs from this one, beside the weights; nil: no worker
	// has any.
	Caches() []nn.Tensor
	// Finish ends the run: nothing is on its way after it.
	Finish() error
}

// planned is a strategy that sends something, and says what before it does.
type planned interface {
	Strategy
	// Plan is what this worker will send.
	Plan(m *nn.Model, task nn.Task) *Plan
}

// copying is a strategy whose worker computes vertices of other workers too. They
// follow its own ones in all matrices of a pass.
type copying interface {
	// Copies are the ids and the features of own and copied vertices together.
	Copies() (ids []uint32, features *graph.Features)
}

// driving is a strategy that takes training passes through the model itself, in an
// order of its own.
type driving interface {
	Forward(m *nn.Model, p *nn.Pass, x nn.Input) tensor.Matrix
	Backward(m *nn.Model, p *nn.Pass, dlogits tensor.Matrix)
}

// site is what a worker's strategy stands on.
type site struct {
	ctx    context.Context
	dev    tensor.Device
	part   *partition.Part
	end    wire.Endpoint
	peers  Peers
	opt    Options
	events event.Listener
	paper  bool        // to plan only: there is nobody at the other ends
	known  []nn.Tensor // figures that the strategy was chosen from
	// rehearsed: only memory matters, not what is in it.
	rehearsed bool
}

// strategies make the strategy of a worker, by name.
var strategies = map[string]func(s *site) (planned, error){
	"cagnet":      newCAGNET,
	"bns":         newBNS,
	"g3":          newG3,
	"halo":        newHalo,
	"pipegcn":     newPipeGCN,
	"granndis":    newGranndis,
	"sancus":      newSancus,
	"skipg":       newSkipG,
	"neutronstar": newNeutronStar,
}

// Strategies are the names a Choice may have.
func Strategies() []string { return slices.Sorted(maps.Keys(strategies)) }

// newStrategy is the strategy that the options choose; halo if they do not.
func newStrategy(s *site) (planned, error) {
	if s.opt.Strategy.Name == "" {
		s.opt.Strategy.Name = "halo"
	}
	make, ok := strategies[s.opt.Strategy.Name]
	if !ok {
		return nil, fmt.Errorf("strategy %q is not one of %s", s.opt.Strategy.Name, strings.Join(Strategies(), ", "))
	}
	if err := s.checkRelay(); err != nil {
		return nil, err
	}
	if err := s.checkSparse(); err != nil {
		return nil, err
	}
	return make(s)
}

// mistaken is a choice of the user's that cannot be: what it is and what to do.
func mistaken(text string, values ...any) error {
	return &graph.InputError{Field: fmt.Sprintf(text, values...)}
}
