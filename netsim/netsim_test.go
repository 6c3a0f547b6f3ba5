package netsim

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// network makes one at a level.
func network(t testing.TB, level, topology string) Network {
	t.Helper()
	top, err := ParseTopology(topology)
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(top, level)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// sendAll runs transfers to their end.
func sendAll(t testing.TB, n Network, transfers ...*Transfer) {
	t.Helper()
	for _, x := range transfers {
		Send(n, x)
	}
	Run(n, Never)
	for _, x := range transfers {
		if x.End == 0 {
			t.Errorf("%+v has not ended", *x)
		}
	}
}

// near compares with a relative tolerance.
func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*math.Abs(want) {
		t.Errorf("%s: %g, want %g within %g%%", what, got, want, 100*tolerance)
	}
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]Time{"0ps": 0, "1ns": 1000, "1.5us": 1500 * Nanosecond, "2ms": 2 * Millisecond,
		"1s": Second} {
		got, err := ParseTime(text)
		again, _ := ParseTime(got.String())
		if err != nil || got != want || again != want {
			t.Errorf("%s is %d (%v), want %d; %v is %d", text, got, err, want, got, again)
		}
	}
	for _, text := range []string{"", "5", "us", "-1us", "1 us", "1e30s", "1Gbps", "nans", "1us2"} {
		if got, err := ParseTime(text); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	if r, err := ParseRate("25Gbps"); err != nil || r.Transmit(1500) != 480*Nanosecond || r.String() != "25Gbps" {
		t.Error(r, err)
	}
	if b, err := ParseBytes("64KiB"); err != nil || b != 65536 {
		t.Error(b, err)
	}
	if got := Rate(3).Transmit(1); got != 2666666666667 {
		t.Errorf("a byte at 3 bps takes %d ps", got)
	}
	if got := (7 * Gbps).Transmit(1 << 40); got != 1256584717458286 {
		t.Errorf("1 TiB at 7 Gbps takes %d ps", got)
	}
}

// The heap gives events by time, and those of one time as they were scheduled.
func TestEngineOrder(t *testing.T) {
	var e engine
	hash := uint64(1)
	for i := range int32(5000) {
		hash = scramble(hash + uint64(i))
		e.schedule(Time(hash%97), eventKind(hash>>32%7), i, 0)
	}
	var before event
	for range 5000 {
		ev := e.take()
		if ev.at < before.at || ev.at == before.at && ev.a < before.a || e.now != ev.at {
			t.Fatalf("%v comes after %v", ev, before)
		}
		before = ev
	}
	if e.Next() != Never || e.Handled() != 5000 {
		t.Error("events are left")
	}
}

// Scheduling an event and handling a packet allocate nothing.
func TestNoAllocationPerEvent(t *testing.T) {
	n := network(t, "packet", "star hosts=4 ecn=30KB buffer=1MB").(*Packets)
	for h := 1; h < 4; h++ {
		Send(n, &Transfer{From: h, To: 0, Bytes: 40e6})
	}
	Run(n, 5*Millisecond) // queues and pools have their size
	before := n.handled
	allocations := testing.AllocsPerRun(1, func() { Run(n, n.Now()+5*Millisecond) })
	if events := n.handled - before; allocations > float64(events)/100 || events < 10000 {
		t.Errorf("%g allocations for %d events", allocations, events)
	}
}

func TestTopologyText(t *testing.T) {
	for text, hosts := range map[string]int{
		"star": 8, "star hosts=3 rate=10Gbps delay=500ns": 3, "fat-tree k=8": 128,
		"leaf-spine leaves=8 spines=8\n hosts=16 # per leaf\n uplink=100Gbps routing=spray":         128,
		"rail servers=3 gpus=8 spines=2 inside=900Gbps ecn=64KiB buffer=16MB shared=true queues=64": 24,
	} {
		top, err := ParseTopology(text)
		if err != nil || top.HostCount() != hosts {
			t.Errorf("%s: %d hosts, want %d (%v)", text, top.HostCount(), hosts, err)
			continue
		}
		again, err := ParseTopology(top.String())
		if err != nil || again != top {
			t.Errorf("%s: read again as %+v (%v)", top, again, err)
		}
		if f := build(top); f.hosts != hosts {
			t.Errorf("%s: built with %d hosts", text, f.hosts)
		}
	}
}

func TestTopologyErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "found no kind, want one of star, leaf-spine, fat-tree, rail",
		"ring hosts=4":              "found no kind",
		"star hosts":                `found "hosts", want name=value`,
		"star hosts=many":           `hosts: found "many", want a whole number`,
		"star hosts=0":              "found hosts=0, want 1 to",
		"star hosts=2 hosts=3":      "found hosts twice",
		"star leaves=2":             "leaves: found an unknown name, want one of hosts, rate",
		"star rate=25":              `rate: found "25", want a rate such as 25Gbps`,
		"star rate=0Gbps":           "want more than 0bps",
		"fat-tree k=5":              "found k=5, want an even number",
		"star routing=random":       "found routing=random, want ecmp",
		"star control=cubic":        "found control=cubic, want dctcp",
		"star buffer=100B":          "want space for one packet of 1538B",
		"star shared=perhaps":       "want true or false",
		"star queues=65":            "found queues=65, want 1 to 64",
		"rail servers=9999 gpus=64": "hosts in all",
	} {
		if _, err := ParseTopology(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := ReadTopology("no/such/file"); err == nil || !strings.Contains(err.Error(), "or a file") {
		t.Error(err)
	}
}

func FuzzParseTopology(f *testing.F) {
	for _, k := range Kinds {
		f.Add(k + " rate=10Gbps delay=1us queues=4 # c")
	}
	f.Fuzz(func(t *testing.T, text string) {
		top, err := ParseTopology(text)
		if err != nil {
			return
		}
		if again, err := ParseTopology(top.String()); err != nil || again != top {
			t.Errorf("%q: %v is read again as %v (%v)", text, top, again, err)
		}
	})
}

// Every pair of hosts is joined by paths that are as short as the topology says, which
// pass no host, and which hashes spread over all of them.
func TestPaths(t *testing.T) {
	for text, hops := range map[string]func(a, b int) int{
		"star hosts=5": func(a, b int) int { return 2 },
		"leaf-spine leaves=3 spines=2 hosts=2": func(a, b int) int {
			return map[bool]int{true: 2, false: 4}[a/2 == b/2]
		},
		"fat-tree k=4": func(a, b int) int {
			switch {
			case a/2 == b/2:
				return 2
			case a/4 == b/4:
				return 4
			}
			return 6
		},
		"rail servers=2 gpus=3 spines=2": func(a, b int) int {
			return map[bool]int{true: 2, false: 4}[a/3 == b/3 || a%3 == b%3]
		},
	} {
		f := build(must(ParseTopology(text)))
		for a := range f.hosts {
			for b := range f.hosts {
				if a != b {
					checkPaths(t, f, int32(a), int32(b), hops(a, b))
				}
			}
		}
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func checkPaths(t *testing.T, f *fabric, a, b int32, hops int) {
	t.Helper()
	used := map[int32]bool{}
	for hash := range uint64(64) {
		path := f.paths.path(a, b, scramble(hash))
		if len(path) != hops || f.ports[path[0]].from != a || f.ports[path[hops-1]].to != b {
			t.Fatalf("%v: a path from %d to %d of %d links, want %d", f.top.Kind, a, b, len(path), hops)
		}
		for _, p := range path {
			used[p] = true
		}
	}
	into := 0.0
	for _, s := range f.paths.spread(a, b) {
		if !used[s.port] {
			t.Errorf("%v: no hash of 64 uses %s from %d to %d", f.top.Kind, f.name(s.port), a, b)
		}
		if f.ports[s.port].to == b {
			into += s.part
		}
	}
	near(t, "what arrives of a sprayed flow", into, 1, 1e-12)
}

// A transfer that is traced knows its switches: both leaves and one spine, or all where packets are sprayed.
func TestThrough(t *testing.T) {
	for routing, spines := range map[string]int{"ecmp": 1, "spray": 4} {
		n := network(t, "flow", "leaf-spine leaves=3 spines=4 hosts=2 routing="+routing)
		x := &Transfer{From: 0, To: 3, Bytes: 1000, Traced: true}
		Begin(n, x)
		slices.Sort(x.Through)
		if len(x.Through) != 2+spines || x.Through[0] != 0 || x.Through[1] != 1 || x.Through[2] < 3 {
			t.Errorf("%s: through %v", routing, x.Through)
		}
	}
}
