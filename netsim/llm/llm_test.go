package llm

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"starling/netsim"
)

func options(t *testing.T, model string, gpus int, policy string) Options {
	t.Helper()
	o := DefaultOptions()
	var err error
	if o.Model, err = Named(model); err != nil {
		t.Fatal(err)
	}
	if o.Policy, err = PolicyNamed(policy); err != nil {
		t.Fatal(err)
	}
	o.GPUs = gpus
	o.Topology = o.Network(100*netsim.Gbps, 1)
	return o
}

func simulate(t *testing.T, o Options) *Result {
	t.Helper()
	r, err := Simulate(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every stage does every pass once, the backward pass of a chunk after its forward pass, and has
// no more microbatches under way than 1F1B allows.
func TestPasses(t *testing.T) {
	for stages := 1; stages <= 5; stages++ {
		for chunks := 1; chunks <= 3; chunks++ {
			for stage := range stages {
				n := 2 * stages
				seen := map[pass]bool{}
				under, most := 0, 0
				for _, p := range passes(stage, stages, n, chunks) {
					if seen[p] || p.microbatch >= n || p.chunk >= chunks {
						t.Fatalf("stage %d of %d, %d chunks: %+v twice or outside", stage, stages, chunks, p)
					}
					seen[p] = true
					if under++; p.backward {
						under -= 2
						if !seen[pass{p.microbatch, p.chunk, false}] {
							t.Fatalf("%+v before its forward pass", p)
						}
					}
					most = max(most, under)
				}
				if len(seen) != 2*n*chunks {
					t.Errorf("stage %d of %d: %d passes, want %d", stage, stages, len(seen), 2*n*chunks)
				}
				if chunks == 1 && most > stages-stage {
					t.Errorf("stage %d of %d: %d microbatches under way", stage, stages, most)
				}
			}
		}
	}
}

// A pipeline alone takes (m + p - 1) / m of its computing where links are fast.
func TestPipelineBubble(t *testing.T) {
	o := options(t, "gpt3-13b", 16, "fifo")
	o.Microbatches, o.Topology = 8, o.Network(100000*netsim.Gbps, 1)
	got := simulate(t, o).Computing
	if want := 8. / (8 + 3); math.Abs(got-want) > 0.01 {
		t.Errorf("computing %.3f of the time, want %.3f", got, want)
	}
}

// Bytes per iteration are what formulas give.
func TestBytes(t *testing.T) {
	o := options(t, "mixtral-8x7b", 32, "hermod-order")
	o.Layers, o.Microbatches, o.Skew = 4, 2, 0
	r := simulate(t, o)
	replicas, layers, micro := 16., 4., 2.
	activations := 2 * o.Model.tokens() * float64(o.Hidden)
	want := map[string]float64{
		"pp":                2 * activations * micro * replicas,
		"ep":                4 * activations * 2 * 7 / 8 * micro * layers * replicas,
		"dp reduce-scatter": 4 * layers * (replicas*o.Model.attention()*15/16 + replicas*o.block()*1/2),
	}
	want["dp all-gather"] = want["dp reduce-scatter"] / 2
	for kind, bytes := range want {
		if got := float64(r.Bytes[kind]); math.Abs(got/bytes-1) > 1e-6 {
			t.Errorf("%s: %.0f bytes per iteration, want %.0f", kind, got, bytes)
		}
	}
}

// Random models end under every policy, with the same bytes, and twice in the same time.
func TestRandomModels(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for range 5 {
		pp, ep := 1+r.IntN(4), 1<<r.IntN(3)
		o := options(t, "mixtral-8x7b", 0, "fifo")
		o.PP, o.EP, o.TP, o.VirtualStages = pp, ep, 1+r.IntN(2), 1+r.IntN(2)
		o.Layers, o.Microbatches = pp*o.VirtualStages*(1+r.IntN(2)), pp*(1+r.IntN(2))
		o.GPUs = 2 * pp * o.TP * ep
		o.Placement = Placements()[r.IntN(3)]
		o.Topology = o.Network(netsim.Rate(1+r.IntN(400))*netsim.Gbps, 1+r.IntN(2))
		var bytes map[string]int64
		for _, p := range Policies() {
			o.Policy = p
			one := simulate(t, o)
			if bytes == nil {
				bytes = one.Bytes
			}
			if !reflect.DeepEqual(one.Bytes, bytes) {
				t.Errorf("%s sends %v, fifo %v", p.Name, one.Bytes, bytes)
			}
			if again := simulate(t, o); again.Seconds != one.Seconds {
				t.Errorf("%s: %v s, then %v s", p.Name, one.Seconds, again.Seconds)
			}
		}
	}
}

// Table 5.2's order, and Hermod at least as good as any: where a dense model's gradients
// and activations meet.
func TestOrderOfSchedulers(t *testing.T) {
	seconds := map[string]float64{}
	for _, name := range []string{"fifo", "dp-first", "pp-first", "lina", "hermod"} {
		seconds[name] = simulate(t, options(t, "gpt3-175b", 512, name)).Seconds
	}
	t.Log(seconds)
	for _, pair := range [][2]string{{"fifo", "dp-first"}, {"pp-first", "fifo"}, {"hermod", "fifo"},
		{"hermod", "lina"}} {
		if seconds[pair[0]] >= seconds[pair[1]] {
			t.Errorf("%s takes %.3f s, %s %.3f", pair[0], seconds[pair[0]], pair[1], seconds[pair[1]])
		}
	}
}

// Hermod's order by its three cases, with and without interleaved chunks: the first of each pair leaves first.
func TestHermodsCases(t *testing.T) {
	layers := []traits{{expert, 0, 1, false}, {gather, 0, 9, false}}
	for name, c := range map[string]struct {
		chunks int
		order  []traits
	}{
		"I: earlier microbatches first": {1, []traits{{pipeline, 0, 6, false}, {expert, 1, 1, false},
			{expert, 3, 0, true}}},
		"II: gradients last":           {1, []traits{{expert, 7, 9, true}, {scatter, 7, 0, true}}},
		"III: by layer":                {1, layers},
		"III: by layer, the other way": {1, []traits{{gather, 0, 1, false}, {pipeline, 0, 9, false}}},
		"interleaved: EP, PP, DP": {2, []traits{{expert, 7, 3, true}, {pipeline, 7, 3, true},
			{scatter, 7, 3, true}}},
		"interleaved, III": {2, layers},
	} {
		o := options(t, "mixtral-8x7b", 32, "hermod")
		o.Layers, o.Microbatches, o.VirtualStages = 12, 8, c.chunks
		r := &run{Options: &o}
		for i := range c.order[1:] {
			a, b := hermodUrgency(r, c.order[i]), hermodUrgency(r, c.order[i+1])
			if a <= b {
				t.Errorf("%s: %+v has %d, %+v %d", name, c.order[i], a, c.order[i+1], b)
			}
		}
	}
}

// Every worker has a place of its own, and with spread no group but tensor parallelism stays inside a server.
func TestPlacements(t *testing.T) {
	for _, placement := range Placements() {
		for _, model := range []string{"gpt3-13b", "mixtral-8x7b", "qwen-moe-12l"} {
			o := options(t, model, 32, "fifo")
			o.Placement = placement
			replicas := o.GPUs / (o.PP * o.TP)
			places := o.places(replicas)
			seen := make([]bool, len(places))
			for _, p := range places {
				if p < 0 || p >= len(places) || seen[p] {
					t.Fatalf("%s, %s: place %d twice or outside: %v", placement, model, p, places)
				}
				seen[p] = true
			}
			if placement != Spread {
				continue
			}
			server := func(stage, replica int) int { return o.server(places[stage*replicas+replica]) }
			for stage := range o.PP {
				for replica := range replicas {
					next := server(stage, (replica+1)%replicas)
					if replicas > 1 && server(stage, replica) == next {
						t.Errorf("%s: replicas %d and next of stage %d share server %d", model, replica, stage, next)
					}
					if stage > 0 && server(stage-1, replica) == server(stage, replica) {
						t.Errorf("%s: stages %d and %d of replica %d share a server", model, stage-1, stage, replica)
					}
				}
			}
		}
	}
}

// In sub-phases all bytes are sent, each to its receiver, and no server receives from two others at a time, nor
// sends to two.
func TestPhasesShareLinks(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9))
	for range 20 {
		n := 2 + r.IntN(7)
		var members [][]int
		for i := range n {
			if i == 0 || r.IntN(2) == 0 {
				members = append(members, nil)
			}
			members[len(members)-1] = append(members[len(members)-1], i)
		}
		sizes, sent := square(n), square(n)
		for i := range sizes {
			for j := range sizes[i] {
				if i != j {
					sizes[i][j] = r.Int64N(1000)
				}
			}
		}
		p := &phases{}
		p.plan(sizes, members, func(flows []flow, i, j int, bytes int64) []flow {
			sent[i][j] += bytes
			return append(flows, flow{from: i, to: j, bytes: bytes})
		})
		for a := range members {
			for _, i := range members[a] {
				for _, j := range members[a] {
					sent[i][j] += sizes[i][j] // inside a server
				}
			}
		}
		if !reflect.DeepEqual(sent, sizes) {
			t.Fatalf("sent %v, want %v", sent, sizes)
		}
		for len(p.rest) > 0 {
			out, in := map[int]bool{}, map[int]bool{}
			for _, u := range p.start() {
				if out[u.from] || in[u.to] {
					t.Fatalf("two at a time: %+v", u)
				}
				out[u.from], in[u.to] = true, true
			}
			if len(out) == 0 {
				t.Fatal("nothing starts")
			}
			clear(p.out)
			clear(p.in)
		}
	}
}

