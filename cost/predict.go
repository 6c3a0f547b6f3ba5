package cost

import (
	"cmp"
	"maps"
	"slices"

	"starling/wire"
)

// Overlap is what of its transfers a strategy hides: see train.Overlap.
type Overlap struct {
	Rows, Gradients float64
	Ahead           bool
}

// Site is where workers are: consecutive ranks share servers, and machines, which may be several servers
// each where these are namespaces of one host.
type Site struct {
	Workers, Servers int
	Sharing          int // workers on one machine
	// Crossing is how many times as long rows take between servers as the busiest link does; below 1: not longer.
	Crossing float64
}

// Demand is what a worker does in an epoch of training: exactly as its plan has it.
type Demand struct {
	Work Work
	Sent wire.Bytes
	// Messages is the number of messages with rows that it sends; among many workers they take longer than their bytes.
	Messages float64
	Steps    int
	Host     float64 // seconds of one processor beside, for bytes that travel
	Memory   int64
	Mapped   int64 // files that it reads
}

// Prediction is what an epoch takes. Seconds is the sum of its parts: of computing that of the mean worker,
// of transfers what computing does not hide, and the mean time until the last worker has computed.
type Prediction struct {
	Seconds  float64 `json:"seconds"`
	Compute  float64 `json:"compute_seconds"`
	Exposed  float64 `json:"exposed_seconds"`
	Waiting  float64 `json:"waiting_seconds"`
	Transfer float64 `json:"transfer_seconds"` // hidden or not
	Between  int64   `json:"bytes_between_servers"`
	Inside   int64   `json:"bytes_inside_servers"`
	Memory   int64   `json:"memory_bytes"` // of the largest worker
	// Resident is what the kernel counts for that worker: with the pages of files and of the program, which it may
	// drop.
	Resident int64 `json:"resident_bytes"`
}

// program is the pages of the program itself that a worker has touched.
const program = 22 << 20

// frame is what packets of Ethernet and TCP carry beside 1,448 bytes.
const frame = 1514.0 / 1448

// Where fetching ahead was measured (scripts/bench-plan, the half that was looked at), this share of the shorter of
// computing and links was not hidden, and a step took so long beyond its work for every worker per core: processes
// wake each other.
const (
	unhidden    = 0.4
	stepSeconds = 3e-3
	// packets is the time of processors for a byte over a link, in times over loopback, whose packets are larger.
	packets = 3
)

// Predict is the time, the bytes and the memory of an epoch. The model's steps take slowness times as long.
//
// Full graph: the workers compute layer by layer and exchange rows between. With C the computing of the slowest, X the
// time that rows take on the busiest link, layer by layer, G that of gradients, and H what processors take to send
// and receive,
//
//	C + H + max(0, X − rows·C) + max(0, G − gradients·C)
//
// Mini-batches whose inputs come ahead of their step keep processors and links busy at once; with B = C + H + drawing:
//
//	max(B, X + G) + unhidden·min(B, X + G) + steps·(rounds + waking)
//
// and those whose inputs do not take the sum.
func Predict(k *Known, at Site, d []Demand, o Overlap, slowness float64) Prediction {
	var p Prediction
	longest := 0.0
	for _, one := range d {
		c := slowness * k.Compute.Seconds(one.Work)
		p.Compute, longest = p.Compute+c/float64(len(d)), max(longest, c)
		p.Memory, p.Resident = max(p.Memory, one.Memory), max(p.Resident, one.Memory+one.Mapped+program)
	}
	p.Waiting = longest - p.Compute
	t := transfers(k, at, d)
	p.Between, p.Inside = t.between, t.inside
	steps := 1
	if len(d) > 0 {
		steps = max(d[0].Steps, 1)
	}
	rounds := float64(steps*rounds(at)) * (k.Between.Delay + k.HostMessage)
	p.Compute += t.host
	p.Transfer = t.rows + t.gradients + rounds
	if steps == 1 && !o.Ahead {
		p.Exposed = max(0, t.rows-o.Rows*longest) + max(0, t.gradients-o.Gradients*longest) + rounds
	} else {
		p.Compute += drawn(k, at, d)
		p.Exposed = exposedBatches(p.Compute+p.Waiting, t.rows+t.gradients, o.Ahead) + rounds +
			float64(steps)*stepSeconds*max(1, float64(at.Sharing)/float64(max(k.Cores, 1)))
	}
	p.Seconds = p.Compute + p.Waiting + p.Exposed
	return p
}

