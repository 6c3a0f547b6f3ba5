package run

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/event"
	"starling/graph"
)

func comparing(dir string, strategies ...string) CompareSpec {
	s := DefaultCompare()
	s.Spec = quick(dir)
	s.Strategies, s.Workers, s.InProcess, s.Epochs = strategies, 3, true, 5
	return s
}

// TestCompare runs halo and another strategy and looks at all that comes of it.
func TestCompare(t *testing.T) {
	names := []string{"halo"}
	for _, more := range []string{"bns:0.5", "pipegcn"} {
		if name, _, _ := strings.Cut(more, ":"); contains(Strategies(), name) {
			names = append(names, more)
		}
	}
	s := comparing(block(t, nil), names...)
	s.Rounds, s.Servers, s.Workers, s.Partitioner = 2, 2, 4, "chunk"
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
		if r.Strategy != names[i] || r.Rounds != 2 || r.Epochs != 5 || r.Plan == "differs" || r.Bytes.Total <= 0 || r.Bytes.ByLink["between_servers"] <= 0 ||
			!(r.EpochSeconds > 0) || !(r.Speedup > 0) || !(r.WaitShare >= 0 && r.WaitShare <= 1) || !(r.HiddenShare >= 0 && r.HiddenShare <= 1) || !(r.TestAccuracy > 0) || len(r.Loss) != 5 {
			t.Errorf("%+v", r)
		}
		if r.Spread.Min > r.Spread.Q1 || r.Spread.Q1 > r.EpochSeconds || r.EpochSeconds > r.Spread.Q3 || r.Spread.Q3 > r.Spread.Max {
			t.Errorf("%v, %+v", r.EpochSeconds, r.Spread)
		}
	}
	if c.Rows[0].Speedup != 1 || c.Rows[0].LossApart != 0 {
		t.Errorf("%+v", c.Rows[0])
	}
	if got := strings.Join(notes, "\n"); !strings.Contains(got, "round 2 of 2") || strings.Count(got, "cut into 4 parts") != 1 {
		t.Error(got)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "starling-parts-*", "parts", "nothing")); len(left) > 0 {
		t.Error(left)
	}
	checkText(t, c)
	checkJSON(t, c)
	checkPage(t, c)
}

func contains(list []string, x string) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

func checkText(t *testing.T, c *Comparison) {
	t.Helper()
	for line := range strings.Lines(c.String() + c.Papers()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 120 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, r := range c.Rows {
		if !strings.Contains(c.String(), r.Strategy) {
			t.Errorf("no %s in\n%s", r.Strategy, c)
		}
	}
}

// checkJSON looks for the names that scripts rely on.
func checkJSON(t *testing.T, c *Comparison) {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write("-", &b); err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	row := m["rows"].([]any)[0].(map[string]any)
	for _, name := range []string{"strategy", "rounds", "epochs", "epoch_seconds", "epoch_seconds_spread", "speedup", "wait_share", "transfer_seconds", "hidden_share",
		"bytes_per_epoch", "bytes_total", "bytes_planned", "plan", "worker_peak_rss_bytes", "device_peak_bytes", "test_accuracy", "best_epoch", "loss_apart", "loss"} {
		if _, ok := row[name]; !ok {
			t.Errorf("no %s in %s", name, b.String())
		}
	}
	for _, name := range []string{"dataset", "model", "vertices", "edges", "workers", "servers", "baseline"} {
		if _, ok := m[name]; !ok {
			t.Errorf("no %s in %s", name, b.String())
		}
	}
}

// checkPage reads the page as XML, which HTML need not be but ours is, and makes
// sure that it asks for nothing from elsewhere.
func checkPage(t *testing.T, c *Comparison) {
	t.Helper()
	page := c.HTML()
	d := xml.NewDecoder(bytes.NewReader(page))
	d.Entity = xml.HTMLEntity
	var text strings.Builder
	count := map[string]int{}
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, page)
		}
		switch x := tok.(type) {
		case xml.CharData:
			text.Write(x)
		case xml.StartElement:
			count[x.Name.Local]++
			for _, a := range x.Attr {
				if a.Name.Local == "src" || a.Name.Local == "href" {
					t.Errorf("the page needs %s", a.Value)
				}
			}
		}
	}
	worked := false
	for _, r := range c.Rows {
		if !strings.Contains(text.String(), r.Strategy) {
			t.Errorf("no %s on the page", r.Strategy)
		}
		if r.Rounds > 0 {
			worked = true
		}
	}
	if worked != (count["polyline"] > 0) || count["script"] != 0 || strings.Contains(string(page), "ZgotmplZ") || strings.Contains(string(page), "NaN") {
		t.Errorf("%v\n%s", count, page)
	}
}

