// Package site joins what the training loop gives a strategy (train.Site) with
// what rows are exchanged by (exchange.Worker), in both modes.
package site

import (
	"starling/exchange"
	"starling/train"
)

// Check refuses what the rows of a strategy cannot do with the model and the servers.
func Check(o *train.Options, f train.Facts) error {
	rows, _ := train.OptionOf[exchange.RowOptions](o.Strategy)
	relay, _ := train.OptionOf[exchange.RelayOption](o.Strategy)
	if err := rows.Check(&o.Model); err != nil {
		return err
	}
	return relay.Check(f.Workers, f.Servers)
}

// Worker is what the exchanges of a strategy work with.
func Worker(s *train.Site, rows exchange.RowOptions, relay exchange.RelayOption) *exchange.Worker {
	d := s.Opt.Strategy.Descriptor
	w := &exchange.Worker{Ctx: s.Ctx, Dev: s.Dev, Part: s.Part, End: s.End, Events: s.Events, AllReduce: allReduce(s),
		Strategy: d.Name, Model: s.Opt.Model, Seed: s.Opt.Seed, Rows: s.Opt.Rows, CacheFirst: s.Opt.CacheFirst,
		RowOptions: rows, Relayed: relay.Relay, Saved: &exchange.Saved{}, Alone: s.Alone, MemoryOnly: s.MemoryOnly}
	if from := s.Opt.Resume; from != nil {
		w.Saved = &exchange.Saved{Resumed: true, Epoch: from.Epoch, Tensors: from.Caches}
	}
	if d.HaloRows {
		w.HintRelay()
	}
	return w
}

// allReduce sums over the site's peers; a dry run has none.
func allReduce(s *train.Site) func(epoch, batch int, v []float64) error {
	if s.Peers == nil {
		return train.Alone{}.AllReduce
	}
	return s.Peers.AllReduce
}

// Halo is the aggregator that moves every row of the part's halo in every pass: the
// strategy halo, and what others do where they have nothing of their own to do.
func Halo(w *exchange.Worker) (train.Strategy, error) {
	a, _, err := exchange.OverHalo(w, exchange.NewRows(w))
	if err != nil {
		return nil, err
	}
	return a, nil
}
