package simulate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"starling/cost"
	"starling/dataset/generate"
	"starling/event"
	"starling/netsim"
	"starling/netsim/leo"
	"starling/netsim/llm"
	"starling/plan"
	"starling/report"
	"starling/setup/setuptest"
	"starling/spec"
	"starling/supervise"
	"starling/worker"
)

const someRates = "gemm=40 spmm=2 memory=8 op=2us"

// simulated is a simulation that is quick, of strategies on eight workers.
func simulated(dir string, strategies ...string) Options {
	o := Default()
	o.Spec = setuptest.Quick(dir)
	o.Spec.Cluster.Workers, o.Training.Epochs, o.Strategies, o.Computing, o.Machine.Threads = 8, 3, strategies,
		someRates, 1
	return o
}

func simulate(t *testing.T, o Options) *Simulated {
	t.Helper()
	r, err := Train(t.Context(), o, nil)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// goroutines trains with ordinary workers, of one process.
func goroutines(t *testing.T, s spec.Spec) *report.Run {
	t.Helper()
	if err := s.Complete(); err != nil {
		t.Fatal(err)
	}
	c, err := supervise.Prepare(t.Context(), s, nil, event.All())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Parts.Remove()
	events, stop, err := c.Watched(event.All())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	shares, err := c.Work(t.Context(), events)
	if err != nil {
		t.Fatal(err)
	}
	r, err := worker.JoinShares(shares)
	if err != nil {
		t.Fatal(err)
	}
	return c.Report(shares, r, 0)
}

// timesAndBytes are what two simulations of the same are compared by.
func timesAndBytes(r Row) string {
	return fmt.Sprint(r.Run.EpochSeconds, r.Run.Bytes.Total, r.Run.Bytes.Detail, r.Network.Seconds, r.Network.Tiers)
}

// TestSimulatedIsTheRun: losses, accuracies and bytes of simulated workers equal an ordinary
// run's, which are the planned ones; virtual times are the same in every run, whether
// the numbers are computed or not; computing takes time.
func TestSimulatedIsTheRun(t *testing.T) {
	dir := setuptest.Block(t, nil)
	for _, strategy := range []string{"halo", "g3"} {
		o := simulated(dir, strategy)
		row := simulate(t, o).Rows[0]
		s := o.Spec
		s.Cluster.InProcess, s.Strategy = true, ""
		s = s.ForStrategy(strategy)
		want := goroutines(t, s)
		got := row.Run
		if fmt.Sprint(got.Loss, got.ValAccuracy, got.TestAccuracy) != fmt.Sprint(want.Loss, want.ValAccuracy,
			want.TestAccuracy) {
			t.Errorf("%s: simulated %v %v, want %v %v", strategy, got.Loss, got.ValAccuracy, want.Loss, want.ValAccuracy)
		}
		if got.Bytes.Total != want.Bytes.Total || !reflect.DeepEqual(got.Bytes.ByKind, want.Bytes.ByKind) ||
			got.Bytes.Total != got.Bytes.Planned {
			t.Errorf("%s: simulated bytes %+v, want %+v", strategy, got.Bytes, want.Bytes)
		}
		first := timesAndBytes(row)
		if again := timesAndBytes(simulate(t, o).Rows[0]); again != first {
			t.Errorf("%s: two runs differ:\n%s\n%s", strategy, first, again)
		}
		o.SkipComputing = true
		if skipped := timesAndBytes(simulate(t, o).Rows[0]); skipped != first {
			t.Errorf("%s: without computing the numbers:\n%s, want\n%s", strategy, skipped, first)
		}
		o.SkipComputing, o.Computing = false, "none"
		if free := simulate(t, o).Rows[0].Run; free.MedianEpochSeconds >= got.MedianEpochSeconds {
			t.Errorf("%s: an epoch takes %v s with free computing, %v s else", strategy, free.MedianEpochSeconds,
				got.MedianEpochSeconds)
		}
	}
}

// TestSimulatedTables: several strategies make a table, a page with charts and JSON, over
// other networks and with other traffic.
func TestSimulatedTables(t *testing.T) {
	o := simulated(setuptest.Block(t, nil), "halo", "cagnet")
	o.Topology, o.Rate, o.Delay, o.Background = "leaf-spine leaves=2 spines=2 hosts=4 ecn=30KB", "1Gbps", "2us", 0.2
	r := simulate(t, o)
	text := r.String()
	for _, want := range []string{"halo", "cagnet", "leaf to spine", "rate=1Gbps delay=2us", "background:", someRates} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := r.WriteHTML(path); err != nil {
		t.Fatal(err)
	}
	page, _ := os.ReadFile(path)
	if n := strings.Count(string(page), `class="strip"`); n != 4*o.Charts { // use and queues of links, of both
		t.Errorf("the page has %d strips, want %d", n, 4*o.Charts)
	}
	for _, want := range []string{"<h2>halo</h2>", "<h2>cagnet</h2>", "leaf to spine", "background traffic", "peak use",
		report.Seconds(float64(r.Rows[0].Run.MedianEpochSeconds)), event.Bytes(r.Rows[1].Run.Bytes.Total)} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if strings.Contains(string(page), "NaN") || strings.Contains(string(page), "http") {
		t.Error("the page needs something else, or draws no numbers")
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var read Simulated
	if err := json.Unmarshal(b, &read); err != nil || len(read.Rows[1].Network.Links) != 24 {
		t.Errorf("%v: %d links", err, len(read.Rows[1].Network.Links))
	}
	flow := o
	flow.Level, flow.Topology, flow.Background = "flow", "fat-tree k=4", 0
	if s := simulate(t, flow).Rows[0].Network; s.Level != "flow" || s.Hosts != 16 {
		t.Errorf("%+v", s)
	}
}

// TestSimulationKeepsRates: measured rates are kept in a file, and a second simulation has the same; --measure measures
// anew. The table says where they come from, and with skipped numbers not that computing is charged.
func TestSimulationKeepsRates(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rates.json")
	if err := plan.WriteRates(file, &cost.Known{Format: cost.KnownFormat, Machine: plan.Machine(), Cores: 2,
		Compute: cost.Compute{GEMM: 1e10, SpMM: 1e9, Memory: 1e10, Op: 1e-6}}); err != nil {
		t.Fatal(err)
	}
	o := simulated(setuptest.Block(t, nil), "halo")
	o.Computing, o.RatesFile, o.Training.Epochs, o.Spec.Cluster.Workers = "measured", file, 1, 2
	gemm := 40e9
	o.measure = func() (cost.Compute, error) { // another number each time
		gemm *= 2
		return cost.Compute{GEMM: gemm, SpMM: 2e9, Memory: 8e9, Op: 2e-6}, nil
	}
	first := simulate(t, o).String()
	if again := simulate(t, o).String(); again != first || !strings.Contains(first, "gemm=80 ") ||
		!strings.Contains(first, file) || !strings.Contains(first, "--measure") {
		t.Errorf("two simulations differ:\n%s%s", first, again)
	}
	o.SkipComputing = true
	if text := simulate(t, o).String(); !strings.Contains(text, "gemm=80 ") || strings.Contains(text, "computing is charged") {
		t.Error(text)
	}
	o.Measure = true
	if text := simulate(t, o).String(); !strings.Contains(text, "gemm=160 ") {
		t.Errorf("they are not measured anew:\n%s", text)
	}
}

// TestSimulatedNumbersAreRead: times have their unit, counts their separators, and nothing has an exponent.
func TestSimulatedNumbersAreRead(t *testing.T) {
	rows := (&LLMTable{[]LLMRow{{Result: &llm.Result{Model: "m", Seconds: 2.5e-3, Tokens: 2.49e6}}}}).String() +
		PathsRow(leo.Row{Setting: "s", Value: 2490, Unit: "krps", Median: 2490.4}).String() +
		(&Simulated{Rows: []Row{{Strategy: "halo", Computing: cost.Compute{GEMM: 2.49e12, Op: 8.76e-9}.String(),
			Run: &report.Run{MedianEpochSeconds: 8.76e-6}, Network: &netsim.Result{Seconds: 1.5e-5}}}}).String()
	for _, want := range []string{"2.5 ms", "2,490,000", "2,490 krps", " 2,490\n", "8.76 us", "15 us", "gemm=2490", "op=0.00876us"} {
		if !strings.Contains(strings.ReplaceAll(rows, "          -\n", "\n"), want) {
			t.Errorf("no %q in\n%s", want, rows)
		}
	}
	if strings.Contains(rows, "e+") || strings.Contains(rows, "e-0") {
		t.Error(rows)
	}
}

// TestSimulated128 trains mini-batches on 128 workers, two per host.
func TestSimulated128(t *testing.T) {
	if testing.Short() {
		t.Skip("128 workers take some seconds")
	}
	o := simulated(setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges = 1000, 4000 }), "distdgl")
	o.Spec.Cluster.Workers, o.Cluster.Servers, o.Mode, o.Model.Name, o.Batches.Size, o.Training.Epochs = 128, 64,
		"mini", "sage", 2048, 1
	o.Topology = "leaf-spine leaves=8 spines=8 hosts=8"
	row := simulate(t, o).Rows[0]
	if row.Run.Workers != 128 || row.Network.Hosts != 64 || row.Run.Bytes.ByLink["same_host"] == 0 {
		t.Errorf("%d workers on %d hosts, %v", row.Run.Workers, row.Network.Hosts, row.Run.Bytes.ByLink)
	}
}

// TestSimulateMistakes: what cannot be simulated is named.
func TestSimulateMistakes(t *testing.T) {
	dir := setuptest.Block(t, nil)
	for flag, change := range map[string]func(*Options){
		"--topology":            func(o *Options) { o.Topology = "star hosts=3" },
		"--rate":                func(o *Options) { o.Rate = "fast" },
		"--delay":               func(o *Options) { o.Delay = "long" },
		"--computing":           func(o *Options) { o.Computing = "some" },
		"--level, --background": func(o *Options) { o.Background = 2 },
		"--sharing":             func(o *Options) { o.Sharing = 0 },
		"--mode":                func(o *Options) { o.Mode = "-1" },
		"--dropout":             func(o *Options) { o.Model.Dropout = -1 },
		"--skip-computing": func(o *Options) {
			o.SkipComputing, o.Model.Layers, o.Strategies = true, 3, []string{"halo+sparse"}
		},
	} {
		o := simulated(dir, "halo")
		change(&o)
		r, err := Train(t.Context(), o, nil)
		if err == nil {
			err = r.Err()
		}
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if _, err := Train(t.Context(), Options{Compare: spec.DefaultCompare()}, nil); err == nil {
		t.Error("no dataset")
	}
}
