package web

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"starling/event"
)

// longRun has a run of many workers and epochs happen, without a pause; loss is the loss of an epoch.
func longRun(r *Run, workers, epochs int, name string) {
	at := time.Now()
	r.Take(event.Opened{Schema: event.Schema, Program: name, Command: name, Settings: "dataset: " + name + "\n"}, at)
	r.Take(event.Planned{Memory: 100, Workers: make([]int64, workers), EpochSeconds: math.NaN(), Why: name}, at)
	r.Take(event.Started{Dataset: name, Model: "gcn", Strategy: "halo", Workers: workers, Epochs: epochs,
		Metric: name}, at)
	for e := range epochs {
		at = at.Add(250 * time.Millisecond)
		r.Take(event.Epoch{Epoch: e, Loss: loss(e), Seconds: 0.25, Measured: e%10 == 0, Train: 0.5, Val: 0.5,
			Test: math.NaN(),
			Best: e == 0}, at)
		if e%16 != 15 {
			continue
		}
		for w := range workers {
			r.Take(reportOf(w, workers, int64(e), name), at)
		}
	}
}

func loss(e int) float64 { return 2 / math.Sqrt(float64(e+1)) }

// reportOf is what a worker reports.
func reportOf(w, workers int, sent int64, name string) event.Worker {
	x := event.Worker{Worker: w, Host: name, PID: 100 + w, Epoch: int(sent), Memory: 1 << 30,
		Traffic: []event.Traffic{{Kind: name, Link: name, Layer: 1, Planned: sent, Counted: sent}},
		To:      make([]int64, workers), WaitedFor: make([]float64, workers)}
	for q := range workers {
		x.To[q], x.WaitedFor[q] = sent*int64(q), float64(q)
	}
	for i := range 10 {
		x.Slices = append(x.Slices, event.Slice{Ago: 1 - float64(i)/10, Seconds: 0.1, Wait: 0.02, For: (w +
			1) % workers,
			Transfer: 0.05})
	}
	return x
}

// TestLongRunStaysSmall: 10,000 epochs on 64 workers take little memory and a page of a size that scrolls.
func TestLongRunStaysSmall(t *testing.T) {
	before := heap()
	r := NewRun("")
	longRun(r, 64, 10000, "g")
	for i := range 10000 { // a worker that floods events
		r.On(event.Note{Text: strings.Repeat("a note ", 200), Mark: []string{"", event.Stalled}[i%2]})
	}
	if took := heap() - before; took > 8<<20 {
		t.Errorf("%d bytes", took)
	}
	panels := drawn([]*state{r.snapshot()})
	size := 0
	for _, p := range panels {
		size += len(p.HTML)
		t.Logf("%s: %d bytes", p.ID, len(p.HTML))
	}
	if size > 1<<20 {
		t.Errorf("panels of %d bytes", size)
	}
	page := Page(r)
	if len(page) > 3<<20 {
		t.Errorf("a page of %d bytes", len(page))
	}
	var got []numbers
	if err := json.Unmarshal([]byte(numbersOf(t, string(page))), &got); err != nil {
		t.Fatal(err)
	}
	if n := got[0]; len(n.Loss) != 10000 || n.Every != 1 || float64(n.Loss[9999]) != loss(9999) {
		t.Errorf("%d losses", len(n.Loss))
	}
	runtime.KeepAlive(r)
}