// The packet level agrees with the flow level where transfers are long.
func TestPacketLevel(t *testing.T) {
	for _, policy := range []string{"fifo", "hermod-order"} {
		o := options(t, "gpt3-13b", 32, policy)
		o.Layers, o.Microbatch, o.Sequence, o.Microbatches = 4, 1, 512, 4
		o.Hidden, o.Inner = 1024, 4096
		flow := simulate(t, o).Seconds
		o.Level, o.Topology.Window, o.Topology.ECN = "packet", 512<<10, 128<<10 // so that no transfer leaves at once
		packet := simulate(t, o).Seconds
		if math.Abs(packet/flow-1) > 0.15 {
			t.Errorf("%s: %.6f s at packet level, %.6f at flow level", policy, packet, flow)
		}
	}
}

// A transfer in pieces ends once, with its last piece: not before its bytes have passed the link.
func TestPieces(t *testing.T) {
	o := options(t, "gpt3-13b", 16, "lina")
	o.Policy.turn = func(*run, traits) int { return 0 }
	o.Piece = 1 << 20
	n, err := netsim.New(netsim.DefaultTopology(), "flow")
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Options: &o, net: n, hosts: make([]host, n.Hosts())}
	for _, bytes := range []int64{1 << 19, 1 << 20, 2 << 20, 7 << 19} {
		ended, begin, took := 0, n.Now(), 0.0
		r.start(traits{kind: scatter}, []flow{{from: 0, to: 1, bytes: bytes}}, func() {
			ended++
			took = (n.Now() - begin).Seconds()
		})
		for n.Step() {
		}
		if least := float64(8*bytes) / float64(n.Topology().Rate); ended != 1 || took < least {
			t.Errorf("%d bytes end %d times, in %g s, want at least %g", bytes, ended, took, least)
		}
	}
}

