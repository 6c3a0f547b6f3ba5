package granndis

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/train"
	"starling/train/site"
	"starling/train/traintest"
	"starling/wire"
)

// with is granndis with settings; preload is auto where it is empty.
func with(preload, eas string) train.Choice {
	return traintest.Made(Strategy, options{Preload: cmp.Or(preload, "auto"), EAS: eas,
		RowOptions: exchange.DefaultRows})
}

// within is granndis with a memory budget.
func within(preload, budget string) train.Choice {
	return traintest.Made(Strategy, options{Preload: preload, BudgetOption: exchange.BudgetOption{MemoryBudget: budget},
		RowOptions: exchange.DefaultRows})
}

// TestIsExact: every model, with dropout, for every number of preloaded layers,
// follows one worker's loss, and rows of preloaded layers stay inside their server.
func TestIsExact(t *testing.T) {
	for i, model := range nn.Models {
		d := traintest.Communities(t, 120, i%2 == 1)
		o := traintest.ThreeLayers(model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		for j, shape := range [][2]int{{4, 2}, {[]int{3, 5, 6}[i%3], []int{3, 1, 2}[i%3]}} {
			parts := traintest.CutForServers(t, d, []string{"random", "hash", "chunk", "fennel"}[(i+j)%4], shape[0],
				shape[1])
			for k := range o.Model.GraphLayers() + 1 {
				o.Strategy = with(fmt.Sprint(k), "")
				label := fmt.Sprintf("%s on %d workers of %d servers, %d layers preloaded", model, shape[0], shape[1],
					k)
				run := traintest.TrainServers(t, parts, traintest.Ref, o)
				for _, r := range run.Results {
					traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-9)
					traintest.SameCurve(t, label+", validation", r.Val, want.Val, 1e-9)
				}
				for l := range k {
					if b := run.Between(int16(l)); b > 0 {
						t.Errorf("%s: %d bytes of layer %d between servers", label, b, l)
					}
				}
				if k == o.Model.GraphLayers() && run.Between() > 0 {
					t.Errorf("%s: %d bytes of rows between servers", label, run.Between())
				}
			}
		}
	}
}

// TestDeep: hops of 28 layers reach everything that can be reached, and float32
// follows float64.
func TestDeep(t *testing.T) {
	d := traintest.Communities(t, 60, false)
	o := traintest.Options("ressage+")
	o.Epochs, o.EvalEvery, o.Model.Hidden, o.Model.Dropout = 3, 0, 8, 0.1
	want := traintest.Full(t, traintest.Ref(), d, o)
	parts := traintest.CutForServers(t, d, "random", 4, 2)
	for _, k := range []string{"28", "5", "1"} {
		o.Strategy = with(k, "")
		for _, r := range traintest.TrainServers(t, parts, traintest.Ref, o).Results {
			traintest.SameCurve(t, k+" of 28 layers", r.Loss, want.Loss, 1e-9)
		}
		for _, r := range traintest.TrainServers(t, parts, traintest.Single, o).Results {
			traintest.SameCurve(t, k+" of 28 layers, float32", r.Loss, want.Loss, 1e-4)
		}
	}
}

// TestFloat32 follows one worker's losses for 20 epochs.
func TestFloat32(t *testing.T) {
	d := traintest.Communities(t, 150, false)
	o := traintest.ThreeLayers("gcn")
	o.Epochs, o.EvalEvery = 20, 5
	want := traintest.Full(t, traintest.Ref(), d, o)
	parts := traintest.CutForServers(t, d, "fennel", 4, 2)
	for _, k := range []string{"1", "3", "auto"} {
		o.Strategy = with(k, "")
		for _, r := range traintest.TrainServers(t, parts, traintest.Single, o).Results {
			traintest.SameCurve(t, k+" layers preloaded", r.Loss, want.Loss, 1e-4)
		}
	}
}

