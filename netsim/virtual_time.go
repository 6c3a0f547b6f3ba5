package netsim

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"starling/wire"
)

// InVirtualTime calls f in a bubble of its own (package testing/synctest), in which time
// passes only when all goroutines that were started in it wait. Endpoints needs that. It
// returns when f has returned and all its goroutines have ended; f must end them, and must
// close devices that it opened. It may be called from several goroutines, not inside a bubble.
//
// The runtime can tell when the goroutines of a bubble wait, and of no other set. Bubbles are
// open to tests only, so the first call makes this process a test that never ends. Rejected
// alternatives: counting waits by hand, which every goroutine and channel of every strategy
// would have to take part in; and runtime/metrics, whose counts of goroutines are not of one
// moment. In a test, synctest.Test does the same.
func InVirtualTime(f func() error) (err error) {
	bubbles.start.Do(startBubbles)
	done := make(chan struct{})
	bubbles.wanted <- func(t *testing.T) {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("netsim: in virtual time: %v", p)
			}
		}()
		synctest.Test(t, func(*testing.T) { err = f() })
	}
	<-done
	return err
}

// inBubble tells whether the caller is in one: their time starts in 2000.
func inBubble() bool { return wire.Real.Now().Year() == 2000 }

// bubbles is the test that bubbles are made from. It has no state of a simulation.
var bubbles struct {
	start  sync.Once
	wanted chan func(*testing.T)
}

func startBubbles() {
	bubbles.wanted = make(chan func(*testing.T))
	if flag.Lookup("test.v") == nil {
		testing.Init()
	}
	if !flag.Parsed() {
		_ = flag.CommandLine.Parse(nil) // the flags of tests keep their defaults
	}
	all := func(pattern, name string) (bool, error) { return true, nil }
	go testing.Main(all, []testing.InternalTest{{Name: "virtual time", F: func(t *testing.T) {
		for f := range bubbles.wanted {
			go f(t)
		}
	}}}, nil, nil)
}
