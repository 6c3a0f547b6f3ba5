package cost

import (
	"math"
	"strings"
	"testing"

	"starling/wire"
)

// known are round rates: computing takes a second per 10^9 operations.
func known() *Known {
	return &Known{Format: KnownFormat, Machine: "m", Cores: 2, Compute: Compute{GEMM: 1e9, SpMM: 1e9, Memory: 1e9},
		Between: Link{Rate: 1e8}, Inside: Link{Rate: 1e10}}
}

// rows of a layer and gradients that a worker sends to another server.
func sends(rows, gradients int64) wire.Bytes {
	return wire.Bytes{{Kind: wire.Activation, Layer: 1, Link: wire.BetweenServers}: rows,
		{Kind: wire.Parameter, Layer: -1, Link: wire.BetweenServers}: gradients}
}

// TestPredictFull: hand-computed epochs. Two workers on two servers compute 1 and 2 s, and send 100 MB of rows each.
func TestPredictFull(t *testing.T) {
	at := Site{Workers: 2, Servers: 2, Sharing: 1}
	d := []Demand{{Work: Work{Dense: 1e9}, Sent: sends(1e8, 0), Steps: 1, Memory: 5},
		{Work: Work{Dense: 2e9}, Sent: sends(1e8, 0), Steps: 1, Memory: 7}}
	link := frame // seconds of 100 MB
	for _, c := range []struct {
		o       Overlap
		exposed float64
	}{{Overlap{}, link}, {Overlap{Rows: 0.25}, link - 0.5}, {Overlap{Rows: 1}, 0}} {
		p := Predict(known(), at, d, c.o, 1)
		if math.Abs(p.Exposed-c.exposed) > 1e-9 || p.Compute != 1.5 || p.Waiting != 0.5 || p.Memory != 7 ||
			p.Between != 2e8 || math.Abs(p.Seconds-2-c.exposed) > 1e-9 {
			t.Errorf("%+v: %+v, want %g exposed", c.o, p, c.exposed)
		}
	}
	if p := Predict(known(), at, d, Overlap{}, 3); p.Compute != 4.5 {
		t.Errorf("three times as slow: %+v", p)
	}
}

// TestPredictSharedLink: workers of a server share its link, and a server receives what the others send.
func TestPredictSharedLink(t *testing.T) {
	one := Demand{Sent: sends(1e8, 0), Steps: 1}
	for _, c := range []struct {
		d    []Demand
		want float64
	}{
		{[]Demand{one, one, one, one}, 2 * frame},
		{[]Demand{one, one, {}, {}}, 2 * frame},
		{[]Demand{one, {}, {}, {}}, frame},
	} {
		p := Predict(known(), Site{Workers: 4, Servers: 2, Sharing: 2}, c.d, Overlap{}, 1)
		if math.Abs(p.Seconds-c.want) > 1e-9 {
			t.Errorf("%g s, want %g", p.Seconds, c.want)
		}
	}
}

// TestPredictHost: processors take their time for bytes too.
func TestPredictHost(t *testing.T) {
	k := known()
	k.HostByte = 1e-7 // 10 s for 100 MB, on two cores
	at := Site{Workers: 2, Servers: 2, Sharing: 1}
	p := Predict(k, at, []Demand{{Sent: sends(1e8, 0), Steps: 1}, {Steps: 1}}, Overlap{}, 1)
	if math.Abs(p.Seconds-5*packets-frame) > 1e-9 {
		t.Errorf("%g s, want %g", p.Seconds, 5*packets+frame)
	}
}

// TestPredictCrossing: rows between servers take longer than on the busiest link, gradients do not.
func TestPredictCrossing(t *testing.T) {
	d := []Demand{{Sent: sends(1e8, 1e8), Steps: 1}, {Sent: sends(1e8, 1e8), Steps: 1}}
	for crossing, want := range map[float64]float64{0: 2 * frame, 0.5: 2 * frame, 1.5: 2.5 * frame} {
		p := Predict(known(), Site{Workers: 2, Servers: 2, Sharing: 1, Crossing: crossing}, d, Overlap{}, 1)
		if math.Abs(p.Transfer-want) > 1e-9 {
			t.Errorf("%g times: %g s, want %g", crossing, p.Transfer, want)
		}
	}
}

