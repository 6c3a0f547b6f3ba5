package switchgnn

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"starling/exchange"
	"starling/graph"
	"starling/innet"
	"starling/innet/udp"
	"starling/internal/testseed"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/train"
	"starling/train/site"
	"starling/train/traintest"
	"starling/wire"
)

// defaults are the strategy's, with small packets.
var defaults = options{SwitchMemory: "100MiB", SwitchUnits: 1}

func chosen(o options) train.Choice { return traintest.Made(Strategy, o) }

// remote counts the edges into each vertex of a part from other servers.
func remote(p *partition.Part) []int {
	out := make([]int, p.Core())
	for v := range out {
		for _, u := range p.In.Neighbors(uint32(v)) {
			if int(u) >= p.Core() {
				q := p.Book.Owner(p.Halo[int(u)-p.Core()])
				if p.Book.Servers <= 1 || p.Book.Server(q) != p.Book.Server(p.Meta.Part) {
					out[v]++
				}
			}
		}
	}
	return out
}

// random is a matrix of numbers of very different sizes.
func random(dev tensor.Device, r *rand.Rand, rows, cols int) tensor.Matrix {
	host := make([]float64, rows*cols)
	for i := range host {
		host[i] = r.NormFloat64() * math.Ldexp(1, r.IntN(10)-5)
	}
	m := dev.New(dev.Type(), rows, cols)
	dev.Upload(m, host)
	return m
}

func numbers(dev tensor.Device, m tensor.Matrix) []float64 {
	out := make([]float64, m.Rows*m.Cols)
	dev.Download(out, m)
	return out
}

// TestSums: sums and gradients equal halo's, every number within the bound of its own
// fixed-point sum, on symmetric and directed graphs, with one block and several, on
// several workers and servers.
func TestSums(t *testing.T) {
	seed := testseed.New(t)
	directed := traintest.Oddities(t, 120, false)
	for i, parts := range [][]*partition.Part{
		traintest.Cut(t, traintest.Communities(t, 120, false), "random", 2),
		traintest.Cut(t, directed, "hash", 3),
		traintest.CutForServers(t, directed, "random", 4, 2),
		traintest.CutForServers(t, traintest.Communities(t, 120, false), "random", 4, 4),
	} {
		for _, c := range []struct{ memory, blocks string }{{"100MiB", "auto"}, {"4KiB", "auto"}, {"4KiB", "cut"},
			{"4KiB", "grid"}} {
			t.Run(fmt.Sprintf("%d/%s/%s", i, c.memory, c.blocks), func(t *testing.T) {
				o := traintest.Options("gcn")
				o.Strategy = chosen(options{SwitchMemory: c.memory, SwitchUnits: 1, SwitchBlocks: c.blocks})
				traintest.OnAll(t, parts, func(s *train.Site) (wire.Bytes, error) {
					s.Opt = o
					return compareSums(s, seed)
				})
			})
		}
	}
}

// compareSums makes all sums twice, and is what it sent.
func compareSums(s *train.Site, seed uint64) (wire.Bytes, error) {
	made, err := Strategy.New(s)
	if err != nil {
		return nil, err
	}
	x := made.(*strategy)
	w := site.Worker(s, exchange.DefaultRows, exchange.RelayOption{})
	h, err := site.Halo(w)
	if err != nil {
		return nil, err
	}
	r, dev := rand.New(rand.NewPCG(seed, uint64(s.Part.Meta.Part))), s.Dev
	n, count := s.Part.Core(), remote(s.Part)
	for layer, kind := range []nn.Kind{nn.Sum, nn.Mean, nn.MeanSelf, nn.Symmetric} {
		reduce := nn.Reduction{Kind: kind}
		for back := range 2 {
			in, got, want := random(dev, r, n, 40), dev.New(dev.Type(), n, 40), dev.New(dev.Type(), n, 40)
			x.Begin(back, 0, true)
			h.Begin(back+2, 0, true)
			if back == 1 {
				x.SumGrad(layer, reduce, got, in)
				h.SumGrad(layer, reduce, want, in)
			} else {
				x.Sum(layer, reduce, got, in)
				h.Sum(layer, reduce, want, in)
			}
			if err := errors.Join(x.Err(), h.Err()); err != nil {
				return nil, err
			}
			shift := x.client.(udpClient).Shift()
			a, b := numbers(dev, got), numbers(dev, want)
			for i := range a {
				rows := count[i/40]
				if back == 1 {
					rows = s.Part.Book.Parts * 120 // more than any vertex has
				}
				bound := innet.Bound(rows, shift) + 1e-12*(1+math.Abs(b[i]))
				if math.Abs(a[i]-b[i]) > bound {
					return nil, fmt.Errorf("kind %d, backward %d, row %d: %g, halo's %g, bound %g", kind, back,
						i/40, a[i], b[i], bound)
				}
			}
		}
	}
	sent := s.End.Ledger().SentBytes()
	return sent, errors.Join(x.Finish(), h.Finish())
}

