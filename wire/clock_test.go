package wire

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestVirtualOrder: the twin of the clock is a list that is sorted by time and creation.
func TestVirtualOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	type due struct{ at, order int }
	for range 200 {
		c := NewVirtual()
		var want, got []due
		var timers []Timer
		for i := range 40 {
			d := due{r.IntN(10), i}
			timers = append(timers, c.AfterFunc(time.Duration(d.at), func() {
				if now := c.Now().Sub(VirtualStart); now != time.Duration(d.at) {
					t.Errorf("a timer for %d fires at %d", d.at, now)
				}
				got = append(got, d)
			}))
			want = append(want, d)
		}
		for range 10 {
			i := r.IntN(len(timers))
			k := slices.IndexFunc(want, func(d due) bool { return d.order == i })
			if was := timers[i].Stop(); was != (k >= 0) {
				t.Fatalf("stopping timer %d reports %v", i, was)
			} else if was {
				want = slices.Delete(want, k, k+1)
			}
		}
		slices.SortStableFunc(want, func(a, b due) int { return a.at - b.at })
		c.AdvanceTo(VirtualStart.Add(4))
		for at, ok := c.Next(); ok; at, ok = c.Next() {
			c.AdvanceTo(at)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("fired %v\nexpected %v", got, want)
		}
	}
}

// A timer that is set by one that fires is due in the same advance; the clock ends where it
// was told to, and never goes back.
func TestVirtualAdvance(t *testing.T) {
	c := NewVirtual()
	var fired []time.Duration
	note := func() { fired = append(fired, c.Now().Sub(VirtualStart)) }
	c.AfterFunc(2*time.Second, func() {
		note()
		c.AfterFunc(0, note)
		c.AfterFunc(time.Second, note)
		c.AfterFunc(time.Hour, note)
	})
	again := c.AfterFunc(time.Second, note)
	c.Advance(time.Second)
	if again.Reset(time.Second) {
		t.Error("a timer that has fired was still to come")
	}
	c.Advance(3 * time.Second)
	// The timer that was reset was set after that of the same time.
	if want := []time.Duration{1e9, 2e9, 2e9, 2e9, 3e9}; !slices.Equal(fired, want) {
		t.Errorf("fired at %v, expected %v", fired, want)
	}
	c.AdvanceTo(VirtualStart)
	if now := Since(c, VirtualStart); now != 4*time.Second {
		t.Errorf("the clock is at %v", now)
	}
	if next, ok := c.Next(); !ok || next != VirtualStart.Add(2*time.Second+time.Hour) {
		t.Error(next, ok)
	}
}

func TestContextOnClock(t *testing.T) {
	c := NewVirtual()
	ctx, cancel := WithTimeout(context.Background(), c, time.Minute)
	defer cancel()
	inner, stop := context.WithCancel(ctx)
	defer stop()
	longer, end := WithTimeout(inner, c, time.Hour)
	defer end()
	for _, each := range []context.Context{ctx, inner, longer} {
		if at, ok := each.Deadline(); !ok || at != VirtualStart.Add(time.Minute) {
			t.Error(at, ok)
		}
	}
	c.Advance(time.Minute - 1)
	if ctx.Err() != nil {
		t.Fatal(ctx.Err())
	}
	c.Advance(1)
	<-longer.Done()
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || context.Cause(longer) != context.DeadlineExceeded {
		t.Error(ctx.Err(), context.Cause(longer))
	}
	early, cancel := WithTimeout(context.Background(), c, time.Minute)
	if cancel(); !errors.Is(early.Err(), context.Canceled) {
		t.Error(early.Err())
	}
	if _, left := c.Next(); left {
		t.Error("a context that has ended keeps its timer")
	}
}

// A wait lasts the endpoint's timeout on its own clock, and says so.
func TestTimeoutOnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewVirtual()
		opt := DefaultOptions()
		opt.Clock = c
		eps := NewGroup(2, opt)
		defer closeAll(eps)
		if eps[1].Clock() != c {
			t.Error("the endpoint has another clock")
		}
		p := eps[1].Recv(0, key(0), Activation, make([]byte, 8))
		failed := make(chan error, 1)
		go func() { failed <- p.Wait(context.Background()) }()
		synctest.Wait() // until it waits
		c.Advance(opt.Timeout)
		err := <-failed
		if late, ok := errors.AsType[*Timeout](err); !ok || late.Waited != opt.Timeout {
			t.Error(err)
		}
		eps[0].Send(1, key(0), Activation, make([]byte, 8))
		if p.At() != VirtualStart.Add(opt.Timeout) {
			t.Errorf("it arrived at %v", p.At())
		}
	})
}
