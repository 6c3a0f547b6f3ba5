package batch

import (
	"context"

	"starling/nn"
	"starling/store"
	"starling/tensor"
	"starling/train"
	"starling/wire"
)

// Decoration is what a strategy adds to the pipeline: one or more of the interfaces below. Where several have the
// same interface, the first in the strategy's list is called first and is the outermost.
type Decoration any

// Task is what is learnt instead of the labels of training vertices.
type Task interface {
	// Seeds divides what batches are made of, which the workers learn from each other. It may leave edges out of
	// the site's part.
	Seeds(p *Pipeline, roots string) (Seeds, error)
	// Seeder gives one sampler the seed vertices of its batches, which are divided as s says.
	Seeder(s Seeds) Seeder
	// DrawsByCalls reports whether owners draw all edges, since batches leave some of them out.
	DrawsByCalls() bool
	// Epoch is the training of an epoch.
	Epoch(m *Steps) func(epoch int, lr float64) (float64, error)
	// Objective is what a batch's outputs are learnt by, for strategies that have epochs of their own.
	Objective(m *Steps) Objective
}

// Objective is what a batch's outputs are learnt by.
type Objective struct {
	// Grad is the gradient of the last layer's rows, which may be in their place, and the sum of the losses times the
	// batch's scale.
	Grad func(b *Batch, p *nn.Pass, rows tensor.Matrix) (drows, loss tensor.Matrix)
	// Count is what the losses of a batch are a mean over.
	Count func(b *Batch) int
}

// Joiner takes part once the workers' stores are open.
type Joiner interface{ Join(p *Pipeline) error }

// Preparer takes part once caches are filled.
type Preparer interface{ Prepare(p *Pipeline) error }

// Guide says by what batches are drawn and pulled.
type Guide interface {
	Guide(ctx context.Context, epoch, number int) (Guidance, error)
}

// Guidance is what one batch is drawn and pulled by.
type Guidance struct {
	Masks   uint32         // a version of masks that owners know; 0: none
	Columns *store.Columns // that are fetched of remote rows; nil: all
}

// Apply has a sampler draw and a puller fetch by the guidance.
func (g Guidance) Apply(m any, p Puller) error {
	if s, ok := m.(interface{ Guide(version uint32) }); ok {
		s.Guide(g.Masks)
	}
	return p.Keep(g.Columns)
}

// Input is rows that layers begin with instead of features, and that are learnt.
type Input interface {
	// Rows are the rows of a batch's vertices, of the width of all.
	Rows(b *Batch, all nn.Input) (nn.Input, error)
	// Push takes the gradient of these rows in the step that a batch has been; none: those that are held.
	Push(b *Batch, dx tensor.Matrix, step int, lr float64) error
	// Hold keeps the gradient of a batch's rows, which it frees, until all that are held are pushed together.
	Hold(b *Batch, dx tensor.Matrix)
	// AddSteps adds what a step sends, by owner, that accumulates the gradients of batches of vertices.
	AddSteps(t []store.Traffic, batches [][]uint32)
}

// aheadInput is an Input whose rows may come ahead.
type aheadInput interface {
	// Drawn tells of a batch that was drawn, before its rows come: from any goroutine, in any order.
	Drawn(ctx context.Context, b *Batch, number int) error
}

// Observer is told when training begins, of every step, and when the run ends.
type Observer interface {
	Begin(f *train.Loop)
	Stepped(epoch, number int)
	End()
}

// Measurer changes how a loop measures.
type Measurer interface{ Measure(f *train.Loop) }

// Ranker measures more of a result's best weights, before or after inner does; nil: there is no other.
type Ranker interface {
	Rank(f *train.Loop, r *train.Result, inner func() error) error
}

// Planner adds to what is expected to be sent.
type Planner interface {
	Plan(p *wire.Plan, m *nn.Model)
}

// Keeper has a state that a checkpoint keeps. After an error no checkpoint is written.
type Keeper interface{ Kept() ([]nn.Tensor, error) }

// each are the decorations that have an interface.
func each[T any](list []Decoration) (out []T) {
	for _, d := range list {
		if x, ok := d.(T); ok {
			out = append(out, x)
		}
	}
	return out
}

// only is the one that has an interface; the zero T: none has.
func only[T any](list []Decoration) (none T) {
	if found := each[T](list); len(found) > 0 {
		return found[0]
	}
	return none
}
