package train

import (
	"fmt"
	"slices"

	"starling/event"
	"starling/graph"
	"starling/partition"
)

// Whether rows are passed on inside servers is a choice beside the strategy
// (Choice.Relay), for those that exchange the rows of a border:
//
//	bytes between servers = Σ over rows of the servers that need one, not of the workers
//
// Which worker a row comes to first is settled when the workers have met.

// server is the workers of this one's server: first to last-1.
func (s *site) server() (first, last int) {
	each := s.part.Book.Parts / max(s.part.Book.Servers, 1)
	first = s.part.Book.Server(s.part.Meta.Part) * each
	return first, first + each
}

// relays reports whether rows are passed on.
func (s *site) relays() bool { return s.opt.Strategy.Relay && s.couldRelay() }

// couldRelay reports whether there are rows that could be.
func (s *site) couldRelay() bool {
	first, last := s.server()
	return s.part.Book.Servers > 1 && last-first > 1
}

// checkRelay refuses what makes no sense, and says what relay would do where it is off.
func (s *site) checkRelay() error {
	switch c := s.opt.Strategy; {
	case c.Relay && s.part.Book.Servers < 2:
		return &graph.InputError{Field: "--relay", Found: fmt.Sprintf("all %d workers on one server", s.part.Book.Parts), Want: "several: it passes on rows from other servers",
			Fix: "group the workers with --servers, or leave out --relay"}
	case s.end.Rank() != 0:
	case c.Relay && !s.couldRelay():
		s.events.On(event.Note{Minor: true, Text: "--relay has nothing to pass on: every server has one worker"})
	case CouldRelay(c):
		if text := RelayHint(BetweenServers(s.part)); text != "" {
			s.events.On(event.Note{Minor: true, Text: text})
		}
	}
	return nil
}

// CouldRelay reports whether a strategy exchanges the rows of a border, or the same share
// of all of them, and is not told to pass them on.
func CouldRelay(c Choice) bool {
	return !c.Relay && slices.Contains([]string{"", "halo", "bns", "g3", "pipegcn"}, c.Name)
}

// BetweenServers is how many rows the worker of a part sends to other servers in a layer,
// and how many these are if each goes to a server once.
func BetweenServers(p *partition.Part) (rows, once int64) {
	if p.Book.Servers < 2 {
		return 0, 0
	}
	last := make([]int, p.Core()) // server, and one, that a row went to last
	for q := range p.Book.Parts { // servers one after the other
		to := p.Book.Server(q)
		if to == p.Book.Server(p.Meta.Part) {
			continue
		}
		for _, v := range p.SendTo(q) {
			if rows++; last[v] != to+1 {
				last[v] = to + 1
				once++
			}
		}
	}
	return rows, once
}

// RelayHint says what relay would save of so many rows; nothing if that is little.
func RelayHint(rows, once int64) string {
	if saved := rows - once; saved*10 > rows {
		return fmt.Sprintf("--relay would send %.0f%% fewer rows between servers: each once to a server, whose workers pass it on", 100*float64(saved)/float64(rows))
	}
	return ""
}

// overHalo brings the rows of the part's border, straight or passed on.
func overHalo(s *site, move mover) (*exchanging, *lists, error) {
	l, told := haloLists(s.part), map[Sent]int64(nil)
	if s.relays() {
		if s.paper {
			return nil, nil, fmt.Errorf("relay: %w", ErrUnplanned)
		}
		look := newLookup(s)
		var err error
		if l, err = look.relayedLists(); err != nil {
			return nil, nil, err
		}
		told = look.sent
	}
	x := newExchanging(s, move, newBorder(s.dev, l))
	x.prepare = told
	return x, &l, nil
}

// relayedLists are those of a partition where rows from other servers are passed on.
func (l *lookup) relayedLists() (lists, error) {
	c := &copies{lookup: l, in: l.edges()}
	c.first, c.last = l.server()
	c.number()
	out, straight, err := c.lists(0, l.part.Book.Owner)
	if err != nil {
		return out, err
	}
	return out, c.askFor(&out, straight, 0)
}

// edges are the part's in-edges, from vertices by their numbers in the partition.
func (s *site) edges() *graph.CSR {
	in := *s.part.In
	in.Indices = make([]uint32, len(in.Indices))
	for e, u := range s.part.In.Indices {
		in.Indices[e] = s.global(u)
	}
	return &in
}