// TestCompareFails: a strategy that fails is a row, and the others go on.
func TestCompareFails(t *testing.T) {
	nan := Number(math.NaN())
	good := func(s string, seconds ...float64) *runsOf {
		return &runsOf{strategy: s, reports: []*Report{{Dataset: "d", Model: "gcn", Strategy: s, Workers: 2, Epochs: 3, Loss: []Number{3, 2, 1}, EpochSeconds: numbers(seconds), TestAccuracy: nan, HiddenShare: nan}}}
	}
	c := newComparison([]*runsOf{{strategy: "bns:0.1", err: errors.New("it broke <badly> & at\nonce")}, good("g3", 9, 1, 1), good("halo", 9, 2, 2)})
	if c.Baseline != "halo" || c.Rows[1].Speedup != 2 || c.Rows[0].Error != "it broke <badly> & at; once" || c.Err() == nil || !strings.Contains(c.Err().Error(), "1 of 3 strategies failed: bns:0.1") {
		t.Errorf("%+v %v", c, c.Err())
	}
	if errors.Is(c.Err(), graph.ErrInput) {
		t.Error("a failure is no mistake of the user's")
	}
	checkText(t, c)
	checkJSON(t, c)
	checkPage(t, c)
	if !strings.Contains(c.String(), "bns:0.1 failed: it broke") || !strings.Contains(c.Papers(), "g3: 2.00x over halo\n") {
		t.Error(c.String(), c.Papers())
	}
	c = newComparison([]*runsOf{good("cagnet", 9, 4, 4), good("sancus", 9, 1, 1), good("sancus:epoch:4", 9, 2, 2), good("halo", 9, 2, 2)})
	if text := c.Papers(); !strings.Contains(text, "sancus: 2.00x over halo, 4.00x over cagnet") || strings.Count(text, "Peng et al.") != 1 {
		t.Error(text)
	}
	none := newComparison([]*runsOf{{strategy: "halo", err: errors.New("no")}})
	checkText(t, none)
	checkJSON(t, none)
	checkPage(t, none)
	if newComparison([]*runsOf{{strategy: "halo"}}) != nil {
		t.Error("a comparison of nothing")
	}
}

