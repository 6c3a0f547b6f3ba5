package netsim

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"starling/rng"
)

// buildNS3 compiles testdata/ns3/compare.cc, where ns-3 is installed.
func buildNS3(t *testing.T) string {
	t.Helper()
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("no g++: install it and libns3-dev (apt-get install g++ libns3-dev) to compare with ns-3")
	}
	if _, err := os.Stat("/usr/include/ns3/core-module.h"); err != nil {
		t.Skip("no ns-3: apt-get install libns3-dev to compare with it")
	}
	program := filepath.Join(t.TempDir(), "compare")
	out, err := exec.Command(compiler, "-O2", "-std=c++17", "-o", program, "testdata/ns3/compare.cc", "-lns3-core",
		"-lns3-network", "-lns3-internet", "-lns3-point-to-point", "-lns3-traffic-control").CombinedOutput()
	if err != nil {
		t.Skipf("ns-3 is of another version than 3.37, or incomplete: %v\n%.2000s", err, out)
	}
	return program
}

// scenarioNS3 is one of the comparison. Without spines it is a star.
type scenarioNS3 struct {
	name                    string
	leaves, spines, perLeaf int
	rate, uplink            Rate
	queue                   int64 // bytes per port; 0: unlimited
	transfers               func(key rng.Key, hosts int) []*Transfer
}

const payloadNS3 = 1000

// incastNS3 has all others send to host 0, from random times on.
func incastNS3(key rng.Key, hosts int) (out []*Transfer) {
	for h := 1; h < hosts; h++ {
		out = append(out, &Transfer{From: h, To: 0, Bytes: payloadNS3 * int64(200+key.IntN(uint64(h), 800)),
			Start: Time(key.IntN(uint64(1000+h), 100)) * Microsecond})
	}
	return out
}

// shiftedNS3 has every host send to one in the next leaf or beyond, and some hosts receive from several.
func shiftedNS3(key rng.Key, hosts int) (out []*Transfer) {
	for h := range hosts {
		out = append(out, &Transfer{From: h, To: (h + hosts/2 + h%3) % hosts,
			Bytes: payloadNS3 * int64(300+key.IntN(uint64(h), 700)), Start: Time(h) * Microsecond})
	}
	return out
}

// resultNS3 is what either simulator says.
type resultNS3 struct {
	ends        []Time
	peak, drops int64
	events      uint64
	wall        float64
}

func (s *scenarioNS3) run(t *testing.T, program string, transfers []*Transfer) (r resultNS3) {
	t.Helper()
	queue := s.queue
	if queue == 0 {
		queue = 2e9
	}
	var in bytes.Buffer
	for _, x := range transfers {
		fmt.Fprintln(&in, x.From, x.To, x.Bytes/payloadNS3, int64(x.Start))
	}
	c := exec.Command(program, strings.Fields(fmt.Sprint(s.leaves, s.spines, s.perLeaf, int64(s.rate), int64(s.uplink),
		int64(Microsecond), payloadNS3, queue))...)
	c.Stdin = &in
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	r.ends = make([]Time, len(transfers))
	for line := range strings.Lines(string(out)) {
		var i int
		var end Time
		if n, _ := fmt.Sscanf(line, "end %d %d", &i, (*int64)(&end)); n == 2 {
			r.ends[i] = end
		}
		fmt.Sscanf(line, "peak %d", &r.peak)
		fmt.Sscanf(line, "drops %d", &r.drops)
		fmt.Sscanf(line, "events %d", &r.events)
		fmt.Sscanf(line, "wall %g", &r.wall)
	}
	return r
}

// ours is the same with netsim. The header is the sum of UDP's, IP's and PPP's.
func (s *scenarioNS3) ours(t *testing.T, transfers []*Transfer) (r resultNS3) {
	t.Helper()
	text := fmt.Sprintf("star hosts=%d", s.perLeaf)
	if s.spines > 0 {
		text = fmt.Sprintf("leaf-spine leaves=%d spines=%d hosts=%d uplink=%v routing=spray", s.leaves, s.spines,
			s.perLeaf, s.uplink)
	}
	n := network(t, "packet", fmt.Sprintf("%s rate=%v delay=1us payload=%dB header=30B control=none buffer=%dB", text,
		s.rate, payloadNS3, s.queue))
	begin := time.Now()
	for _, x := range transfers {
		Send(n, x)
	}
	Run(n, Never)
	r.wall = time.Since(begin).Seconds()
	for _, x := range transfers {
		r.ends = append(r.ends, x.End)
	}
	st := n.Stats()
	r.peak, r.drops = busiestPort(st, func(p *PortStats) int64 { return p.PeakQueue }).PeakQueue, st.Drops
	r.events = st.Events
	return r
}

// TestAgainstNS3: completion times, queue peaks and drops of UDP agree with ns-3 within 5%.
func TestAgainstNS3(t *testing.T) {
	if testing.Short() {
		t.Skip("compiling against ns-3 takes 15 s")
	}
	program := buildNS3(t)
	for _, s := range []scenarioNS3{
		{"star, incast", 1, 0, 8, 10 * Gbps, 0, 0, incastNS3},
		{"star, incast, drops", 1, 0, 8, 10 * Gbps, 0, 300e3, incastNS3},
		{"star, shifted", 1, 0, 10, 25 * Gbps, 0, 0, shiftedNS3},
		{"leaf-spine, one spine", 3, 1, 4, 10 * Gbps, 20 * Gbps, 0, shiftedNS3},
		{"leaf-spine, one spine, incast", 3, 1, 4, 10 * Gbps, 40 * Gbps, 0, incastNS3},
		{"leaf-spine, sprayed", 4, 4, 4, 10 * Gbps, 10 * Gbps, 0, incastNS3},
	} {
		t.Run(s.name, func(t *testing.T) {
			transfers := s.transfers(rng.New(3), max(1, s.leaves)*s.perLeaf)
			want, got := s.run(t, program, transfers), s.ours(t, transfers)
			for i := range want.ends {
				if s.queue == 0 || want.ends[i]*got.ends[i] != 0 { // which packets are dropped is a matter of ties
					near(t, fmt.Sprintf("end of transfer %d", i), got.ends[i].Seconds(), want.ends[i].Seconds(), 0.05)
				}
			}
			near(t, "peak queue", float64(got.peak), float64(want.peak), 0.05)
			near(t, "drops", float64(got.drops), float64(want.drops), 0.05)
			t.Logf("netsim %.3g events/s, %.3g s in all; ns-3 %.3g events/s, %.3g s in all",
				float64(got.events)/got.wall, got.wall, float64(want.events)/want.wall, want.wall)
		})
	}
}
