package testdeadline

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type record struct {
	testing.TB
	message string
}

func (r *record) Helper()                        {}
func (r *record) Fatalf(format string, a ...any) { r.message = fmt.Sprintf(format, a...) }

func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{TB: t}
		Do(r, time.Second, "a sleep", func() { time.Sleep(time.Second / 2) })
		if r.message != "" {
			t.Error(r.message)
		}
		Do(r, time.Second, "a sleep", func() { time.Sleep(time.Minute) })
		if !strings.Contains(r.message, "a sleep: still not done after 1s") ||
			!strings.Contains(r.message, "goroutine") {
			t.Errorf("%q", r.message)
		}
		time.Sleep(time.Hour) // until the goroutine has ended
	})
}

func TestReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{TB: t}
		c := make(chan int, 1)
		c <- 7
		if v := Receive(r, c, "a number"); v != 7 || r.message != "" {
			t.Error(v, r.message)
		}
		time.AfterFunc(time.Hour, func() { close(c) })
		Receive(r, c, "a number")
		if !strings.Contains(r.message, "a number: still not done after 2m0s") {
			t.Errorf("%q", r.message)
		}
		var wg sync.WaitGroup
		r.message = ""
		wg.Go(func() { time.Sleep(time.Second) })
		Wait(r, &wg, "a group")
		if r.message != "" {
			t.Error(r.message)
		}
		time.Sleep(2 * time.Hour) // until the goroutines have ended
	})
}
