package pairs

import (
	"starling/event"
	"starling/train"
	"starling/train/batch"
)

// task learns from pairs on several workers.
type task struct {
	p          *batch.Pipeline
	batches    *pairBatches
	evaluation *pairEvaluation
	links      *train.Links // once training begins
}

// New is the task of a run that learns from pairs; nil: it does not.
func New(s *train.Site) batch.Decoration {
	switch {
	case s.Opt.Pairs == nil:
		return nil
	case len(s.Opt.Pairs.Relations) > 0:
		return &relationTask{}
	}
	return &task{}
}

// Seeds divides the pairs, and leaves those that are held out of the part.
func (t *task) Seeds(p *batch.Pipeline, roots string) (batch.Seeds, error) {
	parts, err := newLinkParts(p.Setup, p.Site.Opt.Pairs)
	if err != nil {
		return nil, err
	}
	p.Site.Part, p.Setup.W.Part = parts.part, parts.part
	t.p, t.batches = p, newPairBatches(parts, p.Site, p.Options.Size, roots)
	return t.batches.seeds, nil
}

// Join serves what the pairs of other workers need, and draws what is measured.
func (t *task) Join(p *batch.Pipeline) (err error) {
	if err := t.batches.serve(p.Store); err != nil {
		return err
	}
	if _, err := p.Setup.Share(0); err != nil { // all have tables to pull from
		return err
	}
	t.evaluation, err = t.batches.prepareRanked(p.Setup)
	return err
}

func (t *task) Seeder(s batch.Seeds) batch.Seeder { return t.batches.drawer(s) }

// DrawsByCalls: a batch's own pairs are left out of its messages.
func (t *task) DrawsByCalls() bool { return t.batches.opt.Walks == 0 }

// Epoch trains on batches of pairs.
func (t *task) Epoch(m *batch.Steps) func(epoch int, lr float64) (float64, error) {
	return t.on(m).epoch
}

// Objective is learning from pairs.
func (t *task) Objective(m *batch.Steps) batch.Objective { return t.on(m).objective() }

// on is learning from pairs in some steps.
func (t *task) on(m *batch.Steps) *links {
	o := train.LinkOptions{PerPair: t.batches.opt.PerPair, PerPositive: t.batches.opt.Walks > 0,
		NegativeOptions: t.batches.opt.NegativeOptions}
	t.links = train.LinksOn(m.Loop, o)
	return &links{of: t.links, link: Options{LinkOptions: o}, steps: m}
}

// Measure has a loop measure pairs.
func (t *task) Measure(f *train.Loop) { f.Measure = func(e *event.Epoch) error { return t.measure(e) } }
