package exchange

import (
	"encoding/binary"
	"fmt"
	"slices"

	"starling/partition"
	"starling/wire"
)

// Whether rows are relayed inside servers is a choice beside the strategy, for those that
// exchange the rows of a halo:
//
//	bytes between servers = Σ over rows of the servers that need one, not of the workers
//
// Which worker a row comes to first is decided once the workers have joined.

// relays reports whether rows are relayed.
func (w *Worker) relays() bool { return w.Relayed && w.couldRelay() }

// couldRelay reports whether there are rows that could be.
func (w *Worker) couldRelay() bool {
	first, last := w.Server()
	return w.Part.Book.Servers > 1 && last-first > 1
}

// Relays reports whether rows are relayed inside servers.
func (w *Worker) Relays() bool { return w.relays() }

// HintRelay notes what --relay would save where it is off and the rows of the halo travel.
func (w *Worker) HintRelay() {
	if text := RelayHint(BetweenServers(w.Part)); text != "" && !w.Relayed {
		w.Note("%s", text)
	}
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

// RelayHint is a sentence on what relaying would save of the rows; empty if that is little.
func RelayHint(rows, once int64) string {
	if saved := rows - once; saved*10 > rows {
		return fmt.Sprintf("--relay would send %.0f%% fewer rows between servers: each once to a server, whose "+
			"workers relay it", 100*float64(saved)/float64(rows))
	}
	return ""
}

// OverHalo brings the rows of the part's halo, directly or relayed.
func OverHalo(w *Worker, policy Policy) (*Aggregator, *HaloPlan, error) {
	if !w.relays() {
		plan := PartHalo(w.Part)
		return NewAggregator(w, policy, NewHalo(w.Dev, plan)), plan, nil
	}
	if w.Alone {
		return nil, nil, fmt.Errorf("relay: %w", wire.ErrUnplanned)
	}
	setup := NewSetup(w)
	plan, err := setup.relayedHalo()
	if err != nil {
		return nil, nil, err
	}
	a := NewAggregator(w, policy, NewHalo(w.Dev, plan))
	a.Prepare = setup.Sent
	return a, plan, nil
}

// relayedHalo is the plan of a partition where rows from other servers are relayed.
func (s *Setup) relayedHalo() (*HaloPlan, error) {
	c := &Replicas{Setup: s, In: s.W.Edges()}
	c.First, c.Last = s.W.Server()
	c.number()
	if err := c.describeAll(); err != nil {
		return nil, err
	}
	plan, direct, err := c.plan(0, s.W.Part.Book.Owner)
	if err != nil {
		return nil, err
	}
	return plan, c.askFor(plan, direct, 0)
}

// haloRow is a row that a layer needs from another worker.
type haloRow struct {
	v, place uint32 // the vertex, and its place after the rows that are here
	holder   int    // who computes it
	relay    int    // who relays it; -1: it comes directly
}

// HaloSources counts where the part's halo rows would come from if rows were relayed:
// directly from workers of the same server, from other servers, and by way of a worker of
// the same.
func (s *Setup) HaloSources() (inside, between, relayed int64, err error) {
	first, last := s.W.Server()
	rows := make([]haloRow, 0, len(s.W.Part.Halo))
	for _, v := range s.W.Part.Halo {
		rows = append(rows, haloRow{v: v, holder: s.W.Part.Book.Owner(v), relay: -1})
	}
	_, err = s.relayTo(first, last, rows)
	for i := range rows {
		switch r := &rows[i]; {
		case r.relay >= 0:
			relayed++
		case r.holder < first || r.holder >= last:
			between++
		default:
			inside++
		}
	}
	return inside, between, relayed, err
}

// relayTo decides which of a server's workers, first to last-1, relay rows, and returns
// the vertices that this one relays, by peer.
func (s *Setup) relayTo(first, last int, rows []haloRow) (relay [][]uint32, err error) {
	relay = make([][]uint32, s.W.End.Size())
	if last-first < 2 {
		return relay, nil
	}
	outside := func(q int) bool { return q < first || q >= last }
	var mine []byte
	for i := range rows {
		if outside(rows[i].holder) {
			mine = binary.LittleEndian.AppendUint32(mine, rows[i].v)
		}
	}
	lists, err := s.TellServer(first, last, mine)
	if err != nil {
		return nil, err
	}
	for q, b := range lists { // before a table is as long as the graph
		r := NewReader(b)
		if r.Below("vertex", s.W.Part.Book.Nodes, r.Numbers(len(b)/4)...); r.Err() != nil {
			return nil, fmt.Errorf("worker %d needs %w", q, r.Err())
		}
	}
	needed := newNeeds(lists)
	me := s.W.End.Rank()
	for i := range rows {
		if r := &rows[i]; outside(r.holder) {
			if r.relay = relayer(r.v, needed.by(r.v)); r.relay == me {
				r.relay = -1
			}
		}
	}
	for _, v := range needed.IDs {
		workers := needed.by(v)
		if relayer(v, workers) != me {
			continue
		}
		for _, q := range workers {
			if q != me {
				relay[q] = append(relay[q], v)
			}
		}
	}
	for _, list := range relay {
		slices.Sort(list)
	}
	return relay, nil
}

// needs are the workers that need vertices.
type needs struct {
	Numbering
	first   []int // by number: where a vertex's workers begin
	workers []int
}

// newNeeds are the needs of workers that sent lists of vertices.
func newNeeds(lists [][]byte) *needs {
	n := &needs{first: []int{0}}
	each := make([][]uint32, len(lists)) // numbers of the vertices
	for q, b := range lists {
		each[q] = Numbers(b)
		for i, v := range each[q] {
			at, fresh := n.Put(v)
			if each[q][i] = at; fresh {
				n.first = append(n.first, 0)
			}
			n.first[at+1]++
		}
	}
	for i := range n.IDs {
		n.first[i+1] += n.first[i]
	}
	n.workers = make([]int, n.first[len(n.IDs)])
	next := slices.Clone(n.first)
	for q, list := range each {
		for _, at := range list {
			n.workers[next[at]] = q
			next[at]++
		}
	}
	return n
}

// by are the workers that need a vertex, ascending.
func (n *needs) by(v uint32) []int {
	at, _ := n.At(v)
	return n.workers[n.first[at]:n.first[at+1]]
}

// relayer is one of those that need a vertex, each of them for about as many.
func relayer(v uint32, workers []int) int { return workers[int(v)%len(workers)] }
