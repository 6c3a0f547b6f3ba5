package plan

import (
	"context"
	"errors"
	"fmt"
	"html"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/cost"
	"starling/dataset/generate"
	"starling/event"
	"starling/graph"
	"starling/setup"
	"starling/setup/setuptest"
	"starling/tensor/cuda"
	"starling/train"
	"starling/wire"
	"starling/wire/paths"
)

// roundRates is a file of rates of this machine, so that nothing is measured.
func roundRates(t *testing.T) string {
	t.Helper()
	k := &cost.Known{Format: cost.KnownFormat, Machine: Machine(), Cores: 2, HostByte: 1e-10, Draw: 1e-8,
		Compute: cost.Compute{GEMM: 1e10, SpMM: 1e9, Memory: 1e10, Op: 1e-6}, Inside: cost.Link{Rate: 1e9}}
	path := filepath.Join(t.TempDir(), "rates.json")
	if err := WriteRates(path, k); err != nil {
		t.Fatal(err)
	}
	return path
}

func planned(t *testing.T, change func(o *Options)) *Choices {
	t.Helper()
	o := Default()
	o.slowness = 1
	o.Dataset, o.Cluster.Workers, o.Cluster.Servers, o.Model.Hidden, o.Model.Layers = setuptest.Block(t, nil), 4, 2, 16,
		3
	o.Rate, o.RatesFile, o.Training.Epochs, o.Strategies = "100mbit", roundRates(t), 3,
		[]string{"g3", "bns", "halo+relay", "halo"}
	if change != nil {
		change(&o)
	}
	c, err := Choose(context.Background(), o, event.All())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPlanChoices: exact choices come first, sorted; approximate ones are picked only where that is allowed; the bytes of
// the default are those that its run counts; what does not go together has its reason.
func TestPlanChoices(t *testing.T) {
	c := planned(t, func(o *Options) { o.Strategies = nil })
	exact := slices.IndexFunc(c.Rows, func(r Planned) bool { return !r.Exact })
	if exact < 5 || c.Pick == nil || !c.Pick.Exact || c.Pick.Name != c.Rows[0].Name {
		t.Fatalf("%d exact choices, pick %+v", exact, c.Pick)
	}
	for _, list := range [][]Planned{c.Rows[:exact], c.Rows[exact:]} {
		if !slices.IsSortedFunc(list, func(a, b Planned) int {
			return int(math.Copysign(1, a.Predicted.Seconds-(1-tie)*b.Predicted.Seconds))
		}) {
			t.Error("choices are not sorted")
		}
	}
	c.All = true
	text := c.String()
	for _, want := range []string{"halo+relay", "switchgnn: needs a switch", "--strategy", "exact:", "approximate:"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	path := filepath.Join(t.TempDir(), "plan.html")
	if err := c.WriteHTML(path); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(path)
	page := html.UnescapeString(string(b))
	shown, _, _ := strings.Cut(page, "<details><summary>"+fmt.Sprint(exact-shownOnPage)+" more")
	for _, want := range []string{"<h2>Pick</h2>", c.Pick.Command, "Exact: the loss curve", c.Rows[shownOnPage-1].names()} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page does not show %s", want)
		}
	}
	for _, want := range []string{"Approximate: another loss curve", c.Rows[exact].names(), "switchgnn", "left out: "} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

// TestPlanApproximate: approximate choices stand apart, and are picked only where that is allowed.
func TestPlanApproximate(t *testing.T) {
	few := []string{"halo", "bns:0.01"}
	if c := planned(t, func(o *Options) { o.Strategies = few }); c.Pick.Name != "halo" || c.Rows[0].Name != "halo" {
		t.Errorf("pick %+v", c.Pick)
	}
	c := planned(t, func(o *Options) { o.Strategies, o.Approximate = few, true })
	if c.Pick.Exact || c.Rows[0].Name != "halo" {
		t.Errorf("pick %+v of %+v", c.Pick, c.Rows)
	}
}

// TestPlanMessages: one to each peer for each layer and direction; g3's bins are several.
func TestPlanMessages(t *testing.T) {
	o := Default()
	o.Dataset, o.Cluster.Workers, o.Cluster.Servers, o.Model.Hidden, o.Model.Layers, o.Mode = setuptest.Block(t, nil),
		4, 2, 16, 3, "full"
	parts, err := setup.FindParts(context.Background(), &o.Spec, event.All())
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Remove()
	p := &planner{Options: &o, parts: parts}
	if err := p.openParts(); err != nil {
		t.Fatal(err)
	}
	defer p.close()
	sent := wire.Bytes{{Kind: wire.Activation, Layer: 1, Link: wire.BetweenServers}: 1, {Kind: wire.Activation, Layer: 1}: 1,
		{Kind: wire.Gradient, Layer: 1, Link: wire.SameHost}: 1, {Kind: wire.Activation, Layer: 2}: 1,
		{Kind: wire.Parameter, Layer: -1}: 1}
	for _, strategy := range []string{"halo", "g3"} {
		s, book := o.Spec.ForStrategy(strategy), p.parts.Book
		wide := train.Find(strategy).Messages(book, 4*16)
		narrow := train.Find(strategy).Messages(book, 4*min(16, int(book.Classes)))
		if got := p.messages(&s, 1, sent); got != (2*wide+narrow)*3 {
			t.Errorf("%s: %g messages, want %g to each of 3 peers, twice, and %g of the last layer", strategy, got, wide,
				narrow)
		}
	}
	s := o.Spec.ForStrategy("distdgl")
	if s.Mode = "mini"; p.messages(&s, 1, sent) != 0 {
		t.Error("batches have messages of rows")
	}
}

// TestPlanCrossing: among many servers the time of links equals a simulation's: flows between all pairs take as long as
// the busiest link, and longer where one server receives more than the others.
func TestPlanCrossing(t *testing.T) {
	o := Default()
	o.Dataset, o.Cluster.Workers, o.Cluster.Servers, o.Model.Hidden = setuptest.Block(t,
		func(p *generate.Params) { p.Nodes, p.Edges = 900, 9000 }), 9, 9, 16
	parts, err := setup.FindParts(context.Background(), &o.Spec, event.All())
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Remove()
	p := &planner{Options: &o, parts: parts, known: &cost.Known{Between: cost.Link{Rate: 1e8}}}
	if err := p.openParts(); err != nil {
		t.Fatal(err)
	}
	defer p.close()
	out, most := make([]int64, 9), int64(0)
	for s, row := range p.haloRows() {
		in := int64(0)
		for q, rows := range row {
			out[s] += rows
			in += p.haloRows()[q][s]
		}
		most = max(most, out[s], in)
	}
	x, err := p.simulateLinks()
	if least := float64(most) / float64(slices.Max(out)); err != nil || x < 0.99*least || x > 2 {
		t.Errorf("%g times the busiest link, want %g at least, %v", x, least, err)
	}
	p.Cluster.Servers = 8
	if x, err = p.simulateLinks(); x != 0 || err != nil {
		t.Errorf("eight servers are simulated: %g, %v", x, err)
	}
}

// TestPlanWays: links of a file of paths add up; what this host has no GPUs or networks for is left out with the reason,
// and so are orders of sending. A run that chooses by itself is not told of them.
func TestPlanWays(t *testing.T) {
	one := planned(t, func(o *Options) { o.Strategies = []string{"halo"} })
	if len(one.Rows) != 1 || len(one.Dropped) > 0 {
		t.Errorf("%+v, left out %+v", one.Rows, one.Dropped)
	}
	file := filepath.Join(t.TempDir(), "paths.yaml")
	if err := os.WriteFile(file, []byte(paths.Attached([]paths.Attachment{{Prefix: netip.MustParsePrefix("127.0.0.1/32"), Rate: 1e9},
		{Prefix: netip.MustParsePrefix("127.0.0.2/32"), Rate: 1e9}}).YAML()), 0o600); err != nil {
		t.Fatal(err)
	}
	two := planned(t, func(o *Options) { o.Strategies, o.Cluster.Paths = []string{"halo"}, file })
	a, b := one.Rows[0].Predicted.Transfer, two.Rows[0].Predicted.Transfer
	if math.Abs(a/b-2) > 0.05 {
		t.Errorf("transfers take %g s, on two paths %g s", a, b)
	}
	c := planned(t, func(o *Options) { o.Strategies, o.Ways = []string{"halo"}, true })
	for _, flag := range []string{"--send-order fifo, hermod", "--device cuda", "--paths auto"} {
		dropped := slices.IndexFunc(c.Dropped, func(d Dropped) bool { return strings.Contains(d.Name, flag) })
		planned := slices.IndexFunc(c.Rows, func(r Planned) bool { return strings.Contains(r.Flags, flag) })
		switch {
		case dropped >= 0 && c.Dropped[dropped].Reason != "":
		case planned < 0 || !strings.Contains(c.Rows[planned].Command, flag):
			t.Errorf("%s is neither planned nor left out with a reason: %+v, %+v", flag, c.Rows, c.Dropped)
		}
	}
	if i := slices.IndexFunc(c.Rows, func(r Planned) bool { return r.Flags == "" }); c.Rows[i].Predicted.Seconds !=
		one.Rows[0].Predicted.Seconds {
		t.Errorf("%+v, without other ways %+v", c.Rows[i], one.Rows[0])
	}
	if gpus, err := cuda.GPUs(); err != nil || len(gpus) == 0 {
		c = planned(t, func(o *Options) { o.Strategies, o.Machine.Device = []string{"halo"}, "cuda" })
		if len(c.Rows) != 1 || len(c.Dropped) != 1 || !strings.Contains(c.Dropped[0].Name, "rates of --device cuda") {
			t.Errorf("with a GPU elsewhere: %+v, left out %+v", c.Rows, c.Dropped)
		}
	}
	w := way{links: 2, computes: &cost.Compute{GEMM: 7}, memory: 10}
	k, slowness := w.known(&cost.Known{Between: cost.Link{Rate: 3}}, 5)
	if k.Between.Rate != 6 || k.Compute.GEMM != 7 || slowness != 1 {
		t.Errorf("a GPU on two links has %+v, %g times as slow", k, slowness)
	}
	if short := (&planner{memory: 100}).fits(&w, &cost.Prediction{Memory: 11}); !strings.Contains(short, "of a GPU") {
		t.Errorf("11 bytes on a GPU of 10: %q", short)
	}
}

// TestPlanMini: strategies of mini-batches are planned from a few batches.
func TestPlanMini(t *testing.T) {
	c := planned(t, func(o *Options) {
		o.Mode, o.Model.Name, o.Model.Layers, o.Batches.Size, o.Batches.Fanout = "mini", "sage", 2, 32, "3,3"
		o.Strategies = []string{"distdgl", "salient", "cobatch"}
	})
	if len(c.Rows) != 3 {
		t.Fatalf("%+v", c)
	}
	for _, r := range c.Rows {
		if p := r.Predicted; !(p.Seconds > 0) || p.Between == 0 || p.Memory == 0 {
			t.Errorf("%s: %+v", r.Name, p)
		}
	}
}

// TestPlanMemory: what does not fit is left out with its size; if nothing fits that is a mistake.
func TestPlanMemory(t *testing.T) {
	o := Default()
	o.Dataset, o.Cluster.Workers, o.Cluster.Servers = setuptest.Block(t, nil), 4, 2
	o.RatesFile, o.Rate = roundRates(t), "1gbit"
	o.Memory, o.Strategies = "1MiB", []string{"halo"}
	_, err := Choose(context.Background(), o, event.All())
	var mistake *graph.InputError
	if !errors.As(err, &mistake) || !strings.Contains(err.Error(), "halo") || !strings.Contains(err.Error(), "per worker") {
		t.Errorf("%v", err)
	}
}

// TestPlanMistakes: what cannot be planned for is named.
func TestPlanMistakes(t *testing.T) {
	dir, rates := setuptest.Block(t, nil), roundRates(t)
	wrong := filepath.Join(t.TempDir(), "rates.json")
	if err := os.WriteFile(wrong, []byte(`{"format":"starling-rates-2","cores":2}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(o *Options){
		"--workers": func(o *Options) { o.Cluster.Workers = 1 }, "--sharing": func(o *Options) { o.Sharing = 9 },
		"--rate": func(o *Options) { o.Rate = "fast" }, "--delay": func(o *Options) { o.Delay = "soon" },
		"--rate with all 4 workers on one server": func(o *Options) { o.Cluster.Servers = 1 },
		"compute.GEMM": func(o *Options) { o.RatesFile = wrong },
		"--dropout":    func(o *Options) { o.Model.Dropout = -1 },
		"--replicas":   func(o *Options) { o.Settings = train.Settings{"replicas": -1} },
		"1 to 64":      func(o *Options) { o.Strategies = []string{"neutrontp:-1"} },
	} {
		o := Default()
		o.Dataset, o.Cluster.Workers, o.Cluster.Servers, o.RatesFile, o.Rate = dir, 4, 2, rates, "1gbit"
		change(&o)
		if _, err := Choose(context.Background(), o, event.All()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestPlanWhatIf: a graph by name or by numbers; what breaks first is told.
func TestPlanWhatIf(t *testing.T) {
	o := WhatIfOptions{Options: Default(), Like: "ogbn-papers100M", Hosts: 128}
	o.RatesFile, o.Rate, o.Memory = roundRates(t), "25gbit", "1GiB"
	p, err := WhatIf(o, event.All())
	if err != nil || p.Vertices != 111_059_956 || !strings.Contains(p.String(), "memory") {
		t.Fatalf("%v, %v", p, err)
	}
	o.Like, o.Cut = "vertices=2e9,edges=2e12", 0.1
	if p, err = WhatIf(o, event.All()); err != nil || p.Edges != 2e12 || !(p.FullGraph.Seconds > 0) {
		t.Errorf("%v, %v", p, err)
	}
	o.Like = "igbh"
	if _, err = WhatIf(o, event.All()); err == nil {
		t.Errorf("a typed graph and --model %s are taken", o.Model.Name)
	}
	o.Model.Name = "rgat"
	for memory := math.Inf(1); o.Hosts > 0; o.Hosts /= 8 { // 128, 16, 2
		p, err = WhatIf(o, event.All())
		if err != nil || p.Vertices != 547_360_534 || memory < math.Inf(1) && p.FullGraph.Memory < memory {
			t.Fatalf("%v, %v", p, err)
		}
		memory = p.FullGraph.Memory
	}
	o.Hosts = 128
	for _, like := range []string{"nothing", "vertices=2e9", "vertices=x,edges=1", "size=1,edges=1"} {
		o.Like = like
		if _, err := WhatIf(o, event.All()); err == nil {
			t.Errorf("%s is taken", like)
		}
	}
}
