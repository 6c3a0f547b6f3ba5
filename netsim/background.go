package netsim

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"starling/rng"
)

// Background is traffic of others: transfers between random pairs of hosts that begin as a
// Poisson process. It is a function of the seed.
type Background struct {
	// Load is the part of all hosts' rate that the transfers' bytes take, below 1.
	Load  float64 `json:"load"`
	Seed  uint64  `json:"seed"`
	DSCP  uint8   `json:"dscp"`
	Sizes Sizes   `json:"-"`                  // nil: Hadoop
	Until Time    `json:"until_ps,omitempty"` // the last may begin then; 0: they never end
}

// Sizes is a distribution of transfer sizes, as points of its cumulative function. Between
// two points the logarithm of the size is uniform.
type Sizes []SizePoint

// SizePoint is a point of a distribution: this part of all transfers has at most these bytes.
type SizePoint struct {
	Bytes float64
	Part  float64
}

// Hadoop is the shape of sizes in clusters that run Hadoop, as Roy et al. describe them
// ("Inside the Social Network's (Datacenter) Network", SIGCOMM 2015): most transfers are
// shorter than a kilobyte, few are longer than a megabyte and have most of the bytes. The
// points are ours; the mean is 112 KB.
var Hadoop = Sizes{{100, 0}, {300, 0.1}, {500, 0.35}, {1e3, 0.6}, {2e3, 0.68}, {10e3, 0.74}, {50e3, 0.85},
	{100e3, 0.9}, {300e3, 0.95}, {1e6, 0.98}, {10e6, 1}}

// Mean is the mean size in bytes.
func (s Sizes) Mean() (mean float64) {
	for i := 1; i < len(s); i++ {
		a, b := s[i-1], s[i]
		mean += (b.Part - a.Part) * (b.Bytes - a.Bytes) / math.Log(b.Bytes/a.Bytes)
	}
	return mean
}

// At is the size below which a part of all transfers is.
func (s Sizes) At(part float64) int64 {
	i := max(1, min(len(s)-1, sort.Search(len(s), func(i int) bool { return s[i].Part >= part })))
	a, b := s[i-1], s[i]
	u := (part - a.Part) / (b.Part - a.Part)
	return int64(math.Round(a.Bytes * math.Pow(b.Bytes/a.Bytes, u)))
}

// Validate reports impossible settings.
func (b *Background) Validate() error {
	if !(b.Load >= 0 && b.Load < 1) {
		return fmt.Errorf("background traffic: found a load of %g, want 0 to less than 1 of the hosts' rate", b.Load)
	}
	return nil
}

// Traffic is background traffic that runs, and what came of it.
type Traffic struct {
	Background
	net      Network
	key      rng.Key
	mean     float64 // picoseconds between two
	at       float64 // when the last began
	begun    uint64
	Begun    int64     `json:"begun"`
	Bytes    int64     `json:"bytes"` // of those begun
	Seconds  []float64 `json:"-"`     // how long each took that has ended
	Slowdown []float64 `json:"-"`     // and relative to what it takes on an empty network
}

// Start lets background traffic begin, from now on.
func (b Background) Start(n Network) (*Traffic, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	if b.Sizes == nil {
		b.Sizes = Hadoop
	}
	t := &Traffic{Background: b, net: n, key: rng.New(b.Seed), at: float64(n.Now())}
	if b.Load > 0 && n.Hosts() > 1 {
		top := n.Topology()
		t.mean = b.Sizes.Mean() / top.Rate.bytesPerPicosecond() / b.Load / float64(n.Hosts())
		t.next()
	}
	return t, nil
}

// next schedules the transfer that begins next.
func (t *Traffic) next() {
	i := 4 * t.begun
	t.begun++
	t.at += -math.Log(1-t.key.Float64(i)) * t.mean
	from := t.key.IntN(i+1, t.net.Hosts())
	x := &Transfer{From: from, To: (from + 1 + t.key.IntN(i+2, t.net.Hosts()-1)) % t.net.Hosts(),
		Bytes: t.Sizes.At(t.key.Float64(i + 3)), DSCP: t.DSCP, Start: Time(t.at)}
	if t.Until > 0 && x.Start > t.Until {
		return
	}
	x.Done = func() { t.ended(x) }
	t.net.At(x.Start, func() {
		t.Begun++
		t.Bytes += x.Bytes
		Begin(t.net, x)
		t.next()
	})
}

func (t *Traffic) ended(x *Transfer) {
	alone := t.net.Alone(x.From, x.To, x.Bytes)
	t.Seconds = append(t.Seconds, x.Seconds())
	t.Slowdown = append(t.Slowdown, float64(x.End-x.Start)/float64(alone))
}

// Quantile returns a quantile of values, which it sorts; 0 if there are none.
func Quantile(values []float64, part float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(part*float64(len(values))))]
}