// With a credit a host has that number of pieces in the network and no more, and what waits leaves by its layer, the
// lowest first, after what is there already.
func TestCredit(t *testing.T) {
	o := options(t, "gpt3-13b", 16, "bytescheduler")
	o.Piece, o.Policy.credit = 1<<20, 2
	n, err := netsim.New(netsim.DefaultTopology(), "flow")
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Options: &o, net: n, hosts: make([]host, n.Hosts())}
	var order []int
	most := 0
	for _, layer := range []int{5, 3, 1, 3} {
		r.start(traits{kind: scatter, layer: layer}, []flow{{from: 0, to: 1, bytes: 5 << 19}}, func() {
			order = append(order, layer)
		})
		most = max(most, len(r.hosts[0].active))
	}
	if got := r.hosts[0].waiting[0].rest; got != 1<<19 || most != 2 {
		t.Errorf("%d bytes of the first transfer wait, with %d pieces in the network", got, most)
	}
	for n.Step() {
		most = max(most, len(r.hosts[0].active))
	}
	if want := []int{1, 3, 3, 5}; !slices.Equal(order, want) || most != 2 {
		t.Errorf("layers end in the order %v, want %v; %d pieces at once", order, want, most)
	}
	began, bytes := n.Now(), int64(64<<20)
	r.start(traits{kind: gather}, []flow{{from: 0, to: 1, bytes: bytes}}, func() {})
	for n.Step() {
	}
	least := float64(8*bytes) / float64(n.Topology().Rate)
	if took := (n.Now() - began).Seconds(); took < least || took > 1.2*least {
		t.Errorf("%d bytes take %g s, the link alone %g", bytes, took, least)
	}
}