// TestChooses: whatever is chosen is exact, and what was predicted and measured
// is told.
func TestChooses(t *testing.T) {
	for _, model := range []string{"gcn", "ressage+", "mlp"} {
		d := traintest.Communities(t, 80, false)
		o := traintest.ThreeLayers(model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		parts := traintest.CutForServers(t, d, "random", 4, 2)
		for _, budget := range []string{"", "1B"} {
			o.Strategy = within("auto", budget)
			run := traintest.TrainServers(t, parts, traintest.Ref, o)
			for _, r := range run.Results {
				traintest.SameCurve(t, model, r.Loss, want.Loss, 1e-9)
			}
			if model == "mlp" {
				continue
			}
			if last := run.Notes[len(run.Notes)-1]; !strings.Contains(last, "measured") ||
				!strings.Contains(last, "predicts") {
				t.Errorf("%s: notes are %q", model, run.Notes)
			}
			if budget != "" && run.Between() == 0 {
				t.Errorf("%s: preloaded without memory: %q", model, run.Notes)
			}
		}
	}
}

// TestMostLayersThatFit: the paper's rule takes all layers where memory allows, and sends no rows between servers; with
// little memory it takes none. Both are exact.
func TestMostLayersThatFit(t *testing.T) {
	d := traintest.Communities(t, 80, false)
	o := traintest.ThreeLayers("gcn")
	want := traintest.Full(t, traintest.Ref(), d, o)
	parts := traintest.CutForServers(t, d, "random", 4, 2)
	for budget, says := range map[string]string{"1GiB": "granndis preloads 3 of 3 layers",
		"1B": "granndis preloads 0 of 3 layers"} {
		o.Strategy = within("most", budget)
		run := traintest.TrainServers(t, parts, traintest.Ref, o)
		for _, r := range run.Results {
			traintest.SameCurve(t, budget, r.Loss, want.Loss, 1e-9)
		}
		if notes := strings.Join(run.Notes, "\n"); !strings.Contains(notes, says) {
			t.Errorf("with %s: %s, want %q", budget, notes, says)
		}
	}
}

// TestOddGraphs: loops, weights and directions are as in one worker's run.
func TestOddGraphs(t *testing.T) {
	for _, model := range []string{"gcn", "sage", "sage-pool", "gat", "gatv2", "gin", "film", "ressage+"} {
		d := traintest.Oddities(t, 70, model[0] == 'g')
		o := traintest.ThreeLayers(model)
		o.Epochs = 3
		want := traintest.Full(t, traintest.Ref(), d, o)
		parts := traintest.CutForServers(t, d, "random", 4, 2)
		for _, k := range []string{"1", "2", "4"} {
			o.Strategy = with(k, "")
			for _, r := range traintest.TrainServers(t, parts, traintest.Ref, o).Results {
				traintest.SameCurve(t, model+" with "+k, r.Loss, want.Loss, 1e-9)
			}
		}
		o.Strategy = with("4", "9,999")
		for _, r := range traintest.TrainServers(t, parts, traintest.Ref, o).Results {
			traintest.SameCurve(t, model+" sampling everything", r.Loss, want.Loss, 1e-9)
		}
	}
}

// TestOddParts: parts without a halo, without training vertices, of one vertex,
// of none, and much larger than the others.
func TestOddParts(t *testing.T) {
	d := traintest.Communities(t, 64, false)
	var src, dst []uint32 // two halves without an edge between them
	for v := range uint32(d.Graph.Nodes()) {
		for _, u := range d.Graph.Neighbors(v) {
			if (u < 32) == (v < 32) {
				src, dst = append(src, u), append(dst, v)
			}
		}
	}
	halves := traintest.Communities(t, 64, false)
	halves.Graph, _ = graph.FromEdges(64, src, dst, nil, graph.BuildOptions{})
	halves.Meta.Edges = halves.Graph.Edges()
	for name, c := range map[string]struct {
		d  *graph.Dataset
		of func(v uint32) uint32
	}{
		"no halo":            {halves, func(v uint32) uint32 { return v / 32 * 2 }},
		"no training vertex": {d, func(v uint32) uint32 { return min(v%4, 1) * (1 + v%3) }},
		"one vertex":         {d, func(v uint32) uint32 { return min(v, 3) }},
		"one empty":          {d, func(v uint32) uint32 { return v % 3 }},
		"uneven":             {d, func(v uint32) uint32 { return uint32(max(0, int(v)-57)) / 2 }},
	} {
		for _, model := range []string{"gcn", "sage", "gat"} {
			o := traintest.ThreeLayers(model)
			o.Epochs = 3
			want := traintest.Full(t, traintest.Ref(), c.d, o)
			of := make([]uint32, 64)
			for v := range of {
				of[v] = c.of(uint32(v))
			}
			parts := traintest.WriteParts(t, c.d, of, 4, 2)
			for _, k := range []string{"1", "3"} {
				o.Strategy = with(k, "")
				for _, r := range traintest.TrainServers(t, parts, traintest.Ref, o).Results {
					traintest.SameCurve(t, name+", "+model+" with "+k, r.Loss, want.Loss, 1e-9)
				}
			}
			o.Strategy = with("3", "1,2")
			traintest.TrainServers(t, parts, traintest.Ref, o)
		}
	}
}

// TestSampling: nothing but sums travels between servers in training, accuracy is
// that of the whole graph, and with everything sampled losses are exact.
func TestSampling(t *testing.T) {
	for i, model := range nn.Models {
		d := traintest.Communities(t, 120, i%2 == 0)
		parts := traintest.CutForServers(t, d, "random", 4, 2)
		o := traintest.ThreeLayers(model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		for _, sample := range []string{"0,0", "1,2", "2,1"} {
			o.Strategy = with("", sample)
			run := traintest.TrainServers(t, parts, traintest.Ref, o)
			for _, c := range run.Counted {
				for s, b := range c {
					if s.Link == wire.BetweenServers && s.Kind == wire.Gradient {
						t.Errorf("%s sampling %s: %d bytes of %v between servers", model, sample, b, s)
					}
				}
			}
			for _, r := range run.Results {
				if last := len(r.Loss) - 1; model != "mlp" && r.Loss[last] == want.Loss[last] {
					t.Errorf("%s sampling %s: left nothing out", model, sample)
				}
			}
		}
		o.Strategy = with("1", "1,2")
		run := traintest.TrainServers(t, parts, traintest.Ref, o)
		for _, c := range run.Counted {
			for s, b := range c {
				if s.Link == wire.BetweenServers && s.Kind == wire.Gradient && s.Layer < 1 {
					t.Errorf("%s sampling, one layer preloaded: %d bytes of %v between servers", model, b, s)
				}
			}
		}
		if model != "mlp" && run.Between() == 0 {
			t.Errorf("%s sampling, one layer preloaded: no rows between servers", model)
		}
		for _, preload := range []string{"auto", "0", "1"} { // rows that are not computed twice are received
			o.Strategy = with(preload, "9,1000")
			for _, r := range traintest.TrainServers(t, parts, traintest.Ref, o).Results {
				traintest.SameCurve(t, model+" sampling everything, preloading "+preload, r.Loss, want.Loss, 1e-9)
			}
		}
		o.Optim.LR, o.Strategy = 0, with("", "1,1") // the same weights: the same accuracy
		want = traintest.Full(t, traintest.Ref(), d, o)
		for _, r := range traintest.TrainServers(t, parts, traintest.Ref, o).Results {
			if o.Model.Norm != "batch" { // whose running means are of sampled rows
				traintest.SameCurve(t, model+" measured", r.Val, want.Val, 1e-9)
			}
		}
	}
}

// TestGrowthCountsWhatHalosHave: the counts that predictions stand on equal the counts of the
// halos that are then made.
func TestGrowthCountsWhatHalosHave(t *testing.T) {
	const layers = 4
	for _, shape := range [][2]int{{4, 2}, {6, 3}, {3, 3}} {
		parts := traintest.CutForServers(t, traintest.Communities(t, 100, false), "fennel", shape[0], shape[1])
		traintest.OnAll(t, parts, func(s *train.Site) (wire.Bytes, error) {
			s.Opt.Model, s.Opt.Strategy = traintest.Options("gcn").Model, with("", "")
			w := site.Worker(s, exchange.DefaultRows, exchange.RelayOption{})
			l := exchange.NewSetup(w)
			n, err := newNeighbourhood(l, site.NewCosts(s, l), layers, nil)
			if err != nil {
				return nil, err
			}
			h := exchange.NewHalo(w.Dev, exchange.PartHalo(w.Part))
			if got := n.grown.layer(0, 0); got.made != int64(h.Dst) || got.taken != int64(h.Src) ||
				got.edges != w.Part.In.Edges() || got.inside+got.between != int64(h.HaloRows()) {
				return nil, fmt.Errorf("halo: counted %+v", got)
			}
			if err := n.grow(layers); err != nil {
				return nil, err
			}
			for k := 1; k <= layers; k++ {
				if err := countsOf(n, k, layers); err != nil {
					return nil, err
				}
			}
			return l.Sent, n.Close()
		})
	}
}

// countsOf compares the counts of k preloaded layers with the halos that are made for them.
func countsOf(n *neighbourhood, k, layers int) error {
	c := n.replicas(k)
	halos, err := c.Halos(layers, func(layer int, v uint32) int {
		if layer < k {
			return n.holder(v)
		}
		return n.w.Part.Book.Owner(v)
	})
	if err != nil {
		return err
	}
	book := n.w.Part.Book
	for i, h := range halos {
		got := n.grown.layer(k, i)
		want := load{made: int64(h.Dst), taken: int64(h.Src), edges: c.In.Indptr[h.Dst], inside: int64(h.HaloRows())}
		for q := range book.Parts {
			if book.Server(q) != book.Server(n.w.End.Rank()) {
				rows := h.HaloPtr[q+1] - h.HaloPtr[q]
				want.inside, want.between = want.inside-rows, want.between+rows
			}
		}
		if got != want {
			return fmt.Errorf("layer %d of %d: counted %+v, made %+v", i, k, got, want)
		}
	}
	return nil
}

// TestNeedsPeersToPlan: a dry run has no peers to ask.
func TestNeedsPeersToPlan(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 40, false), "random", 4, 2)
	ends := traintest.Ends(4)
	defer traintest.Close(ends)
	for preload, want := range map[string]error{"0": nil, "1": wire.ErrUnplanned, "auto": wire.ErrUnplanned,
		"most": wire.ErrUnplanned} {
		o := traintest.ThreeLayers("gcn")
		o.Strategy = with(preload, "")
		if _, err := traintest.Plan(parts[0], ends[0], o); !errors.Is(err, want) {
			t.Errorf("preload %s: %v", preload, err)
		}
	}
	for _, preload := range []string{"", "x", "-1", "1.5"} {
		if _, err := (&options{Preload: preload}).layers(3); err == nil {
			t.Errorf("preload %q passed", preload)
		}
	}
}

