package llm

import (
	"fmt"
	"slices"
	"strings"

	"starling/netsim"
	"starling/rng"
)

// Options are a simulation's.
type Options struct {
	Model
	GPUs       int
	Topology   netsim.Topology
	Level      string // packet or flow
	Policy     Policy
	Iterations int     // the last one is reported
	FLOPS      float64 // of a GPU, as reached
	Inside     float64 // bytes per second between GPUs of a server, for tensor parallelism
	Piece      int64   // bytes that a host hands to the network at once where it orders transfers
	Skew       float64 // deviation of the logarithm of experts' popularity
	Seed       uint64
	Placement  string // which workers share a server: one of Placements
	// CountCore counts the coflows that meet at switches, on leaf-spine: at flow level those with a transfer under way
	// through a spine, at packet level those with packets in queues, every 10 us.
	CountCore bool
}

// DefaultOptions returns the options of the paper's simulator where it names them: 100 Gbps. Rates of
// computing are an A100's: 45% of 312 TFLOPS, NVLink at 300 GB/s per direction.
func DefaultOptions() Options {
	return Options{GPUs: 512, Level: "flow", Iterations: 3, FLOPS: 140e12, Inside: 300e9, Piece: 64 << 20, Skew: 0.3,
		Placement: Spread}
}

// Network is a network for a number of GPUs, eight per server. A server's GPUs are joined by a
// switch of their own, each worker at the rate inside a server; each of some links of the given
// rate joins the server to a switch that joins all servers: a network without a bottleneck
// in its core, such as a fat-tree of full bisection whose load is spread well.
func (o *Options) Network(rate netsim.Rate, links int) netsim.Topology {
	t := netsim.DefaultTopology()
	t.Kind, t.Queues, t.Payload, t.Header = "leaf-spine", 64, 4096, 82
	t.Leaves, t.Hosts = max(1, o.GPUs/perServer), max(1, min(perServer, o.GPUs)/o.TP)
	t.Spines, t.Uplink, t.Rate = links, rate, netsim.Rate(8*o.Inside)*netsim.Rate(o.TP)
	if links > 1 {
		t.Routing = "spray"
	}
	return t
}

const perServer = 8

// Result is what a simulation found.
type Result struct {
	Model     string             `json:"model"`
	Scheduler string             `json:"scheduler"`
	GPUs      int                `json:"gpus"`
	Seconds   float64            `json:"seconds_per_iteration"`
	Tokens    float64            `json:"tokens_per_second"`
	Computing float64            `json:"computing_share"` // of an iteration, mean over workers
	Bytes     map[string]int64   `json:"bytes"`           // per iteration, by kind
	Took      map[string]float64 `json:"mean_seconds"`    // from the beginning of a coflow to its end, by kind
	Coflows   int64              `json:"coflows"`
	Events    uint64             `json:"events"`
	Core      *CoreCoflows       `json:"core_coflows,omitempty"`
}

// run is a simulation under way.
type run struct {
	*Options
	net       netsim.Network
	replicas  int
	workers   []*worker // by stage, then data-parallel rank
	places    []int     // of the same in the network
	tokens    []*tokens
	exchanges map[exchangeKey]int // members that have come
	ready     map[parameters]int  // replicas that have a layer's gradients
	gathered  map[parameters]bool
	waiting   map[parameters][]*worker
	hosts     []host
	core      *core           // nil: not counted
	queued    *netsim.Packets // whose queues are counted, or nil
	coflows   uint32          // of which they are
	// Seconds of a layer's forward pass for one microbatch.
	attention, feedForward float64
	bytes                  [kinds]int64
	took                   [kinds]float64
	count                  [kinds]int64
	ends                   []netsim.Time // by iteration: when the last worker finished it
	busy                   float64
}

// exchangeKey names an all-to-all, which the members of an expert-parallel group begin together.
type exchangeKey struct {
	group, iteration, microbatch, layer int
	backward                            bool
	back                                uint8
}

