package run

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"starling/cost"
	"starling/event"
	"starling/plan"
	"starling/report"
	"starling/setup/setuptest"
	"starling/spec"
	"starling/train"
)

// knownRates writes a file of rates of this machine, so that nothing is measured.
func knownRates(t *testing.T, path string) string {
	t.Helper()
	k := &cost.Known{Format: cost.KnownFormat, Machine: plan.Machine(), Cores: 2, HostByte: 1e-10, Draw: 1e-8,
		Compute: cost.Compute{GEMM: 1e10, SpMM: 1e9, Memory: 1e10, Op: 1e-6}, Inside: cost.Link{Rate: 1e9}}
	if err := plan.WriteRates(path, k); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPlanBytes: the bytes that are planned are those that runs of the choices count per epoch.
func TestPlanBytes(t *testing.T) {
	for _, name := range []string{"halo", "halo+relay"} {
		dir := setuptest.Block(t, nil)
		o := plan.Default()
		o.Dataset, o.Cluster.Workers, o.Cluster.Servers, o.Model.Hidden, o.Model.Layers, o.Training.Epochs = dir, 4, 2,
			16, 3, 3
		o.Rate, o.RatesFile, o.Strategies = "100mbit", knownRates(t, filepath.Join(t.TempDir(), "rates.json")), []string{name}
		c, err := plan.Choose(context.Background(), o, event.All())
		if err != nil {
			t.Fatal(err)
		}
		s := spec.Default()
		s.Dataset, s.Cluster.Workers, s.Cluster.Servers, s.Model.Hidden, s.Model.Layers, s.Training.Epochs = dir, 4, 2,
			16, 3, 3
		s.Cluster.InProcess, s.Training.EvalEvery, s.Output.Quiet = true, 0, true
		r, err := Train(context.Background(), s.ForStrategy(name), event.All())
		if err != nil {
			t.Fatal(err)
		}
		p := c.Rows[0].Predicted
		counted, within := float64(r.Bytes.PerEpoch.Total), 1e-9
		if name == "halo+relay" { // how rows are relayed inside a server is not planned to the byte
			within = 0.1
		}
		if got := float64(p.Between + p.Inside); math.Abs(got/counted-1) > within {
			t.Errorf("%s: %g bytes planned, %g counted", name, got, counted)
		}
	}
}

// TestAuto: a run with --strategy auto, interrupted after any epoch and resumed, equals one that was told the choice, to the
// bit; its report has the prediction, and the file of rates learns.
func TestAuto(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	path := knownRates(t, filepath.Join(os.Getenv("XDG_CACHE_HOME"), "starling", "rates.json"))
	s := spec.Default()
	s.Dataset, s.Cluster.Workers, s.Cluster.Servers, s.Model.Hidden, s.Model.Layers,
		s.Training.Epochs = setuptest.Block(t, nil), 2, 2, 8, 2, 3
	s.Cluster.InProcess, s.Output.Quiet, s.Strategy, s.Checkpoints.Every, s.Model.Dropout = true, true, "auto:100mbit",
		1, 0.3
	auto, err := Train(context.Background(), s, event.All())
	if err != nil {
		t.Fatal(err)
	}
	if auto.Predicted == nil || !(auto.Predicted.EpochSeconds > 0) || auto.Predicted.MeasuredSeconds != auto.MedianEpochSeconds {
		t.Fatalf("predicted %+v", auto.Predicted)
	}
	if k, err := plan.ReadRates(path); err != nil || len(k.Learned) != 1 {
		t.Errorf("nothing was learnt: %+v, %v", k, err)
	}
	told := *auto.Spec
	told.Checkpoints.Dir = ""
	same(t, "told", auto.Loss, trained(t, told, nil).Loss)
	for stop := 1; stop < s.Training.Epochs; stop++ {
		one := s
		one.Checkpoints.Dir, one.Training.Epochs = t.TempDir(), stop
		told = *trained(t, one, nil).Spec
		told.Checkpoints.Dir, told.Training.Epochs = "", s.Training.Epochs
		if err := (&plan.Options{}).Learn(told, 1, 100); err != nil { // what is thought now is not what counts
			t.Fatal(err)
		}
		one.Training.Epochs, one.Checkpoints.Resume = s.Training.Epochs, true
		again := trained(t, one, nil)
		if again.Strategy != told.StrategyName() && again.Strategy != told.Strategy {
			t.Errorf("resumed with %s, was %s", again.Strategy, told.Strategy)
		}
		same(t, "resumed", trained(t, told, nil).Loss, again.Loss)
	}
}

// TestAutoIsOnePlan: a run with --strategy auto:RATE cuts the graph once, also where choices are tried, and says one
// prediction in one sentence.
func TestAutoIsOnePlan(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	knownRates(t, filepath.Join(os.Getenv("XDG_CACHE_HOME"), "starling", "rates.json"))
	s := setuptest.Quick(setuptest.Block(t, nil))
	s.Cluster.Workers, s.Cluster.Servers, s.Cluster.InProcess, s.Training.Epochs = 4, 2, true, 1
	for _, strategy := range []string{"auto:1gbit", "auto:1gbit+try"} {
		s.Strategy = strategy
		text := notesOf(t, s)
		if strings.Count(text, "cut into 4 parts") != 1 || strings.Count(text, "--strategy auto: ") != 1 ||
			strings.Count(text, "per epoch predicted") != 1 {
			t.Errorf("%s says\n%s", strategy, text)
		}
	}
}

// TestGivenRatesPredictOnce: a strategy that was given the rates that it chooses by, as auto gives them, says in one
// sentence what it does, and predicts nothing beside what was predicted with them.
func TestGivenRatesPredictOnce(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, nil))
	s.Cluster.Workers, s.Cluster.Servers, s.Cluster.InProcess, s.Training.Epochs = 4, 2, true, 2
	s.Strategy, s.Settings = "granndis", train.Settings{"memory_budget": "1GiB",
		"rates": "row:3.56e-06:4.1e-06,edge:2.01e-07:4.02e-07,inside:1.38e-09,between:1.6e-08"}
	if text := notesOf(t, s); strings.Count(text, "granndis") != 1 || strings.Contains(text, " s per epoch") {
		t.Errorf("it says\n%s", text)
	}
}

