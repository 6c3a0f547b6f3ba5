package calls

import (
	"math/rand/v2"
	"strings"
	"testing"
)

type call struct{ number uint32 }

// TestNumbers makes, cancels and answers calls at random: both sides agree which are under way, whichever order the
// frames come in.
func TestNumbers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var caller Caller[call]
	var server Server[string, call]
	service := "rows"
	under := map[uint32]*call{} // the twin
	for range 20000 {
		if rnd.IntN(3) > 0 && !caller.Full() {
			c := &call{}
			c.number = caller.Begin(c)
			if under[c.number] != nil || caller.UnderWay(c.number) != c {
				t.Fatalf("call %d was given twice", c.number)
			}
			under[c.number] = c
			cancelled := rnd.IntN(4) == 0
			if cancelled { // before its request
				if r, err := server.Cancel(c.number); r != nil || err != nil {
					t.Fatal(r, err)
				}
			}
			if err := server.Check(c.number); err != nil {
				t.Fatal(err)
			}
			server.Begin(c.number, &service)
			if err := server.Check(c.number); err == nil || !strings.Contains(err.Error(), "a second time") {
				t.Fatal(err)
			}
			if s, was := server.Arrive(c.number, c); s != &service || was != cancelled {
				t.Fatal(s, was, cancelled)
			}
			continue
		}
		for number, c := range under {
			if r, err := server.Cancel(number); r != c || err != nil {
				t.Fatal(r, err)
			}
			server.End(number)
			if r, err := server.Cancel(number); r != nil || err != nil { // after its answer
				t.Fatal(r, err)
			}
			caller.End(number)
			delete(under, number)
			if caller.UnderWay(number) != nil {
				t.Fatalf("call %d is under way", number)
			}
			break
		}
	}
	for r := range server.Requests() {
		if under[r.number] != r {
			t.Errorf("call %d was answered", r.number)
		}
		delete(under, r.number)
	}
	if len(under) > 0 {
		t.Errorf("%d calls were forgotten", len(under))
	}
}

func TestFull(t *testing.T) {
	var caller Caller[call]
	for range Max {
		if caller.Full() {
			t.Fatal("full")
		}
		caller.Begin(&call{})
	}
	if !caller.Full() || caller.UnderWay(First+Max) != nil {
		t.Error("more calls than slots")
	}
	caller.End(First + 7)
	if n := caller.Begin(&call{}); n != 2*First+7 {
		t.Errorf("call %d, expected the next generation of slot 7", n)
	}
}

func TestOutOfSequence(t *testing.T) {
	var server Server[string, call]
	for _, number := range []uint32{5 * First, 7*First + 3} {
		if err := server.Check(number); err == nil || !strings.Contains(err.Error(), "out of sequence") {
			t.Errorf("call %d: %v", number, err)
		}
		if _, err := server.Cancel(number); err == nil {
			t.Errorf("cancel of call %d: no error", number)
		}
	}
}

func FuzzLimits(f *testing.F) {
	f.Add(Limits{100, 200, 3}.Append("rows"))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, name, err := ParseLimits(b)
		if err == nil && string(l.Append(name)) != string(b) {
			t.Errorf("%+v of %q", l, name)
		}
	})
}