// TestStopsTogether: wherever one worker breaks, while looking up or in an
// epoch, all end and know why.
func TestStopsTogether(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 100, false), "random", 4, 2)
	for _, sample := range []string{"", "1,5"} {
		for _, at := range []int{1, 10, 40, 150} {
			o := traintest.ThreeLayers("gcn")
			o.Epochs, o.Strategy = 50, with("", sample)
			traintest.StopsTogether(t, parts, o, at)
		}
	}
}

// TestOverBudget: more layers than memory are refused by name.
func TestOverBudget(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 60, false), "random", 2, 2)
	o := traintest.ThreeLayers("sage")
	o.Strategy = within("2", "100B")
	ends := traintest.Ends(2)
	defer traintest.Close(ends)
	traintest.Each(2, func(k int) {
		_, err := traintest.Work(parts[k], ends[k], traintest.Ref, o, nil)
		if err == nil || !strings.Contains(err.Error(), "over the --memory-budget of 100 B") {
			t.Errorf("worker %d: %v", k, err)
		}
	})
}

// TestReceivesAShare: whatever share of the last preloaded layer's halo is
// received all the same, the loss is one worker's, and what is sent was planned.
func TestReceivesAShare(t *testing.T) {
	for i, model := range []string{"gcn", "sage", "gat", "ressage+"} {
		d := traintest.Communities(t, 100, i%2 == 1)
		o := traintest.ThreeLayers(model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		parts := traintest.CutForServers(t, d, "random", 6, 2)
		for k := 2; k <= 3; k++ {
			var sent []int64
			for _, share := range []float64{0, 0.5, 1} {
				o.Strategy = traintest.Made(received(k, share), options{RowOptions: exchange.DefaultRows})
				run := traintest.TrainServers(t, parts, traintest.Ref, o)
				for _, r := range run.Results {
					traintest.SameCurve(t, fmt.Sprintf("%s, %d layers, %g received", model, k, share), r.Loss,
						want.Loss, 1e-9)
				}
				sent = append(sent, run.Between(int16(k-1)))
			}
			if sent[0] != 0 || sent[1] <= 0 || sent[2] <= sent[1] {
				t.Errorf("%s, %d layers: bytes of the last are %v", model, k, sent)
			}
		}
	}
}

// received is k preloaded layers with a share of the last one's rows received.
func received(k int, share float64) train.Descriptor {
	return train.Describe(train.Descriptor{Name: "received"}, options{},
		func(s *train.Site, o options) (train.Strategy, error) {
			w := site.Worker(s, o.RowOptions, exchange.RelayOption{})
			l := exchange.NewSetup(w)
			n, err := newNeighbourhood(l, site.NewCosts(s, l), k, nil)
			if err != nil {
				return nil, err
			}
			if err := n.grow(k); err != nil {
				return nil, err
			}
			n.receive(share)
			return n.preload(k, w.Model.GraphLayers(), 0)
		})
}

// TestPlainSampling: without what makes up for lost edges, sums are the sums of the graph without them, and with
// everything sampled losses are exact.
func TestPlainSampling(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	parts := traintest.CutForServers(t, d, "random", 4, 2)
	server := make([]int, d.Graph.Nodes())
	for q, p := range parts {
		for _, id := range p.IDs[:p.Core()] {
			server[id] = q / 2
		}
	}
	inside, in := *d, &graph.CSR{Indptr: []int64{0}}
	for v := range d.Graph.Nodes() {
		for _, u := range d.Graph.Neighbors(uint32(v)) {
			if server[u] == server[v] {
				in.Indices = append(in.Indices, u)
			}
		}
		in.Indptr = append(in.Indptr, int64(len(in.Indices)))
	}
	inside.Graph = in
	run := func(model, text string) []float64 {
		o := traintest.ThreeLayers(model)
		o.EvalEvery, o.Strategy = 0, traintest.Strategy(t, text)
		return traintest.TrainServers(t, parts, traintest.Ref, o).Results[0].Loss
	}
	o := traintest.ThreeLayers("gin")
	o.EvalEvery = 0
	want := traintest.Full(t, traintest.Ref(), &inside, o)
	traintest.SameCurve(t, "gin", run("gin", "granndis:eas0,0:plain"), want.Loss, 1e-9)
	for _, model := range []string{"gcn", "sage", "gin"} {
		plain, whole := run(model, "granndis:eas0,0:plain"), run(model, "granndis:eas0,0")
		if slices.Equal(plain, whole) {
			t.Errorf("%s: losses equal those with edges that count for lost ones: %v", model, plain)
		}
		traintest.SameCurve(t, model+" sampling everything", run(model, "granndis:eas9,1000:plain"),
			run(model, "halo"), 1e-9)
	}
	for text, eas := range map[string]string{"granndis:eas:plain": "1,15", "granndis:2:eas1,9:plain": "1,9"} {
		c, err := traintest.Choose(text)
		if err != nil || c.Setting("eas") != eas || c.Setting("eas_plain") != "true" {
			t.Errorf("%s: %v, %v", text, c.Report(), err)
		}
	}
	if _, err := traintest.Choose("granndis:2:plain"); err == nil {
		t.Error("granndis:2:plain makes sense")
	}
}