// TestFollowsOneWorker: models that only add follow one worker's loss, and planned bytes are
// those counted.
func TestFollowsOneWorker(t *testing.T) {
	for i, model := range []string{"gcn", "sage", "gin", "ressage+"} {
		d := traintest.Communities(t, 120, model == "sage")
		o := traintest.Small(model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		o.Strategy = chosen(defaults)
		workers := 2 + i%3
		parts := traintest.CutForServers(t, d, "random", workers, workers)
		for _, r := range traintest.TrainServers(t, parts, traintest.Ref, o).Results {
			traintest.SameCurve(t, model, r.Loss, want.Loss, 1e-6)
			traintest.SameCurve(t, model+", validation", r.Val, want.Val, 1e-6)
		}
		for _, r := range traintest.TrainServers(t, parts, traintest.Single, o).Results {
			traintest.SameCurve(t, model+", float32", r.Loss, want.Loss, 1e-4)
		}
	}
}

// TestOddParts: workers without a boundary, or of one vertex.
func TestOddParts(t *testing.T) {
	d, odd := traintest.OddParts(t)
	o := traintest.Small("sage")
	want := traintest.Full(t, traintest.Ref(), d, o)
	o.Strategy = chosen(defaults)
	for what, parts := range odd {
		for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
			traintest.SameCurve(t, what, r.Loss, want.Loss, 1e-6)
		}
	}
}

// TestLossChangesNothing: a run through a switch that loses and repeats packets has the bits
// of one through a switch that does not.
func TestLossChangesNothing(t *testing.T) {
	r := testseed.Rand(t)
	parts := traintest.CutForServers(t, traintest.Communities(t, 200, false), "random", 4, 4)
	o := traintest.Options("sage")
	o.Epochs, o.EvalEvery, o.Model.Layers, o.Model.Hidden = 3, 0, 3, 40
	o.Strategy = chosen(defaults)
	want := traintest.TrainServers(t, parts, traintest.Single, o)
	rows, sums := besideOf(want, besideRows), besideOf(want, besideSums)
	got := want.Sum(func(c wire.Class) bool { return traintest.IsRows(c) || c.Kind == wire.Feature })
	if rows.Bytes != got || rows.Messages == 0 || sums.Messages == 0 || besideOf(want, besideHeaders).Bytes == 0 {
		t.Errorf("%d bytes of rows, of which passed the switch %+v, and sums %+v", got, rows, sums)
	}
	for _, loss := range []float64{0.01, 0.1} {
		faults, mu := rand.New(rand.NewPCG(r.Uint64(), 1)), sync.Mutex{}
		opt := udp.DefaultServer
		opt.Fault = func() int {
			mu.Lock()
			defer mu.Unlock()
			switch x := faults.Float64(); {
			case x < loss:
				return 0
			case x < 2*loss:
				return 2
			}
			return 1
		}
		server, err := udp.Listen(opt)
		if err != nil {
			t.Fatal(err)
		}
		with := defaults
		with.Switch = server.Addr()
		o.Strategy = chosen(with)
		got := traintest.TrainServers(t, parts, traintest.Single, o)
		if !slices.Equal(got.Results[0].Loss, want.Results[0].Loss) {
			t.Errorf("loss of %g: %v, want %v", loss, got.Results[0].Loss, want.Results[0].Loss)
		}
		switch again := besideOf(got, besideRepeats); {
		case besideOf(got, besideRows) != rows:
			t.Errorf("loss of %g: rows %+v, want %+v", loss, besideOf(got, besideRows), rows)
		case float64(again.Messages) < loss/2*float64(rows.Messages) || again.Bytes == 0:
			t.Errorf("loss of %g: %+v were repeated of %+v", loss, again, rows)
		case besideOf(got, besideSums).Messages >= sums.Messages:
			t.Errorf("loss of %g: sums %+v, without loss %+v", loss, besideOf(got, besideSums), sums)
		}
		server.Close()
		if left := server.Stats(); left.Hosts != 0 || left.Registers != 0 {
			t.Errorf("left behind: %+v", left)
		}
	}
}

