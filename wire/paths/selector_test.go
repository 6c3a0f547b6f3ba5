package paths

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"starling/rng"
)

// TestDependentsKeepTheirPath: a get of an address that is being put takes the path of the put, and a get changes
// nothing for others.
func TestDependentsKeepTheirPath(t *testing.T) {
	p := example(t)
	s := NewSelector(p, NewLEOQueue(p))
	get, put, other := Arrival{Address: 7}, Arrival{Kind: 1, Address: 7}, Arrival{Address: 8}
	id, choice := s.Begin(0, &put)
	if choice != 0 {
		t.Fatal("a put has one path")
	}
	if _, choice := s.Begin(0, &get); choice != 0 {
		t.Errorf("a get of the same address takes path %d", choice)
	}
	if _, choice := s.Begin(0, &other); choice != 1 {
		t.Errorf("a get of another address takes path %d", choice)
	}
	put.Address = 8
	id2, choice := s.Begin(0, &put)
	if choice != 0 {
		t.Errorf("a put after a get waits: %d", choice)
	}
	s.End(1, id, p.Types[1].Choices[0].Base)
	s.Drop(id2)
	for _, a := range []Arrival{get, other} {
		if _, choice := s.Begin(1, &a); choice != 1 {
			t.Errorf("no put is under way any more, a get takes path %d", choice)
		}
	}
	if n := s.InProgress(); n != 4 {
		t.Errorf("%d in progress, want 4", n)
	}
}

// TestDependentWaits: a request that may not take the path of one that it depends on waits.
func TestDependentWaits(t *testing.T) {
	p := planOf(t, strings.NewReplacer("type: r\n", "type: r\n    dependency: message\n",
		"only-b,", "only-b, dependency: message,").Replace(twoPaths))
	s := NewSelector(p, NewLEOQueue(p))
	first, second := Arrival{Message: 1}, Arrival{Kind: 1, Message: 1}
	id, _ := s.Begin(0, &first)
	if _, choice := s.Begin(0, &second); choice != Wait {
		t.Errorf("choice %d", choice)
	}
	s.End(2, id, 2)
	if _, choice := s.Begin(2, &second); choice != 0 {
		t.Errorf("choice %d", choice)
	}
	o := Replay(p, NewLEOQueue(p), Load{Trace: Trace{{At: 0, Message: 1}, {At: 0, Kind: 1, Message: 1}, {At: 1, Message: 2}}})
	if want := []float64{0, 2, 2}; !reflect.DeepEqual(o.Begin, want) {
		t.Errorf("begun at %v, want %v", o.Begin, want)
	}
}

// TestKeyTable compares the table with a map.
func TestKeyTable(t *testing.T) {
	var table keyTable
	want := map[uint64]int32{}
	draw := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		key := mixed(uint64(draw.IntN(200)), Address)
		if draw.IntN(2) == 0 {
			table.add(key, int(key%3))
			want[key]++
		} else if want[key] > 0 {
			table.remove(key)
			if want[key]--; want[key] == 0 {
				delete(want, key)
			}
		}
		path, ok := table.path(key)
		if ok != (want[key] > 0) || ok && path != int(key%3) || table.used != len(want) {
			t.Fatalf("key %d: path %d, %v, %d keys; want %d, %d keys", key, path, ok, table.used, want[key], len(want))
		}
	}
}

// TestReplayByHand: two paths, three requests.
func TestReplayByHand(t *testing.T) {
	p := planOf(t, twoPaths)
	o := Replay(p, NewLEOQueue(p), Load{Trace: arrivals(0, 0, 0.5)})
	// a: 1 s at the cpu and 1 s of delay each; the second waits 1 s, the third 1.5 s.
	if want := []float64{2, 3, 4}; !reflect.DeepEqual(o.End, want) || !reflect.DeepEqual(o.Host, []float64{2, 3, 3.5}) {
		t.Errorf("ends %v, host times %v, want %v", o.End, o.Host, want)
	}
	o = Replay(p, NewRoundRobin(p), Load{Trace: arrivals(0, 0, 0), Outstanding: 1})
	if want := []float64{2, 7, 9}; !reflect.DeepEqual(o.End, want) {
		t.Errorf("one at a time: ends %v, want %v", o.End, want)
	}
}

// TestReplayRepeats: a trace that was written and read gives the same choices and times, and the order of requests for
// one address is kept at the responder.
func TestReplayRepeats(t *testing.T) {
	p := example(t)
	trace := poisson(p, 3000, 6e6, rng.New(3))
	var b bytes.Buffer
	if err := WriteTrace(&b, p, trace); err != nil {
		t.Fatal(err)
	}
	again, err := ReadTrace(&b, p)
	if err != nil {
		t.Fatal(err)
	}
	first, second := Replay(p, NewLEOQueue(p), Load{Trace: trace}), Replay(p, NewLEOQueue(p), Load{Trace: again})
	if !reflect.DeepEqual(first, second) {
		t.Error("the same trace gave another outcome")
	}
	paths := map[uint64]int{} // of the last put
	ends := map[uint64]float64{}
	for i, a := range trace {
		path := p.Types[a.Kind].Choices[first.Choices[i]].Path
		if before, ok := paths[a.Address]; ok && first.Begin[i] < ends[a.Address] && before != path {
			t.Fatalf("request %d of address %d left its path", i, a.Address)
		}
		if !p.Types[a.Kind].ReadOnly {
			paths[a.Address], ends[a.Address] = path, max(ends[a.Address], first.End[i])
		}
	}
}

func TestTraceErrors(t *testing.T) {
	p := example(t)
	for text, want := range map[string]string{
		"":                                    "",
		"0 get 1 2":                           "line 1",
		traceHead + "\n0 get 1":               "line 2: found 3 fields",
		traceHead + "\n\nx get 1 2":           "line 3: seconds",
		traceHead + "\n0 take 1 2":            "line 2: type",
		traceHead + "\n0 get -1 2":            "line 2: address",
		traceHead + "\n0 get 1 z":             "line 2: message",
		traceHead + "\n2 get 1 2\n1 get 1 2":  "line 3: seconds",
		traceHead + "\nNaN get 1 2\n# get 12": "line 2: seconds",
	} {
		_, err := ReadTrace(strings.NewReader(text), p)
		var e *Error
		if want == "" && err != nil || want != "" && (!errors.As(err, &e) || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
