package netsim

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"starling/train/traintest"
	"starling/wire"
)

// scenario runs 8 workers with background traffic.
func scenario(t *testing.T, level string) (result *Result) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "random", 8, 8)
	o := traintest.Options("gcn")
	o.Epochs = 20
	o.Strategy = traintest.Strategy(t, "halo")
	top := must(ParseTopology("leaf-spine leaves=4 spines=2 hosts=4 rate=1Gbps ecn=30KB buffer=100KB"))
	s := Scenario{Topology: top, Level: level, Workers: 8, Hosts: []int{0, 2, 4, 6, 8, 10, 12, 14},
		Background: Background{Load: 0.3, Seed: 5}, Options: Options{Options: wire.DefaultOptions()}, Charted: 6}
	synctest.Test(t, func(t *testing.T) {
		var err error
		result, err = s.Run(func(ends []wire.Endpoint) error {
			traintest.Observe(t, ends, parts, traintest.Ref, o)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	return result
}

func TestScenario(t *testing.T) {
	for _, level := range Levels {
		r, again := scenario(t, level), scenario(t, level)
		if !reflect.DeepEqual(r, again) {
			t.Errorf("%s level: two runs differ: %g s and %g s", level, r.Seconds, again.Seconds)
		}
		text, err := json.Marshal(r)
		var read Result
		if err == nil {
			err = json.Unmarshal(text, &read)
		}
		if err != nil || !reflect.DeepEqual(&read, r) {
			t.Errorf("%s level: read again as another result (%v)", level, err)
		}
		var names []string
		for _, tier := range r.Tiers {
			names = append(names, tier.Name)
			if want := map[bool]int{true: 16, false: 8}[strings.Contains(tier.Name, "host")]; tier.Links != want {
				t.Errorf("%s level: %d links in %+v, want %d", level, tier.Links, tier, want)
			}
		}
		if got := strings.Join(names, ", "); got != "host to leaf, leaf to host, leaf to spine, spine to leaf" {
			t.Errorf("%s level: tiers %s", level, got)
		}
		if r.Background.Ended == 0 || len(r.Charts) != 6 || len(r.Charts[0].Samples) < 10 || r.Tiers[0].Bytes == 0 {
			t.Errorf("%s level: %s", level, text[:500])
		}
	}
}

func TestScenarioErrors(t *testing.T) {
	good := Scenario{Topology: DefaultTopology(), Workers: 2}
	for want, change := range map[string]func(*Scenario){
		"want packet or flow": func(s *Scenario) { s.Level = "bit" },
		"want at least 1":     func(s *Scenario) { s.Workers = 0 },
		"want 0 to less than": func(s *Scenario) { s.Background.Load = -1 },
		"found kind":          func(s *Scenario) { s.Topology.Kind = "ring" },
	} {
		s := good
		change(&s)
		if _, err := s.Run(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A program that is no test simulates too, several at a time.
func TestOutsideTests(t *testing.T) {
	out, err := exec.Command("go", "run", "./testdata/outside", "--workers=2").CombinedOutput()
	if err != nil || string(out) != "[1.00 ms 1.00 ms 1.00 ms 1.00 ms]\n" {
		t.Errorf("%s (%v)", out, err)
	}
}