// Coflows at core switches, counted by hand: two coflows over two spines, the second with a transfer
// over both.
func TestCoreCoflows(t *testing.T) {
	c, a, b := newCore(&netsim.Topology{Leaves: 3, Spines: 2}), &group{}, &group{}
	at := func(s int) netsim.Time { return netsim.Time(s) * netsim.Second }
	c.begin(a, []int32{0, 3, 1}, at(0))
	c.begin(a, []int32{0, 3, 1}, at(1)) // the same coflow
	c.begin(b, []int32{0, 3, 4, 1}, at(2))
	c.end(a, []int32{0, 3, 1}, at(3))
	c.end(a, []int32{0, 3, 1}, at(4))
	c.end(b, []int32{0, 3, 4, 1}, at(6))
	// Spine 3 has 1, 1, 2, 2, 1, 1 coflows in six seconds, spine 4 has 1 in the last four.
	if got := *c.result(at(6)); got != (CoreCoflows{Mean: 1, Most: 2}) {
		t.Errorf("%+v", got)
	}
}

// TestQueuedCoflows: two coflows that one host receives at once wait at the same port, at packet level.
func TestQueuedCoflows(t *testing.T) {
	top, err := netsim.ParseTopology("leaf-spine leaves=3 spines=1 hosts=1 rate=10Gbps")
	if err != nil {
		t.Fatal(err)
	}
	n, err := netsim.New(top, "packet")
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, "gpt3-13b", 16, "fifo")
	o.CountCore = true
	r := &run{Options: &o, net: n, hosts: make([]host, n.Hosts())}
	r.countCoflows()
	r.start(traits{kind: gather}, []flow{{from: 0, to: 2, bytes: 1 << 20}}, func() {})
	r.start(traits{kind: scatter}, []flow{{from: 1, to: 2, bytes: 1 << 20}}, func() {})
	for n.Step() {
	}
	c := r.coreCoflows()
	if c.Most != 2 || c.Queued.Core.Shared < 0.1 || c.Queued.Leaf.Shared != 0 {
		t.Errorf("%+v, %+v", c, c.Queued)
	}
}

func TestMistakes(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"GPUs":       func(o *Options) { o.GPUs = 100 },
		"layers":     func(o *Options) { o.Layers = 7 },
		"experts":    func(o *Options) { o.EP = 3 },
		"iterations": func(o *Options) { o.Iterations = 1 },
		"hosts":      func(o *Options) { o.Topology = netsim.DefaultTopology() },
		"rate":       func(o *Options) { o.FLOPS = 0 },
		"core":       func(o *Options) { o.CountCore, o.Topology = true, netsim.DefaultTopology() },
	} {
		o := options(t, "mixtral-8x22b", 512, "fifo")
		change(&o)
		if _, err := Simulate(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
