package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"starling/graph"
)

// TestCompareFails: a strategy that fails is a row, and the others are compared.
func TestCompareFails(t *testing.T) {
	nan := Number(math.NaN())
	good := func(s string, seconds ...float64) *Rounds {
		sent := EpochBytes{Total: 100 << 20, ByKind: map[string]int64{"activation": 60 << 20, "gradient": 40 << 20},
			ByLink: map[string]int64{"same_host": 30 << 20, "between_servers": 70 << 20}}
		return &Rounds{Strategy: s, Runs: []*Run{{Dataset: "d", Model: "gcn", Strategy: s, Workers: 2, Servers: 2,
			Epochs: 3,
			Loss:   []Number{3, 2, 1}, EpochSeconds: Numbers(seconds), TestAccuracy: nan, HiddenShare: nan,
			WorkerPeakRSSBytes: []int64{1 << 30}, Bytes: Bytes{Total: 400 << 20, Planned: 400 << 20, PerEpoch: &sent}}}}
	}
	c := Compare([]*Rounds{{Strategy: "bns:0.1", Err: errors.New("it broke <badly> & at\nonce")},
		good("g3", 9, 1, 1, 1, 1, 1), good("halo", 9, 2, 2, 2, 2, 2)})
	if c.Baseline != "halo" || c.Rows[1].Speedup != 2 || c.Rows[0].Error != "it broke <badly> & at; once" ||
		c.Err() == nil || !strings.Contains(c.Err().Error(), "1 of 3 strategies failed: bns:0.1") {
		t.Errorf("%+v %v", c, c.Err())
	}
	if errors.Is(c.Err(), graph.ErrInput) {
		t.Error("a failure is not a mistake of the user")
	}
	checkText(t, c)
	checkJSON(t, c)
	checkPage(t, c)
	if !strings.Contains(c.String(), "bns:0.1 failed: it broke") ||
		!strings.Contains(c.Papers(), "g3: 2.00x over halo\n") {
		t.Error(c.String(), c.Papers())
	}
	c = Compare([]*Rounds{good("cagnet", 9, 4, 4, 4, 4, 4), good("sancus", 9, 1, 1, 1, 1, 1),
		good("sancus:epoch:4", 9, 2, 2, 2, 2, 2), good("halo", 9, 2, 2, 2, 2, 2)})
	if text := c.Papers(); !strings.Contains(text, "sancus: 2.00x over halo, 4.00x over cagnet") ||
		strings.Count(text, "Peng et al.") != 1 {
		t.Error(text)
	}
	c = Compare([]*Rounds{good("cagnet", 9, 4, 4, 4, 4, 4), good("sancus", 9, 1, 1, 1, 1, 1)})
	if text := c.Papers(); !strings.Contains(text, "sancus: 4.00x over cagnet, with 100% of its bytes\n") {
		t.Error(text) // the baseline once
	}
	none := Compare([]*Rounds{{Strategy: "halo", Err: errors.New("no")}})
	checkText(t, none)
	checkJSON(t, none)
	checkPage(t, none)
	if Compare([]*Rounds{{Strategy: "halo"}}) != nil {
		t.Error("a comparison of nothing")
	}
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

// checkJSON looks for the keys that scripts rely on.
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
	for _, name := range []string{"strategy", "rounds", "epochs", "epoch_seconds", "epoch_seconds_spread", "speedup",
		"wait_share", "transfer_seconds", "hidden_share",
		"bytes_per_epoch", "bytes_total", "bytes_planned", "plan", "worker_peak_rss_bytes", "device_peak_bytes",
		"test_accuracy", "best_epoch", "loss_apart", "loss"} {
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

// checkPage reads the page as XML, which ours is but for its script, and makes sure that it loads nothing.
func checkPage(t *testing.T, c *Comparison) {
	t.Helper()
	page := c.HTML()
	before, rest, _ := bytes.Cut(page, []byte("<script>"))
	_, after, _ := bytes.Cut(rest, []byte("</script>"))
	page = append(bytes.Clone(before), after...) // sorts tables; no XML
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
	if worked != (count["polyline"] > 0) || count["script"] != 0 || strings.Contains(string(page), "ZgotmplZ") ||
		strings.Contains(string(page), "NaN") {
		t.Errorf("%v\n%s", count, page)
	}
}

// TestColdEpoch: what the first epoch takes longer than the others does not move a curve over time.
func TestColdEpoch(t *testing.T) {
	var row CompareRow
	row.setCurve(&Run{Measured: []int{0, 2, 4}, ValAccuracy: []Number{0.1, 0.2, 0.3},
		EpochSeconds: []Number{100, 2, 3, 1, 2}})
	if want := []Number{2, 7, 10}; !slices.Equal(row.ValSeconds, want) {
		t.Errorf("%v, want %v", row.ValSeconds, want)
	}
}