// TestServedInLittleMemory: a server of such a run, with three browsers that follow it, takes less than 50 MiB.
func TestServedInLittleMemory(t *testing.T) {
	before := heap()
	r := NewRun("")
	longRun(r, 64, 10000, "g")
	s := server(t, "", r)
	drawn := make(chan int, 3)
	for range 3 {
		a, err := http.Get(s.Link + "stream")
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		go func() {
			lines, n := bufio.NewReader(a.Body), 0
			for n < 12 { // panels
				line, err := lines.ReadString('\n')
				if err != nil {
					break
				}
				if strings.HasPrefix(line, "event: panel") {
					n++
				}
			}
			drawn <- n
		}()
	}
	most := int64(0)
	for i, browsers := 0, 0; browsers < 3; i++ {
		for w := range 64 {
			r.On(reportOf(w, 64, int64(10000+i), "g"))
		}
		s.refresh(0)
		for len(drawn) > 0 {
			if n := <-drawn; n < 12 {
				t.Fatalf("a browser got %d panels", n)
			}
			browsers++
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, int64(m.HeapAlloc)-before) // with what is not collected yet
	}
	if t.Logf("%d MiB", most>>20); most > 50<<20 {
		t.Errorf("%d bytes", most)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// numbersOf are the numbers of a page that is saved.
func numbersOf(t *testing.T, page string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, `<script type="application/json" id="numbers">`)
	text, _, _ := strings.Cut(rest, "</script>")
	if !ok {
		t.Fatal("no numbers")
	}
	return text
}

// TestVeryLongRun: of more epochs than are kept every second stays, then every fourth.
func TestVeryLongRun(t *testing.T) {
	var c curve
	for e := range 5 * mostEpochs {
		c.add(event.Epoch{Epoch: e, Loss: float64(e)}, float64(e))
	}
	if c.Every != 8 || len(c.Epochs) > mostEpochs || c.Epochs[1] != 8 || c.Loss[1] != 8 || len(c.At) != len(c.Epochs) {
		t.Errorf("every %d: %d epochs", c.Every, len(c.Epochs))
	}
	c.add(event.Epoch{Epoch: 16}, 1) // it goes on from there
	if len(c.Epochs) != 3 || len(c.Val) != 3 {
		t.Errorf("%v", c.Epochs)
	}
}

// TestHostileNames: names from data, hosts and notes are text, on a page with thousands of them.
func TestHostileNames(t *testing.T) {
	const evil = `</script><script>alert(1)</script><img src=http://other/x onerror=alert(1)>`
	r := NewRun(evil)
	longRun(r, 3, 20, evil)
	for i := range 1000 {
		r.On(event.Note{Text: evil, Mark: []string{event.Lost, evil}[i%2]})
	}
	r.On(event.Saved{Path: evil})
	r.On(event.Done{Reason: evil})
	r.On(event.Result{Report: json.RawMessage(`{"model":"<script>",` +
		`"evaluation":{"classes":[{"name":"</script><script>x"}]}}`)})
	for _, page := range []string{string(Page(r)), string(Page(r, NewRun("b")))} {
		if n := strings.Count(page, "<script"); n != 2 { // charts, and the numbers
			t.Errorf("%d scripts", n)
		}
		if strings.Contains(page, "<img") || strings.Contains(page, "ZgotmplZ") {
			t.Error(page)
		}
	}
}

// TestLostWorkerIsMarked: a loss is on the curves and in the list, and the epochs that are trained again count once.
// Bytes of the worker's processes add up.
func TestLostWorkerIsMarked(t *testing.T) {
	r := NewRun("")
	longRun(r, 2, 40, "g")
	r.On(event.Note{Text: "lost rank 1", Mark: event.Lost})
	if h := r.snapshot().head(); h.State != "a worker is lost" {
		t.Error(h.State)
	}
	r.On(event.Started{Model: "gcn", Workers: 2, FirstEpoch: 30, Epochs: 50})
	r.On(event.Note{Text: "training goes on", Mark: event.Back})
	again := reportOf(1, 2, 7, "g")
	again.PID = 9
	r.On(again)
	for e := 30; e < 50; e++ {
		r.On(event.Epoch{Epoch: e, Loss: 1})
	}
	s := r.snapshot()
	if n := len(s.curve.Loss); n != 50 || s.curve.Loss[29] != loss(29) || s.curve.Loss[30] != 1 {
		t.Errorf("%d epochs", n)
	}
	if got := s.ranks[1].totals().to[1]; got != 31+7 {
		t.Errorf("%d bytes", got)
	}
	page := string(Page(r))
	for _, want := range []string{`class="mark lost"`, `class="mark back"`, "lost rank 1"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
}

// server is a server of a run on loopback.
func server(t *testing.T, token string, r *Run) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0", token, r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func get(t *testing.T, url, host string) (int, string) {
	t.Helper()
	q, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Host = host
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(b)
}

// TestWhoMaySee: with a token only its link works; without one only this host's own names do, so that no other site's
// page can read this one.
func TestWhoMaySee(t *testing.T) {
	s := server(t, "secret", NewRun(""))
	for url, want := range map[string]int{s.Link: 200, "http://" + s.Addr + "/": 403, "http://" + s.Addr +
		"/?token=secre": 403,
		"http://" + s.Addr + "/stream": 403, "http://" + s.Addr + "/save": 403, "http://" + s.Addr +
			"/x?token=secret": 404} {
		if got, _ := get(t, url, ""); got != want {
			t.Errorf("%s: %d, want %d", url, got, want)
		}
	}
	s = server(t, "", NewRun(""))
	for host, want := range map[string]int{"": 200, "localhost:1": 200, "evil.example": 403, "[::1]:80": 200,
		"10.0.0.1": 403} {
		if got, _ := get(t, s.Link, host); got != want {
			t.Errorf("%s: %d, want %d", host, got, want)
		}
	}
}

// TestStream: changes come as events, and the end of the run too; one that left comes back to what it missed.
func TestStream(t *testing.T) {
	r := NewRun("")
	s := server(t, "", r)
	_, page := get(t, s.Link, "")
	if !strings.Contains(page, "No epoch is done yet") || !strings.Contains(page, "data-version") {
		t.Error(page)
	}
	a, err := http.Get(s.Link + "stream?since=1")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	lines := bufio.NewReader(a.Body)
	longRun(r, 2, 30, "g")
	until := func(want string) {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("%v before %s", err, want)
			}
			if strings.Contains(line, want) {
				return
			}
		}
	}
	until(`30 of 30`)
	done := make(chan error, 1)
	go func() { done <- s.Close() }()
	until("event: over")
	if _, page := get(t, s.Link+"save", ""); !strings.Contains(page, `id="numbers"`) {
		t.Error(page)
	}
	began := time.Now()
	http.Post(s.Link+"bye", "", nil)
	if err := <-done; err != nil || time.Since(began) > lastTime/2 {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// TestSlowAndIdleBrowsers: several hundred connections that say nothing, browsers that stop reading, and workers that
// flood events neither hold up the run nor take much memory, and another browser still sees it. If an event waited for
// a browser, the test would not end.
func TestSlowAndIdleBrowsers(t *testing.T) {
	r := NewRun("")
	longRun(r, 16, 400, "g")
	s := server(t, "", r)
	s.patience = time.Hour
	const followers = 40
	for i := range 500 {
		c, err := net.Dial("tcp", s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if i < followers { // they follow and never read
			c.(*net.TCPConn).SetReadBuffer(4 << 10)
			fmt.Fprintf(c, "GET /stream HTTP/1.1\r\nHost: %s\r\n\r\n", s.Addr)
		}
	}
	before := heap()
	for n := range 5000 {
		x := reportOf(n%16, 16, int64(400+n), "g")
		if n%100 < 16 { // it began anew, and sends what no other has sent
			x.PID = n
			for i := range 20 {
				x.Traffic = append(x.Traffic, event.Traffic{Kind: fmt.Sprint(n, " ", i), Counted: 1})
			}
		}
		r.On(x)
		r.On(event.Saved{Path: strings.Repeat("a long path/", 1000)})
		if n%250 == 0 {
			s.refresh(0)
		}
	}
	if n := len(r.snapshot().ranks[3].totals().traffic); n != mostTraffic {
		t.Errorf("%d kinds of bytes are kept", n)
	}
	if code, page := get(t, s.Link, ""); code != 200 || !strings.Contains(page, "rank 15") {
		t.Error(code)
	}
	if took := heap() - before; took > 30<<20 {
		t.Errorf("%d bytes more", took)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.mu.streams); n != followers {
		t.Errorf("%d browsers follow", n)
	}
}