// notesOf are what a run says.
func notesOf(t *testing.T, s spec.Spec) string {
	t.Helper()
	var notes []string
	var mu sync.Mutex
	if _, err := Train(context.Background(), s, event.Func(func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		if n, ok := e.(event.Note); ok {
			notes = append(notes, n.Text)
		}
	})); err != nil {
		t.Fatal(err)
	}
	return strings.Join(notes, "\n")
}

// same compares to the bit.
func same(t *testing.T, what string, a, b any) {
	t.Helper()
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if string(x) != string(y) {
		t.Errorf("%s: %s and %s", what, x, y)
	}
}

// TestStalePrediction: where a worker was lost, what was predicted is marked, and rates learn nothing from the run.
func TestStalePrediction(t *testing.T) {
	d := &decision{options: plan.Default()}
	d.options.RatesFile, d.options.Cluster.Workers = knownRates(t, filepath.Join(t.TempDir(), "rates.json")), 2
	d.choice = plan.Planned{Name: "halo", Strategy: "halo", Predicted: cost.Prediction{Seconds: 1}}
	for _, c := range []struct {
		restarts []report.Restart
		learnt   int
	}{{[]report.Restart{{}}, 0}, {nil, 1}} {
		r := &report.Run{Restarts: c.restarts, EpochSeconds: []report.Number{3, 3, 3}, MedianEpochSeconds: 3}
		d.conclude(r, event.All())
		k, err := plan.ReadRates(d.options.RatesFile)
		if err != nil || len(k.Learned) != c.learnt || (r.Predicted.Stale != "") != (c.restarts != nil) {
			t.Errorf("%d workers lost: %v, stale %q, learnt %v", len(c.restarts), err, r.Predicted.Stale, k.Learned)
		}
	}
}

// TestAutoOptions: what follows auto.
func TestAutoOptions(t *testing.T) {
	for text, want := range map[string]struct {
		rate string
		try  bool
	}{"auto": {}, "auto:1gbit": {"1gbit", false}, "auto+try": {"", true}, "auto:1gbit+try": {"1gbit", true}} {
		if rate, try, err := autoOptions(text); err != nil || rate != want.rate || try != want.try {
			t.Errorf("%s: %q %v %v", text, rate, try, err)
		}
	}
	if _, _, err := autoOptions("auto+fast"); err == nil {
		t.Error("auto+fast is taken")
	}
}