// TestCompareMistakes are named before anything runs.
func TestCompareMistakes(t *testing.T) {
	dir := block(t, nil)
	for want, change := range map[string]func(*CompareSpec){
		"--strategies":   func(s *CompareSpec) { s.Strategies = []string{"halo", "holo"} },
		"did you mean":   func(s *CompareSpec) { s.Strategies = []string{"hallo"} },
		"halo twice":     func(s *CompareSpec) { s.Strategies = []string{"halo", "halo"} },
		"at least one":   func(s *CompareSpec) { s.Strategies = nil },
		"found none":     func(s *CompareSpec) { s.Strategies = []string{"none"} },
		"--workers":      func(s *CompareSpec) { s.Workers = 0 },
		"--rounds":       func(s *CompareSpec) { s.Rounds = 0 },
		"--staleness":    func(s *CompareSpec) { s.Staleness = "epoch:7" },
		"--html":         func(s *CompareSpec) { s.HTML = filepath.Join(dir, "no", "where") },
		"--from":         func(s *CompareSpec) { s.From = []string{filepath.Join(dir, "absent.json")} },
		"result of a tr": func(s *CompareSpec) { s.From = []string{filepath.Join(dir, "meta.json")} },
	} {
		s := comparing(dir, "halo")
		change(&s)
		if _, err := Compare(context.Background(), s, nil); !isMistake(err, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestCompareStops: a comparison that is interrupted is of what was done.
func TestCompareStops(t *testing.T) {
	s := comparing(block(t, nil), "halo")
	s.Rounds = 50
	ctx, cancel := context.WithCancel(context.Background())
	c, err := Compare(ctx, s, event.Func(func(e event.Event) {
		if _, ok := e.(event.Done); ok {
			cancel()
		}
	}))
	if !errors.Is(err, ErrInterrupted) || len(c.Rows) != 1 || c.Rows[0].Rounds != 1 {
		t.Errorf("%v, %+v", err, c)
	}
}

// TestVarySeed: rounds of several seeds have a mean accuracy, and the first round's
// curve.
func TestVarySeed(t *testing.T) {
	s := comparing(block(t, nil), "halo")
	s.Rounds, s.VarySeed = 3, true
	c, err := Compare(context.Background(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := c.Rows[0]
	one := s.Spec
	var sum Number
	for i := range 3 {
		one.Seed, one.Partition = s.Seed+uint64(i), ""
		got := trained(t, one, nil)
		sum += got.TestAccuracy
		if i == 0 && apart(got.Loss, r.Loss) > 1e-4 {
			t.Errorf("%v, want %v", r.Loss, got.Loss)
		}
	}
	// Cut from another seed, so equal to rounding only.
	if d := float64(r.TestAccuracy - sum/3); math.Abs(d) > 0.02 || !(r.TestSpread > 0) {
		t.Errorf("%v±%v, want %v", r.TestAccuracy, r.TestSpread, sum/3)
	}
	checkText(t, c)
}

// TestCompareSaved: results of earlier runs make the same table.
func TestCompareSaved(t *testing.T) {
	s := quick(block(t, nil))
	s.Workers, s.InProcess, s.Epochs = 2, true, 4
	var files []string
	for i, epochs := range []int{4, 4, 5} {
		s.Epochs = epochs
		files = append(files, filepath.Join(t.TempDir(), "r.json"))
		if err := trained(t, s, nil).Write(files[i], nil); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Compare(context.Background(), CompareSpec{From: files}, nil)
	if err != nil || len(c.Rows) != 1 || c.Rows[0].Rounds != 3 || c.Rows[0].Plan != "equal" || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "epochs differ") {
		t.Fatalf("%v %+v", err, c)
	}
	checkText(t, c)
	checkPage(t, c)
}

func FuzzParseReport(f *testing.F) {
	f.Add([]byte(`{"dataset":"d","strategy":"halo","workers":2,"loss":[1,null],"epoch_seconds":[1],"bytes":{"by_kind":{"a":1}}}`))
	f.Add([]byte(`{"rows":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parseReport(b); err == nil {
			c := newComparison([]*runsOf{{strategy: r.label(), reports: []*Report{r}}})
			_, _, _ = c.String(), c.Papers(), c.HTML()
		}
	})
}

func TestSplitStrategies(t *testing.T) {
	for text, want := range map[string]string{
		"halo":                               "halo",
		"halo, bns:0.1,,g3":                  "halo|bns:0.1|g3",
		"granndis:eas1,15,halo":              "granndis:eas1,15|halo",
		"granndis:2:eas1,15,halo":            "granndis:2:eas1,15|halo",
		"sancus:epoch:2,granndis:eas1,15,g3": "sancus:epoch:2|granndis:eas1,15|g3",
		"":                                   "",
	} {
		if got := strings.Join(SplitStrategies(text), "|"); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestForStrategy: settings of other strategies do not get in the way.
func TestForStrategy(t *testing.T) {
	s := Default()
	s.Staleness, s.Smooth = "epoch:5", 0.5
	if halo := s.forStrategy("halo"); halo.Staleness != Default().Staleness || halo.Smooth != 0 || s.Smooth != 0.5 {
		t.Errorf("%+v", halo)
	}
	if sancus := s.forStrategy("sancus:epoch:5"); sancus.Staleness != "epoch:5" || sancus.Smooth != 0 {
		t.Errorf("%+v", sancus)
	}
	s.Workers = 2
	if older := s.forStrategy("sancus:epoch:2"); older.Validate() != nil {
		t.Error("what follows the name does not win:", older.Validate())
	}
	if half := s.forStrategy("halo+bf16"); half.Strategy != "halo" || half.WireDType != "bf16" || half.Validate() != nil {
		t.Errorf("%+v", half)
	}
	if both := s.forStrategy("g3+relay+bf16"); both.Strategy != "g3" || !both.Relay || both.WireDType != "bf16" {
		t.Errorf("%+v", both)
	}
	if all := s.forStrategy("pipegcn+relay+means+int8"); !all.Relay || !all.Means || all.WireDType != "int8" {
		t.Errorf("%+v", all)
	}
	if less := s.forStrategy("g3+relay+sparse"); !less.Relay || !less.SparseRows || less.WireDType != "none" || less.Validate() != nil {
		t.Errorf("%+v: %v", less, less.Validate())
	}
	if no := s.forStrategy("halo+sparse+bf16"); no.Validate() == nil || !strings.Contains(no.Validate().Error(), "--sparse-rows") {
		t.Errorf("halo+sparse+bf16: %v", no.Validate())
	}
	for _, text := range []string{"halo+means", "bns:0.1+means"} {
		if no := s.forStrategy(text); no.Validate() == nil || !strings.Contains(no.Validate().Error(), "--means") {
			t.Errorf("%s: %v", text, no.Validate())
		}
	}
	s.Workers = 4
	if no := s.forStrategy("sancus+relay"); no.Validate() == nil || !strings.Contains(no.Validate().Error(), "--relay") {
		t.Errorf("sancus+relay: %v", no.Validate())
	}
	for name := range settingsOf {
		if s.field(name) == nil {
			t.Errorf("no setting is called %s", name)
		}
	}
}

// TestLabels: results are named as a comparison would have named them.
func TestLabels(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"halo":               func(s *Spec) { s.Strategy = "halo" },
		"halo+bf16":          func(s *Spec) { s.Strategy, s.WireDType = "halo", "bf16" },
		"g3+relay+bf16":      func(s *Spec) { s.Strategy, s.Relay, s.WireDType = "g3", true, "bf16" },
		"g3+relay+sparse":    func(s *Spec) { s.Strategy, s.Relay, s.SparseRows = "g3", true, true },
		"pipegcn+means":      func(s *Spec) { s.Strategy, s.Means = "pipegcn", true },
		"bns:0.5":            func(s *Spec) { s.Strategy = "bns:0.5" },
		"pipegcn":            func(s *Spec) { s.Strategy = "pipegcn" },
		"pipegcn smooth=0.5": func(s *Spec) { s.Strategy, s.Smooth = "pipegcn", 0.5 },
		"sancus:epoch:4":     func(s *Spec) { s.Strategy, s.Staleness = "sancus", "epoch:4" },
		"sancus:epoch:3":     func(s *Spec) { s.Strategy = "sancus:epoch:3" },
		"granndis:eas1,15":   func(s *Spec) { s.Strategy = "granndis:eas1,15" },
		"granndis:2:eas1,9":  func(s *Spec) { s.Strategy = "granndis:2:eas1,9" },
		"granndis:1:eas1,9":  func(s *Spec) { s.Strategy, s.Preload = "granndis:eas1,9", "1" },
		"granndis:3:eas1,9":  func(s *Spec) { s.Strategy, s.EAS = "granndis:3", "1,9" },
		"granndis:4:eas1,9":  func(s *Spec) { s.Strategy, s.Preload, s.EAS = "granndis", "4", "1,9" },
		"granndis:2+int8":    func(s *Spec) { s.Strategy, s.Preload, s.WireDType = "granndis", "2", "int8" },
	} {
		s := Default()
		change(&s)
		b, err := json.Marshal(s.strategySettings())
		if err != nil {
			t.Fatal(err)
		}
		r := &Report{Strategy: s.Strategy}
		if err := json.Unmarshal(b, &r.StrategySettings); err != nil {
			t.Fatal(err)
		}
		if got := r.label(); got != want {
			t.Errorf("%s, want %s, of %s", got, want, b)
		}
	}
}

func (s *Spec) field(name string) *field {
	for _, f := range s.fields() {
		if f.name == name {
			return &f
		}
	}
	return nil
}

// TestNotesOnce: what strategies say alike is said once, what went wrong every time.
func TestNotesOnce(t *testing.T) {
	var heard []string
	l := notesOnce(event.Func(func(e event.Event) { heard = append(heard, e.(event.Note).Text) }))
	for range 2 {
		l.On(event.Note{Text: "a hint", Minor: true})
		l.On(event.Note{Text: "lost rank 1"})
	}
	if want := []string{"a hint", "lost rank 1", "lost rank 1"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}
