package batch

import (
	"context"
	"sync"

	"starling/sample"
	"starling/store"
	"starling/train"
)

// SharedSamplers are a few samplers that many drawers use in turn: of the batches of a window most wait. Batches that
// were drawn before training are taken as they were.
type SharedSamplers struct {
	free  chan Sampler
	steps int
	drawn *drawnFirst
	turns *turns // nil: batches are drawn in any order
}

// SharedSamplers makes n samplers, where rows are fetched ahead; nil: they are not, and each drawer has its own.
func (p *Pipeline) SharedSamplers(n int, at train.State) *SharedSamplers {
	if p.ahead == nil {
		return nil
	}
	s := &SharedSamplers{make(chan Sampler, n), p.steps, p.ahead.drawn, nil}
	for range n {
		s.free <- p.Sampler()
	}
	if p.DrawnTogether {
		s.turns = newTurns(at.Epoch*p.steps + at.Batch)
	}
	return s
}

// shareSamplers is what gives a drawer its sampler.
func (p *Pipeline) shareSamplers(n int, at train.State) func() Sampler {
	if s := p.SharedSamplers(n, at); s != nil {
		return func() Sampler { return s }
	}
	return p.Sampler
}

// Fill fills a batch by one of the samplers.
func (s *SharedSamplers) Fill(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool,
	error) {
	return s.FillBeside(ctx, b, known, epoch, number, func(Sampler) {}, nil)
}

// FillBeside is Fill where more is drawn: begin is called with the sampler before it draws, or take with what was drawn
// before training.
func (s *SharedSamplers) FillBeside(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int,
	begin func(Sampler), take func(Beside)) (bool, error) {
	at := epoch*s.steps + number
	if err := s.turns.wait(ctx, at); err != nil {
		return false, err
	}
	if x := s.drawn.take(b, known, epoch, number); x != nil {
		s.turns.end(at)
		if x.beside != nil {
			take(x.beside)
		}
		return x.any, nil
	}
	select {
	case m := <-s.free:
		s.turns.end(at)
		defer func() { s.free <- m }()
		begin(m)
		return m.Fill(ctx, b, known, epoch, number)
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Drawn and Traffic are of a sampler by itself.
func (s *SharedSamplers) Drawn() []store.Traffic                  { return nil }
func (s *SharedSamplers) Traffic(_ *sample.Batch) []store.Traffic { return nil }

// turns has batches begin in their order. Where workers draw together each begins the lowest batch that has not ended,
// so that no two of them wait for each other's.
type turns struct {
	mu   sync.Mutex
	open map[int]chan struct{} // closed when it is a batch's turn
}

func newTurns(first int) *turns {
	t := &turns{open: map[int]chan struct{}{}}
	t.end(first - 1)
	return t
}

// at is closed when it is a batch's turn.
func (t *turns) at(number int) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[number] == nil {
		t.open[number] = make(chan struct{})
	}
	return t.open[number]
}

func (t *turns) wait(ctx context.Context, number int) error {
	if t == nil {
		return nil
	}
	select {
	case <-t.at(number):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end has the batch after one begin.
func (t *turns) end(number int) {
	if t == nil {
		return
	}
	close(t.at(number + 1))
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, number)
}
