package train

import (
	"fmt"
	"strconv"

	"starling/event"
	"starling/nn"
)

// GraNNDIS (Song et al., "GraNNDIS: Fast Distributed Graph Neural Network Training
// Framework for Multi-Server Clusters", PACT 2024, §5.1 and §6) takes a server for
// one large worker, because inside it bytes are cheap. With k preloaded layers a server
// has the features of the vertices up to k hops beyond its border and computes their
// rows itself:
//
//	layer l < k     makes rows of own vertices and of hops 1 to k-1-l,
//	                out of own ones and hops 1 to k-l
//	layer l >= k    rows of own vertices, border rows received
//
// Each of those vertices is computed once a server, by the worker that needs it most
// (within a balance of edges); inside the server its row travels as any border row
// does. Between servers travel, in an epoch, the border rows of layers k and up, each
// once to a server (see relay.go), and the sums of parameters' gradients; with k of all
// layers only the latter. The features travel once, before.
//
// Exact for every k; k = 0 is halo.
type granndis struct {
	*recomputing
	forecast *forecast // nil: k was given
}

func newGranndis(s *site) (planned, error) {
	layers := graphLayers(s.opt.Model)
	preload := s.opt.Strategy.Preload
	if s.opt.Strategy.Sample != "" {
		return newSampled(s, layers)
	}
	k, err := preloaded(preload, layers)
	switch {
	case err != nil:
		return nil, err
	case k == 0 || s.part.Book.Servers < 2 && !s.paper:
		if s.end.Rank() == 0 && k != 0 {
			s.events.On(event.Note{Minor: true, Text: "granndis: one server has nothing to preload; give --servers"})
		}
		return newHalo(s)
	case s.paper:
		return nil, fmt.Errorf("granndis: %w", ErrUnplanned)
	}
	l := newLookup(s)
	around, err := newSurroundings(l, k, l.works(), nil)
	if err != nil {
		return nil, err
	}
	g := &granndis{}
	if k < 0 {
		if g.forecast, err = around.choose(layers); err != nil {
			return nil, err
		}
		k = g.forecast.best
		around.receive(g.forecast.share)
		if g.forecast.share > 0 && s.end.Rank() == 0 {
			s.events.On(event.Note{Minor: true, Text: fmt.Sprintf("granndis receives %.0f%% of the rows that layer %d needs from other servers, while it adds up others", 100*g.forecast.share, k)})
		}
		s.events = event.All(s.events, g.forecast)
	} else if err := around.grow(k); err != nil {
		return nil, err
	}
	g.recomputing, err = around.preload(k, layers)
	return g, err
}

// graphLayers is the number of message-passing layers.
func graphLayers(c nn.Config) int {
	if c.Model == "mlp" {
		return 0
	}
	return c.Layers
}

// preloaded reads how many layers to preload; -1: to be chosen.
func preloaded(text string, layers int) (int, error) {
	if text == "auto" {
		if layers == 0 {
			return 0, nil
		}
		return -1, nil
	}
	k, err := strconv.Atoi(text)
	if err != nil || k < 0 {
		return 0, fmt.Errorf("granndis preloads auto or a number of layers, not %q", text)
	}
	return min(k, layers), nil
}

// grow finds k hops, or as many as there are.
func (s *surroundings) grow(k int) error {
	for range k {
		if more, err := s.next(); err != nil || !more {
			return err
		}
	}
	return nil
}

// preload makes the borders of k preloaded layers and of the others.
func (s *surroundings) preload(k, layers int) (*recomputing, error) {
	c := s.copies(k)
	if k == 0 { // halo: rows come straight
		c.first, c.last = 0, 0
	}
	need := s.memory(k)
	if b := s.opt.Strategy.Budget; b > 0 && need > b && k > 0 {
		return nil, mistaken("granndis: %d preloaded layers need about %s on worker %d, over the --memory-budget of %s; --preload fewer, or auto", k, event.Bytes(need), s.end.Rank(), event.Bytes(b))
	}
	if s.end.Rank() == 0 {
		s.events.On(event.Note{Minor: true, Text: fmt.Sprintf("granndis preloads %d of %d layers: worker 0 has %d own vertices and %d copies, about %s", k, layers, s.part.Core(), len(c.ids), event.Bytes(need))})
	}
	borders, err := c.borders(layers, func(layer int, v uint32) int {
		if layer >= k || layer == k-1 && layer > 0 && s.receives(v) {
			return s.part.Book.Owner(v)
		}
		return s.holder(v)
	})
	if err != nil {
		return nil, err
	}
	return c.strategy(borders)
}

// Finish says what the epochs took beside what was predicted.
func (g *granndis) Finish() error {
	if g.forecast != nil && g.end.Rank() == 0 {
		if text := g.forecast.verdict(); text != "" {
			g.events.On(event.Note{Minor: true, Text: text})
		}
	}
	return g.recomputing.Finish()
}