// besideOf is what all workers counted by a name.
func besideOf(r *traintest.Trained, name string) (n wire.Count) {
	for _, b := range r.Beside {
		n.Messages, n.Bytes = n.Messages+b[name].Messages, n.Bytes+b[name].Bytes
	}
	return n
}

// TestEachVertexLeavesOnce: per layer and direction a worker sends one row for each of its
// vertices that other servers need; halo sends one per server that needs it.
func TestEachVertexLeavesOnce(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 200, false), "random", 4, 4)
	o := traintest.Options("sage")
	o.Epochs, o.EvalEvery, o.Model.Layers = 2, 0, 3
	o.Strategy = chosen(defaults)
	run := traintest.TrainServers(t, parts, traintest.Single, o)
	for k, p := range parts {
		boundary := map[uint32]bool{}
		for _, v := range p.Send {
			boundary[v] = true
		}
		row := 4 * int64(len(boundary)) * int64(o.Model.Hidden)
		passes := int64(o.Epochs + len(run.Results[k].Measured))
		want := passes * row
		class := wire.Class{Kind: wire.Activation, Layer: 1, Link: wire.BetweenServers}
		if got := run.Counted[k][class]; got != want || len(p.Send) <= len(boundary) {
			t.Errorf("worker %d sent %d bytes of layer 1, want %d for %d vertices (halo: %d rows)", k, got, want,
				len(boundary), len(p.Send))
		}
		class.Kind = wire.Gradient
		if got, want := run.Counted[k][class], int64(o.Epochs)*row; got != want {
			t.Errorf("worker %d sent %d bytes of gradients, want %d", k, got, want)
		}
	}
}

// TestRefusals: what a switch cannot do is refused with the reason.
func TestRefusals(t *testing.T) {
	weighted := traintest.WithLoops(t, traintest.Communities(t, 60, false), true)
	for _, c := range []struct {
		model string
		data  *graph.Dataset
		want  string
	}{
		{"gat", nil, "attention"}, {"gatv2", nil, "attention"}, {"sage-pool", nil, "maxima"}, {"film", nil, "per edge"},
		{"gcn", weighted, "weights"},
	} {
		d := c.data
		if d == nil {
			d = traintest.Communities(t, 60, false)
		}
		o := traintest.Options(c.model)
		o.Strategy = chosen(defaults)
		_, err := traintest.Plan(traintest.Cut(t, d, "random", 2)[0], traintest.Ends(2)[0], o)
		if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.model, err)
		}
	}
	for _, o := range []options{{SwitchMemory: "much", SwitchUnits: 1}, {SwitchMemory: "1MiB", SwitchUnits: 12},
		{SwitchMemory: "1MiB"}, {SwitchMemory: "1MiB", SwitchUnits: 1, SwitchOrder: "bfs", SwitchBlocks: "cube"}} {
		if o.Validate() == nil {
			t.Errorf("%+v", o)
		}
	}
}

// TestStopsTogether: when one worker breaks all end, and say why.
func TestStopsTogether(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 120, false), "hash", 3)
	o := traintest.Options("gcn")
	o.Strategy = chosen(defaults)
	traintest.StopsTogether(t, parts, o, 60)
}

// TestAggregatorsAreAsWideAsRows: rows that are narrower than packets may be leave as much memory for aggregators, and
// so as few rows, as if packets had their width.
func TestAggregatorsAreAsWideAsRows(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 200, false), "random", 4, 4)
	o := traintest.Options("sage")
	o.Epochs, o.EvalEvery, o.Model.Layers, o.Model.Hidden = 1, 0, 3, 40
	sent := map[int]int64{}
	for _, units := range []int{1, 2, 8} {
		o.Strategy = chosen(options{SwitchMemory: "24KiB", SwitchUnits: units})
		sent[units] = traintest.TrainServers(t, parts, traintest.Single, o).Sum(traintest.IsRows)
	}
	if sent[8] != sent[2] || sent[2] <= sent[1] {
		t.Errorf("bytes of rows by the units of packets: %v", sent)
	}
}