// Simulate runs iterations.
func Simulate(o Options) (*Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	n, err := netsim.New(o.Topology, o.Level)
	if err != nil {
		return nil, err
	}
	if want := o.GPUs / o.TP; n.Hosts() < want {
		return nil, fmt.Errorf("found a network of %d hosts, want %d: one per worker of %d GPUs", n.Hosts(), want, o.TP)
	}
	r := &run{Options: &o, net: n, replicas: o.GPUs / (o.PP * o.TP), exchanges: map[exchangeKey]int{},
		ready: map[parameters]int{}, gathered: map[parameters]bool{}, waiting: map[parameters][]*worker{},
		hosts: make([]host, n.Hosts()), ends: make([]netsim.Time, o.Iterations)}
	r.places = o.places(r.replicas)
	r.rates()
	r.countCoflows()
	if o.EP > 1 {
		r.tokens = drawTokens(&o.Model, o.Skew, o.Seed)
	}
	r.begin()
	for n.Step() {
	}
	return r.result()
}

func (o *Options) validate() error {
	if o.VirtualStages == 0 {
		o.VirtualStages = 1
	}
	if o.Microbatches == 0 {
		o.Microbatches = 2 * o.PP
	}
	if err := o.Model.validate(o.GPUs); err != nil {
		return err
	}
	switch {
	case o.Iterations < 2:
		return fmt.Errorf("found %d iterations, want at least 2: the first one does not wait for parameters",
			o.Iterations)
	case !slices.Contains(Placements(), o.Placement):
		return fmt.Errorf("placement: found %q, want one of %s", o.Placement, strings.Join(Placements(), ", "))
	case o.FLOPS <= 0 || o.Inside <= 0 || o.Piece <= 0:
		return fmt.Errorf("found rates of %g FLOPS, %g B/s inside a server, pieces of %d bytes; want all above 0",
			o.FLOPS, o.Inside, o.Piece)
	case o.CountCore && o.Topology.Kind != "leaf-spine":
		return fmt.Errorf("coflows at core switches: found a %s, want leaf-spine", o.Topology.Kind)
	}
	return nil
}

// rates are the seconds of a layer: floating-point operations, and what tensor parallelism
// exchanges inside a server, twice per layer and direction, (t-1)/t of the activations each way.
func (r *run) rates() {
	tp := float64(r.TP)
	attention, feedForward := r.flops()
	exchanged := 2 * r.activations() * (tp - 1) / tp / r.Inside
	r.attention = attention/tp/r.FLOPS + exchanged
	r.feedForward = feedForward/tp/r.FLOPS + exchanged
}

// begin starts all workers at time 0.
func (r *run) begin() {
	for stage := range r.PP {
		ops := r.operations(stage)
		for d := range r.replicas {
			w := &worker{run: r, stage: stage, replica: d, ops: ops, arrived: map[arrival]bool{}}
			r.workers = append(r.workers, w)
		}
	}
	for _, w := range r.workers {
		r.net.At(0, w.step)
	}
}

func (r *run) worker(stage, replica int) *worker { return r.workers[stage*r.replicas+replica] }

// host is a worker's place in the network.
func (r *run) host(stage, replica int) int { return r.places[stage*r.replicas+replica] }

func (w *worker) host() int { return w.run.host(w.stage, w.replica) }

func (r *run) result() (*Result, error) {
	for _, w := range r.workers {
		if w.iteration < r.Iterations {
			op := &w.ops[w.at-1]
			return nil, fmt.Errorf("llm: a bug: stage %d, replica %d waits for ever in iteration %d at operation "+
				"%d: %+v",
				w.stage, w.replica, w.iteration, w.at-1, *op)
		}
	}
	last := r.Iterations - 1
	seconds := (r.ends[last] - r.ends[last-1]).Seconds()
	out := &Result{Model: r.Name, Scheduler: r.Policy.Name, GPUs: r.GPUs, Seconds: seconds,
		Tokens:    r.Model.tokens() * float64(r.Microbatches*r.replicas) / seconds,
		Computing: r.busy / float64(len(r.workers)) / float64(r.Iterations) / seconds,
		Bytes:     map[string]int64{}, Took: map[string]float64{}, Events: r.net.Stats().Events}
	for k := range kinds {
		if r.count[k] > 0 {
			out.Bytes[k.String()] = r.bytes[k] / int64(r.Iterations)
			out.Took[k.String()] = r.took[k] / float64(r.count[k])
			out.Coflows += r.count[k]
		}
	}
	out.Core = r.coreCoflows()
	return out, nil
}

// variant is the all-to-all that a key names.
func (r *run) variant(m *exchangeKey) *tokens {
	key := rng.New(r.Seed).Fold(uint64(m.layer)).Fold(uint64(m.microbatch)).Fold(uint64(m.group))
	return r.tokens[key.IntN(0, len(r.tokens))]
}
