package paths

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"
)

// example is the plan of testdata/kvs.yaml.
func example(t testing.TB) *Plan {
	t.Helper()
	text, err := os.ReadFile("testdata/kvs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return planOf(t, string(text))
}

func planOf(t testing.TB, text string) *Plan {
	t.Helper()
	f, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return NewPlan(f)
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

// TestPlanByHand: base times and tolls of the example, added up link by link. A link of 80 Gbit/s takes 10 bytes per
// nanosecond.
func TestPlanByHand(t *testing.T) {
	p := example(t)
	for _, want := range []struct {
		kind, choice               int
		base, toll, slowest, delay float64 // nanoseconds
	}{
		// cpu>nic 0.8+400, nic>cpu 0.8+400, cpu 2400, cpu>nic 6.4+400, nic>cpu 6.4+400; the cpu has eight units.
		{0, 0, 4*400 + 2*0.8 + 2*6.4 + 2400, 2*0.8 + 2*6.4 + 300, 300, 6000 + 0.64 + 5.12},
		// cpu>nic 0.8+400, nic>acc 0.8+200, acc 800+100, acc>nic 0.8+200, nic>cpu 0.8+400, and back as above.
		{0, 1, 4*400 + 2*200 + 4*0.8 + 2*6.4 + 900, 4*0.8 + 2*6.4 + 200, 200, 6000 + 0.64 + 5.12},
		{1, 0, 4*400 + 2*7.2 + 2*0.8 + 2400, 2*7.2 + 2*0.8 + 300, 300, 6000 + 5.76 + 0.64},
	} {
		c := p.Types[want.kind].Choices[want.choice]
		if !near(c.Base, want.base*1e-9) || !near(c.Toll, want.toll*1e-9) || !near(c.Slowest, want.slowest*1e-9) ||
			!near(c.Network, want.delay*1e-9) || !near(c.Jitter, 12e-6) {
			t.Errorf("type %d, choice %d: base %v, toll %v, slowest %v, network %v, want %v", want.kind, want.choice,
				c.Base, c.Toll, c.Slowest, c.Network, want)
		}
	}
}

// TestModels: the links that a hop crosses follow from the model.
func TestModels(t *testing.T) {
	for _, c := range []struct{ model, links, way string }{
		{"direct", "[cpu, switch] [acc, switch] [nic, switch]", "cpu>switch switch>nic nic>nic nic>switch switch>acc"},
		{"on-path", "[cpu, acc] [nic, acc]", "cpu>acc acc>nic nic>nic nic>acc"},
		{"off-path", "[nic, cpu] [nic, acc]", "cpu>nic nic>nic nic>acc"},
		{"custom", "[cpu, acc] [cpu, nic]", "cpu>nic nic>nic nic>cpu cpu>acc"},
	} {
		text := "hardware:\n  model: " + c.model + "\n  nodes: [{name: cpu}, {name: acc}, {name: nic}, {name: switch}]\n" +
			"  network: [{node: nic}]\n  links:\n"
		for _, l := range strings.Split(c.links, "] ") {
			text += "    - {between: " + strings.TrimSuffix(l, "]") + "], bandwidth: 8Gbps}\n"
		}
		p := planOf(t, text+"paths: [{name: p, stops: [requester.cpu, responder.acc]}]\n"+
			"requests: [{type: r, paths: [{path: p, sizes: 1B}]}]\n")
		var way []string
		for _, s := range p.Types[0].Choices[0].Stages {
			name := strings.NewReplacer(Requester+".", "", Responder+".", "").Replace(p.Resources[s.Resource].Name)
			way = append(way, name)
		}
		if got := strings.Join(way, " "); got != c.way {
			t.Errorf("%s: %s, want %s", c.model, got, c.way)
		}
	}
}

// TestErrorsNameLineAndField changes one thing of the example at a time.
func TestErrorsNameLineAndField(t *testing.T) {
	whole, err := os.ReadFile("testdata/kvs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, place, found string }{
		{"model: off-path", "model: sideways", "line 3: hardware.model", `"sideways"`},
		{"model: off-path", "mode: off-path", "line 3: hardware.mode", "unknown field"},
		{"capacity: 8", "capacity: 0", "line 5: hardware.nodes[0].capacity", `"0"`},
		{"capacity: 8", "capacity: 8.5", "line 5: hardware.nodes[0].capacity", `"8.5"`},
		{"delay: 100ns", "delay: fast", "line 6: hardware.nodes[1].delay", `"fast"`},
		{"name: nic}", "name: cpu}", "line 7: hardware.nodes[2].name", "second node"},
		{"[nic, acc]", "[nic, gpu]", "line 10: hardware.links[1].between[1]", `"gpu"`},
		{"[nic, acc]", "[cpu, acc]", "line 8: hardware.links", "link cpu-acc"},
		{"[nic, acc]", "[cpu, nic]", "line 10: hardware.links[1].between", "second link"},
		{"80Gbps, latency: 200ns", "0Gbps", "line 10: hardware.links[1].bandwidth", "0"},
		{"80Gbps, latency: 200ns", "80", "line 10: hardware.links[1].bandwidth", `"80"`},
		{"jitter: 6us", "jitter: -6us", "line 12: hardware.network[0].jitter", `"-6us"`},
		{"name: acc\n", "name: cpu\n", "line 16: paths[1].name", "second path"},
		{"responder.acc,", "acc,", "line 17: paths[1].stops[1]", `"acc"`},
		{"dependency: address\n    share: 0.95", "dependency: some", "line 20: requests[0].dependency", `"some"`},
		{"read_only: true", "read_only: never", "line 22: requests[0].read_only", `"never"`},
		{"share: 0.95", "share: 2", "line 21: requests[0].share", `"2"`},
		{"[8B, 64B]", "[8B]", "line 24: requests[0].paths[0].sizes", "1 values"},
		{"[8B, 64B]", "[8B, 64X]", "line 24: requests[0].paths[0].sizes[1]", `"64X"`},
		{"800ns, 0, 0]", "800ns]", "line 25: requests[0].paths[1].compute", "2 values"},
		{"{path: acc,", "{path: gpu,", "line 25: requests[0].paths[1].path", `"gpu"`},
		{"{path: acc,", "{path: cpu,", "line 25: requests[0].paths[1].path", "cpu twice"},
		{"type: put", "type: get", "line 26: requests[1].type", "second type"},
		{"  - type: put", "  - tpye: put", "line 26: requests[1].tpye", "unknown field"},
		{"requests:\n", "request:\n", "line 18: request", "unknown field"},
		{"[0, 2.4us, 0]}\n      - {path: acc", "[0, 2.4us, 0]\n      - {path: acc", "line", "no YAML"},
	} {
		text := strings.Replace(string(whole), c.old, c.new, 1)
		if text == string(whole) {
			t.Fatalf("%q is not in the example", c.old)
		}
		_, err := Parse([]byte(text))
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(e.Place(), c.place) || !strings.Contains(e.Found, c.found) {
			t.Errorf("%q for %q: %v, want %s: found %s", c.new, c.old, err, c.place, c.found)
		}
	}
}

// TestAmbiguousWay: of two ways that are equally short the file has to say which.
func TestAmbiguousWay(t *testing.T) {
	text := `
hardware:
  model: custom
  nodes: [{name: cpu}, {name: eth0}, {name: eth1}]
  links: [{between: [cpu, eth0], bandwidth: 1Gbps}, {between: [cpu, eth1], bandwidth: 1Gbps}]
  network: [{node: eth0}, {node: eth1}]
paths: [{name: p, stops: [requester.cpu, STOP responder.cpu]}]
requests: [{type: r, paths: [{path: p, sizes: 1KiB}]}]
`
	_, err := Parse([]byte(strings.Replace(text, "STOP", "", 1)))
	if err == nil || !strings.Contains(err.Error(), "2 ways of 3 links") {
		t.Errorf("%v", err)
	}
	p := planOf(t, strings.Replace(text, "STOP", "requester.eth1,", 1))
	if c := p.Types[0].Choices[0]; !near(c.Base, 2*1024*8e-9) {
		t.Errorf("base %v", c.Base)
	}
}

// FuzzParse: no text makes the parser panic, and what it takes makes a plan with finite times.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/kvs.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("hardware: [}"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse(text)
		if err != nil {
			return
		}
		for _, r := range NewPlan(file).Types {
			for _, c := range r.Choices {
				if math.IsNaN(c.Base) || math.IsInf(c.Base, 0) || c.Base < 0 {
					t.Errorf("base %v", c.Base)
				}
			}
		}
	})
}