// exposedBatches is what links take beyond what processors are busy with anyway.
func exposedBatches(busy, link float64, ahead bool) float64 {
	if !ahead {
		return link
	}
	return max(busy, link) + unhidden*min(busy, link) - busy
}

// Scaled is the prediction with all its times multiplied.
func (p Prediction) Scaled(by float64) Prediction {
	p.Seconds, p.Compute, p.Exposed = by*p.Seconds, by*p.Compute, by*p.Exposed
	p.Waiting, p.Transfer = by*p.Waiting, by*p.Transfer
	return p
}

// rounds is how many messages follow each other in an all-reduce of gradients: in the first of two rounds every worker
// adds its share, in the second it has the others'. Each is a message to every other server (reductions).
func rounds(at Site) int { return 2 * min(at.Servers-1, 1) }

func reductions(at Site) float64 { return 2 * float64(max(at.Servers-1, 0)) }

// drawn is the seconds that drawing batches takes of each machine's cores.
func drawn(k *Known, at Site, d []Demand) float64 {
	most := 0.0
	for group := range slices.Chunk(d, max(at.Sharing, 1)) {
		entries := 0.0
		for _, one := range group {
			entries += one.Work.Entries
		}
		most = max(most, entries*k.Draw/float64(max(k.Cores, 1)))
	}
	return most
}

// moved is how long what is sent takes.
type moved struct {
	rows, gradients float64 // on links
	host            float64 // of processors
	between, inside int64
}

// phase is what travels at one time: a kind of bytes, of a layer.
type phase struct {
	kind  wire.Kind
	layer int16
}

// transfers are the seconds of all phases, one after the other: each takes what the busiest link takes for it.
func transfers(k *Known, at Site, d []Demand) (t moved) {
	perServer, perWorker := map[phase][]float64{}, map[phase][]float64{}
	servers, sharing := max(at.Servers, 1), max(at.Sharing, 1)
	machines := (len(d) + sharing - 1) / sharing
	handled, busy := make([]float64, machines), make([]float64, machines) // bytes, and seconds of one processor beside
	add := func(to map[phase][]float64, p phase, i, n int, bytes float64) {
		if to[p] == nil {
			to[p] = make([]float64, n)
		}
		to[p][i] += bytes
	}
	for r, one := range d {
		busy[r/sharing] += one.Host + k.HostMessage*(one.Messages+float64(max(one.Steps, 1))*reductions(at))
		for c, bytes := range one.Sent {
			p, b := phase{c.Kind, c.Layer}, float64(bytes)
			handled[r/sharing] += b // whole numbers, whose sum is the same in any order
			add(perServer, p, r*servers/len(d), servers, b*boolean(c.Link == wire.BetweenServers))
			add(perWorker, p, r, len(d), b*boolean(c.Link != wire.BetweenServers))
			if c.Link == wire.BetweenServers {
				t.between += bytes
			} else {
				t.inside += bytes
			}
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(perServer), before) { // so that sums are the same to the bit
		between, inside := k.linkSeconds(perServer[p]), per(slices.Max(perWorker[p]), k.Inside.Rate)
		if p.kind == wire.Parameter || p.kind == wire.Control {
			t.gradients += max(between, inside)
		} else {
			t.rows += max(between*max(at.Crossing, 1), inside)
		}
	}
	for i, bytes := range handled {
		t.host = max(t.host, (packets*bytes*k.HostByte+busy[i])/float64(max(k.Cores, 1)))
	}
	return t
}

func boolean(x bool) float64 {
	if x {
		return 1
	}
	return 0
}

func before(a, b phase) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.layer, b.layer))
}

// busiest is the bytes of the busiest link, in or out, of servers that send these bytes, where what the others send
// arrives evenly.
func busiest(sent []float64) (most float64) {
	total := 0.0
	for _, b := range sent {
		total += b
	}
	for _, b := range sent {
		in := 0.0
		if n := len(sent); n > 1 {
			in = (total - b) / float64(n-1)
		}
		most = max(most, b, in)
	}
	return most
}
