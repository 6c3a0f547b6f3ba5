package run

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/event"
	"starling/report"
	"starling/setup/setuptest"
	"starling/spec"
)

func comparing(dir string, strategies ...string) spec.Compare {
	s := spec.DefaultCompare()
	s.Spec = setuptest.Quick(dir)
	s.Strategies, s.Cluster.Workers, s.Cluster.InProcess, s.Training.Epochs = strategies, 3, true, 5
	return s
}

// TestCompare compares real runs.
func TestCompare(t *testing.T) {
	names := []string{"halo", "bns:0.5", "pipegcn"}
	s := comparing(setuptest.Block(t, nil), names...)
	s.Rounds, s.Cluster.Servers, s.Cluster.Workers, s.Cluster.Partitioner = 2, 2, 4, "chunk"
	var notes []string
	c, err := Compare(context.Background(), s, event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok {
			notes = append(notes, n.Text)
		}
	}))
	if err != nil || c.Err() != nil {
		t.Fatal(err, c.Err())
	}
	if len(c.Rows) != len(names) || c.Baseline != "halo" || c.Workers != 4 || c.Servers != 2 {
		t.Fatalf("%+v", c)
	}
	for i, r := range c.Rows {
		if r.Strategy != names[i] || r.Rounds != 2 || r.Epochs != 5 || r.Plan == "differs" || r.Bytes.Total <= 0 ||
			r.Bytes.ByLink["between_servers"] <= 0 ||
			!(r.EpochSeconds > 0) || !(r.Speedup > 0) || !(r.WaitShare >= 0 && r.WaitShare <= 1) ||
			!(r.HiddenShare >= 0 && r.HiddenShare <= 1) || !(r.TestAccuracy > 0) || len(r.Loss) != 5 {
			t.Errorf("%+v", r)
		}
		if r.Spread.Min > r.Spread.Q1 || r.Spread.Q1 > r.EpochSeconds || r.EpochSeconds > r.Spread.Q3 ||
			r.Spread.Q3 > r.Spread.Max {
			t.Errorf("%v, %+v", r.EpochSeconds, r.Spread)
		}
	}
	if c.Rows[0].Speedup != 1 || c.Rows[0].LossApart != 0 {
		t.Errorf("%+v", c.Rows[0])
	}
	if got := strings.Join(notes, "\n"); !strings.Contains(got, "round 2 of 2") ||
		strings.Count(got, "cut into 4 parts") != 1 {
		t.Error(got)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "starling-parts-*", "parts", "nothing")); len(left) > 0 {
		t.Error(left)
	}
	for _, name := range names {
		if !strings.Contains(c.String(), "\n"+name) || !strings.Contains(string(c.HTML()), name) {
			t.Errorf("no %s in\n%s", name, c)
		}
	}
}