// TestPredictMessages: among many workers messages take longer than their bytes; those of a machine share its cores, as
// in a simulation that is given the same.
func TestPredictMessages(t *testing.T) {
	k := known()
	k.HostMessage = 1e-5
	d := []Demand{{Messages: 100, Steps: 1}, {Messages: 300, Steps: 1}}
	for sharing, want := range map[int]float64{1: 300 * 1e-5 / 2, 2: 400 * 1e-5 / 2} {
		p := Predict(k, Site{Workers: 2, Servers: 1, Sharing: sharing}, d, Overlap{}, 1)
		if math.Abs(p.Compute-want) > 1e-12 {
			t.Errorf("%d share a machine: %g s, want %g", sharing, p.Compute, want)
		}
	}
	many := Site{Workers: 9, Servers: 9, Sharing: 1} // an all-reduce is two rounds of eight messages
	if p := Predict(k, many, make([]Demand, 9), Overlap{}, 1); math.Abs(p.Compute-16*1e-5/2) > 1e-12 ||
		math.Abs(p.Exposed-2*1e-5) > 1e-12 {
		t.Errorf("nine servers: %+v", p)
	}
	k.HostByte = 1e-9
	if h := k.Handling(); h.Message != k.HostMessage/2 || h.Byte != packets*k.HostByte/2 {
		t.Errorf("each end takes %+v", h)
	}
}

// TestPredictBatches: of batches that come ahead the longer of computing and links decides, and a part of the shorter;
// else their sum.
func TestPredictBatches(t *testing.T) {
	one := Demand{Work: Work{Dense: 3e9}, Sent: sends(1e8, 0), Steps: 10}
	d := []Demand{one, one}
	at := Site{Workers: 2, Servers: 2, Sharing: 1}
	woken := 10 * stepSeconds
	if p := Predict(known(), at, d, Overlap{Ahead: true}, 1); math.Abs(p.Seconds-3-unhidden*frame-woken) > 1e-9 {
		t.Errorf("ahead: %+v", p)
	}
	if p := Predict(known(), at, d, Overlap{}, 1); math.Abs(p.Seconds-3-frame-woken) > 1e-9 {
		t.Errorf("one after the other: %+v", p)
	}
}

// TestKnownText: rates read back, and what cannot be is named.
func TestKnownText(t *testing.T) {
	k := known()
	k.Learn("full gcn halo", 1, 4)
	got, err := ParseKnown(k.Text())
	if err != nil || got.Factor("full gcn halo") != 2 || got.Compute != k.Compute {
		t.Fatalf("%+v, %v", got, err)
	}
	for change, want := range map[string]func(k *Known){
		"format": func(k *Known) { k.Format = "x" }, "compute.GEMM": func(k *Known) { k.Compute.GEMM = -1 },
		"inside": func(k *Known) { k.Inside.Rate = 1; k.Between.Rate = 1e9 },
		"cores":  func(k *Known) { k.Cores = 0 }, "quarter": func(k *Known) { k.HostByte, k.Between.Rate = 1e-5, 1e12 },
		"slow": func(k *Known) { k.Slowness = map[string]float64{"slow": 99} },
	} {
		one := known()
		want(one)
		if _, err := ParseKnown(one.Text()); err == nil || !strings.Contains(err.Error(), change) {
			t.Errorf("%s: %v", change, err)
		}
	}
	if _, err := ParseKnown([]byte("{")); err == nil {
		t.Error("half an object is taken")
	}
	if err := k.Check("other"); err == nil || !strings.Contains(err.Error(), "stale") {
		t.Errorf("another machine: %v", err)
	}
}

// TestLearn: half way in the logarithm, and never beyond twice.
func TestLearn(t *testing.T) {
	k := known()
	k.Learn("a", 1, 1.44)
	if x := k.Factor("a"); math.Abs(x-1.2) > 1e-9 {
		t.Errorf("%g, want 1.2", x)
	}
	for range 9 {
		k.Learn("a", 1, 100)
	}
	if k.Factor("a") != 2 || k.Factor("b") != 1 {
		t.Errorf("%v", k.Learned)
	}
}

// TestSlowness is the quotient of measured and charged time, within bounds.
func TestSlowness(t *testing.T) {
	c := Compute{GEMM: 1e9}
	for seconds, want := range map[float64]float64{3: 3, 1000: 10, 0.001: 0.1, 0: 1} {
		if got := (Calibrated{seconds, Work{Dense: 1e9}}).Slowness(c); got != want {
			t.Errorf("%g s: %g, want %g", seconds, got, want)
		}
	}
}
