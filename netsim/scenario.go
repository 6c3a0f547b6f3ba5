package netsim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"starling/wire"
)

// Scenario is a run over a simulated network. What the workers do is the caller's.
type Scenario struct {
	Topology Topology
	Level    string // packet or flow; "": packet
	Workers  int
	// Hosts has the host of each worker; nil: worker r is at host r modulo their number.
	Hosts      []int
	Background Background
	Options    Options
	// Charted is for how many ports the result has queue and utilisation over time.
	Charted int
	Links   bool // the result has every direction of a link by itself
}

// Validate reports what of a scenario cannot be run.
func (s *Scenario) Validate() error {
	if err := s.Topology.Validate(); err != nil {
		return err
	}
	switch {
	case s.Level != "" && !slices.Contains(Levels, s.Level):
		return fmt.Errorf("simulation: found level %q, want %s", s.Level, strings.Join(Levels, " or "))
	case s.Workers < 1:
		return fmt.Errorf("simulation: found %d workers, want at least 1", s.Workers)
	}
	return s.Background.Validate()
}

// Run calls work with an endpoint per worker, in virtual time, and reports what the
// network saw of it. work starts the workers, waits for them and may close the endpoints;
// everything with goroutines of its own, such as devices, it makes and closes itself. Run is
// called inside a bubble of package synctest, or outside, where it makes one (InVirtualTime).
func (s *Scenario) Run(work func(ends []wire.Endpoint) error) (result *Result, err error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	inside := func() error {
		result, err = s.run(work)
		return err
	}
	if inBubble() {
		err = inside()
	} else {
		err = InVirtualTime(inside)
	}
	return result, err
}

// run is Run inside a bubble.
func (s *Scenario) run(work func(ends []wire.Endpoint) error) (*Result, error) {
	n, err := New(s.Topology, s.Level)
	if err != nil {
		return nil, err
	}
	if s.Charted > 0 {
		n.Record()
	}
	traffic, err := s.Background.Start(n)
	if err != nil {
		return nil, err
	}
	ends, err := Endpoints(n, s.Hosts, s.Workers, s.Options)
	if err != nil {
		return nil, err
	}
	begin := ends[0].Clock().Now()
	err = work(ends)
	took := wire.Since(ends[0].Clock(), begin).Seconds()
	for _, e := range ends {
		err = errors.Join(err, e.Close())
	}
	if err != nil {
		return nil, err
	}
	return s.result(n, traffic, took), nil
}

// Result is what the network saw of a run.
type Result struct {
	Topology string  `json:"topology"` // its text form
	Level    string  `json:"level"`
	Workers  int     `json:"workers"`
	Hosts    int     `json:"hosts"`
	Seconds  float64 `json:"seconds"` // of virtual time that the work took
	Events   uint64  `json:"events"`
	Packets  int64   `json:"packets"` // that arrived; at flow level transfers
	Drops    int64   `json:"drops"`
	Marks    int64   `json:"marks"`
	Resent   int64   `json:"resent"`
	// Tiers has the links by where they are, such as host to leaf.
	Tiers      []Tier            `json:"tiers"`
	Links      []PortStats       `json:"links,omitempty"`
	Background *BackgroundResult `json:"background,omitempty"`
	Charts     []Chart           `json:"charts,omitempty"`
}

// Tier is the links of one kind, by direction.
type Tier struct {
	Name            string  `json:"name"`
	Links           int     `json:"links"`
	Bytes           int64   `json:"bytes"`
	MeanUtilisation float64 `json:"mean_utilisation"`
	MaxUtilisation  float64 `json:"max_utilisation"`
	PeakQueue       int64   `json:"peak_queue_bytes"`
	MeanQueue       float64 `json:"mean_queue_bytes"`
	Drops           int64   `json:"drops"`
	Marks           int64   `json:"marks"`
}

// Chart is a port over time.
type Chart struct {
	PortStats
	Samples []Sample `json:"samples"`
}

// BackgroundResult is what became of the background traffic.
type BackgroundResult struct {
	Background
	Begun  int64   `json:"begun"`
	Ended  int     `json:"ended"`
	Bytes  int64   `json:"bytes"`
	Median float64 `json:"median_slowdown"` // relative to an empty network
	P99    float64 `json:"p99_slowdown"`
}

func (s *Scenario) result(n Network, t *Traffic, seconds float64) *Result {
	st := n.Stats()
	r := &Result{Topology: s.Topology.String(), Level: s.Level, Workers: s.Workers, Hosts: n.Hosts(), Seconds: seconds,
		Events: st.Events, Packets: st.Packets, Drops: st.Drops, Marks: st.Marks, Resent: st.Resent, Tiers: tiers(st)}
	if r.Level == "" {
		r.Level = Levels[0]
	}
	if s.Links {
		r.Links = st.Ports
	}
	if t.Load > 0 {
		t.Sizes = nil // they are not part of a result
		r.Background = &BackgroundResult{Background: t.Background, Begun: t.Begun, Ended: len(t.Seconds),
			Bytes: t.Bytes, Median: Quantile(t.Slowdown, 0.5), P99: Quantile(t.Slowdown, 0.99)}
	}
	for _, i := range busiest(st, s.Charted) {
		r.Charts = append(r.Charts, Chart{st.Ports[i], n.Series(i)})
	}
	return r
}

// tiers groups ports by the names of their ends without numbers, in the order of their first port.
func tiers(s *Stats) (out []Tier) {
	at := map[string]int{}
	for i := range s.Ports {
		p := &s.Ports[i]
		name := strings.Join(strings.Fields(strings.Map(withoutDigits, p.Name)), " ")
		k, ok := at[name]
		if !ok {
			k = len(out)
			at[name], out = k, append(out, Tier{Name: name})
		}
		out[k].add(p)
	}
	for i := range out {
		out[i].MeanUtilisation /= float64(out[i].Links)
		out[i].MeanQueue /= float64(out[i].Links)
	}
	return out
}

func withoutDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return -1
	}
	return r
}

// add counts a port. Means are sums until all are in.
func (t *Tier) add(p *PortStats) {
	t.Links++
	t.Bytes += p.Bytes
	t.Drops += p.Drops
	t.Marks += p.Marks
	t.MeanUtilisation += p.Utilisation
	t.MeanQueue += p.MeanQueue
	t.MaxUtilisation = max(t.MaxUtilisation, p.Utilisation)
	t.PeakQueue = max(t.PeakQueue, p.PeakQueue)
}

// busiest are the ports with the longest queues, and of equal ones the most used.
func busiest(s *Stats, count int) []int {
	var order []int
	for i := range s.Ports {
		if s.Ports[i].Bytes > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		p, q := &s.Ports[a], &s.Ports[b]
		return cmp.Or(cmp.Compare(q.PeakQueue, p.PeakQueue), cmp.Compare(q.Utilisation, p.Utilisation))
	})
	return order[:min(count, len(order))]
}