// TestCompareMistakes are named before anything runs.
func TestCompareMistakes(t *testing.T) {
	dir := setuptest.Block(t, nil)
	for want, change := range map[string]func(*spec.Compare){
		"--strategies": func(s *spec.Compare) { s.Strategies = []string{"halo", "holo"} },
		"did you mean": func(s *spec.Compare) { s.Strategies = []string{"hallo"} },
		"halo twice":   func(s *spec.Compare) { s.Strategies = []string{"halo", "halo"} },
		"found none":   func(s *spec.Compare) { s.Strategies = []string{"none"} },
		"gcn twice":    func(s *spec.Compare) { s.Models = []string{"gcn", "gcn"} },
		"--models":     func(s *spec.Compare) { s.Models = []string{"gcn", "gcnn"} },
		"--samplers": func(s *spec.Compare) {
			s.Samplers, s.Strategies, s.Cluster.Workers = []string{"saint"}, nil,
				0
		}, "--partitioners": func(s *spec.Compare) { s.Partitioners = []string{"best"} },
		"--workers":      func(s *spec.Compare) { s.Cluster.Workers = 0 },
		"--rounds":       func(s *spec.Compare) { s.Rounds = 0 },
		"--staleness":    func(s *spec.Compare) { set(&s.Spec, "staleness=epoch:7") },
		"--html":         func(s *spec.Compare) { s.HTML = filepath.Join(dir, "no", "where") },
		"--from":         func(s *spec.Compare) { s.From = []string{filepath.Join(dir, "absent.json")} },
		"result of a tr": func(s *spec.Compare) { s.From = []string{filepath.Join(dir, "meta.json")} },
	} {
		s := comparing(dir, "halo")
		change(&s)
		if _, err := Compare(context.Background(), s, nil); !setuptest.IsMistake(err, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestCompareStops: a comparison that is interrupted is of what was done.
func TestCompareStops(t *testing.T) {
	s := comparing(setuptest.Block(t, nil), "halo")
	s.Rounds = 50
	ctx, cancel := context.WithCancel(context.Background())
	c, err := Compare(ctx, s, event.Func(func(e event.Event) {
		if _, ok := e.(event.Done); ok {
			cancel()
		}
	}))
	if !errors.Is(err, report.ErrInterrupted) || len(c.Rows) != 1 || c.Rows[0].Rounds != 1 {
		t.Errorf("%v, %+v", err, c)
	}
}

// TestVarySeed: rounds of several seeds have a mean accuracy, and the first round's
// curve.
func TestVarySeed(t *testing.T) {
	s := comparing(setuptest.Block(t, nil), "halo")
	s.Rounds, s.VarySeed = 3, true
	c, err := Compare(context.Background(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := c.Rows[0]
	one := s.Spec
	var sum report.Number
	for i := range 3 {
		one.Seed, one.Cluster.Partition = s.Seed+uint64(i), ""
		got := trained(t, one, nil)
		sum += got.TestAccuracy
		if i == 0 && report.LossDifference(got.Loss, r.Loss) > 1e-4 {
			t.Errorf("%v, want %v", r.Loss, got.Loss)
		}
	}
	// Cut from another seed, so equal to rounding only.
	if d := float64(r.TestAccuracy - sum/3); math.Abs(d) > 0.02 || !(r.TestSpread > 0) {
		t.Errorf("%v±%v, want %v", r.TestAccuracy, r.TestSpread, sum/3)
	}
}

// TestCompareSaved: results of earlier runs make the same table.
func TestCompareSaved(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, nil))
	s.Cluster.Workers, s.Cluster.InProcess, s.Training.Epochs = 2, true, 4
	var files []string
	for i, epochs := range []int{4, 4, 5} {
		s.Training.Epochs = epochs
		files = append(files, filepath.Join(t.TempDir(), "r.json"))
		if err := trained(t, s, nil).Write(files[i], nil); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Compare(context.Background(), spec.Compare{From: files}, nil)
	if err != nil || len(c.Rows) != 1 || c.Rows[0].Rounds != 3 || c.Rows[0].Plan != "equal" || len(c.Notes) != 1 ||
		!strings.Contains(c.Notes[0], "epochs differ") {
		t.Fatalf("%v %+v", err, c)
	}
}

// names are the rows of a comparison.
func names(c *report.Comparison) (list []string) {
	for _, r := range c.Rows {
		list = append(list, r.Strategy)
	}
	return list
}

// TestCompareOverMore: models, modes, samplers and partitioners are compared as strategies are.
func TestCompareOverMore(t *testing.T) {
	dir := setuptest.Block(t, nil)
	for _, x := range []struct {
		change func(s *spec.Compare)
		want   string
	}{
		{func(s *spec.Compare) {
			s.Cluster.Workers, s.Cluster.InProcess, s.Models = 0, false, []string{"gcn", "mlp"}
		}, "gcn; mlp"},
		{func(s *spec.Compare) {
			s.Cluster.Workers, s.Cluster.InProcess, s.Modes, s.Samplers = 0, false, []string{"full", "mini"},
				[]string{"cluster", "ladies"}
		}, "full; mini cluster; mini ladies"},
		{func(s *spec.Compare) { s.Partitioners = []string{"chunk", "hash"} }, "chunk; hash"},
		{func(s *spec.Compare) { s.Modes = []string{"full", "mini"} }, "full; mini"},
		{func(s *spec.Compare) {
			s.Strategies, s.Models = []string{"halo", "pipegcn"}, []string{"gcn", "sage"}
		}, "halo gcn; halo sage; pipegcn gcn; pipegcn sage"},
	} {
		s := comparing(dir)
		s.Training.Epochs = 3
		x.change(&s)
		c, err := Compare(context.Background(), s, nil)
		if err != nil || c.Err() != nil {
			t.Errorf("%s: %v", x.want, err)
			continue
		}
		if got := strings.Join(names(c), "; "); got != x.want {
			t.Errorf("rows %s, want %s", got, x.want)
		}
		for _, r := range c.Rows {
			if len(r.Val) != 3 || len(r.ValSeconds) != 3 || !(r.ValSeconds[2] > r.ValSeconds[0]) {
				t.Errorf("%s: accuracies %v after %v s", r.Strategy, r.Val, r.ValSeconds)
			}
		}
		if c.Made == nil || c.Made.Date == "" || c.Rows[0].Spec == nil {
			t.Errorf("made %+v, settings %+v", c.Made, c.Rows[0].Spec)
		}
		if x.want == "chunk; hash" && c.Rows[0].Bytes.Total == c.Rows[1].Bytes.Total {
			t.Error("both cuts send the same")
		}
	}
}

// TestCompareTypical: without a list, models are compared on one worker, and strategies on several;
// those that are not for the model are left out.
func TestCompareTypical(t *testing.T) {
	dir := setuptest.Block(t, nil)
	for want, change := range map[string]func(s *spec.Compare){
		"gcn; sage; gat; gin": func(s *spec.Compare) {
			s.Cluster.Workers,
				s.Cluster.InProcess = 0, false
		}, "halo; bns; pipegcn; sancus; g3": func(s *spec.Compare) {},
		"distdgl; salient; bytegnn; hopgnn; cobatch; lookahead": func(s *spec.Compare) { s.Mode = "mini" },
	} {
		s := comparing(dir)
		s.Training.Epochs = 2
		change(&s)
		c, err := Compare(context.Background(), s, nil)
		if err != nil || c.Err() != nil {
			t.Errorf("%s: %v %v", want, err, c)
			continue
		}
		if got := strings.Join(names(c), "; "); got != want {
			t.Errorf("rows %s, want %s", got, want)
		}
	}
}

// TestComparisonOfBatchesTrainsOneModel: strategies that split features drop entries of them too, and are exact.
func TestComparisonOfBatchesTrainsOneModel(t *testing.T) {
	s := comparing(setuptest.Block(t, nil), "distdgl", "p3", "naive-hop")
	s.Mode, s.Model.Name, s.Training.Epochs, s.Cluster.Workers = "mini", "sage", 1, 2
	c, err := Compare(context.Background(), s, event.All())
	if err != nil || c.Err() != nil {
		t.Fatal(err, c.Err())
	}
	for _, row := range c.Rows {
		if len(row.Without) != 0 || !row.Exact {
			t.Errorf("%+v", row)
		}
	}
}
