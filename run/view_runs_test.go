package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"starling/event"
	"starling/graph"
	"starling/report/web"
)

// eventLog is a file of events that a run writes.
type eventLog struct {
	t    *testing.T
	path string
	f    *os.File
}

func newEventLog(t *testing.T, name string) *eventLog {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &eventLog{t, f.Name(), f}
}

func (l *eventLog) text(text string) {
	l.t.Helper()
	if _, err := l.f.WriteString(text); err != nil {
		l.t.Fatal(err)
	}
}

// line is an event as a line.
func (l *eventLog) line(e event.Event) string {
	l.t.Helper()
	b, err := event.Encode(e, time.Unix(1700000000, 0))
	if err != nil {
		l.t.Fatal(err)
	}
	return string(b) + "\n"
}

// begin writes how a run begins.
func (l *eventLog) begin(model string) {
	l.t.Helper()
	l.text(l.line(event.Opened{Schema: event.Schema, Program: "test"}) +
		l.line(event.Started{Dataset: "demo", Model: model, Workers: 1, Epochs: 900}))
}

// trained writes an epoch.
func (l *eventLog) trained(epoch int) {
	l.t.Helper()
	l.text(l.line(event.Epoch{Epoch: epoch, Loss: 1}))
}

// viewed is a page of runs while it is shown.
type viewed struct {
	t    *testing.T
	link string
	end  func() error
}

// view shows files until the test ends, or end is called.
func view(t *testing.T, files ...string) *viewed {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	links, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- ViewRuns(ctx, ViewOptions{Files: files, Listen: "127.0.0.1:0"}, func(link string) { links <- link })
	}()
	v := &viewed{t: t, end: func() error { cancel(); return <-ended }}
	select {
	case v.link = <-links:
	case err := <-ended:
		t.Fatal(err)
	}
	return v
}

// page is what a browser gets now.
func (v *viewed) page() string {
	v.t.Helper()
	a, err := http.Get(v.link)
	if err != nil {
		v.t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		v.t.Fatal(a.Status, err)
	}
	return string(b)
}

// until asks for the page until it has a text, and is that page.
func (v *viewed) until(want string) string {
	v.t.Helper()
	for range 600 {
		if page := v.page(); strings.Contains(page, want) {
			return page
		}
		time.Sleep(50 * time.Millisecond)
	}
	v.t.Fatalf("%q does not come", want)
	return ""
}

// TestViewFollowsFiles: a page of two runs side by side shows what is added to their files. A line that is not whole
// yet, and events of a later version, do no harm.
func TestViewFollowsFiles(t *testing.T) {
	a, b := newEventLog(t, "a.jsonl"), newEventLog(t, "b.jsonl")
	a.begin("gcn")
	b.begin("sage")
	v := view(t, a.path, b.path)
	page := v.page()
	for _, want := range []string{"<title>2 runs</title>", "<b>a.jsonl</b>", "<b>b.jsonl</b>", `id="time-1"`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	a.trained(0)
	v.until(">1 of 900<")
	half := a.line(event.Epoch{Epoch: 1, Loss: 1})
	a.text(half[:len(half)/2])
	b.text(`{"event":"from the future","time":"2030-01-01T00:00:00Z","x":[1,{}]}` + "\nno event\n\n")
	b.trained(6)
	if page := v.until(">7 of 900<"); !strings.Contains(page, ">1 of 900<") || strings.Contains(page, ">2 of 900<") {
		t.Error("half a line was taken in, or the run is not shown any more")
	}
	a.text(half[len(half)/2:])
	v.until(">2 of 900<")
	beyondBuffer := strings.Repeat("x", 200<<10)
	a.text(a.line(event.Note{Text: "a very long note: " + beyondBuffer, Mark: event.Lost}))
	a.text(a.line(event.Done{Reason: "finished", Epochs: 2}))
	v.until("finished")
	if err := v.end(); err != nil {
		t.Error(err)
	}
}

// TestViewStreams: a browser that follows is sent what is added.
func TestViewStreams(t *testing.T) {
	a := newEventLog(t, "a.jsonl")
	a.begin("gcn")
	v := view(t, a.path)
	answer, err := http.Get(v.link + "stream")
	if err != nil {
		t.Fatal(err)
	}
	a.trained(41)
	var got strings.Builder
	for b := make([]byte, 1<<16); !strings.Contains(got.String(), "42 of 900"); {
		n, err := answer.Body.Read(b)
		got.Write(b[:n])
		if err != nil {
			t.Fatal(err)
		}
	}
	answer.Body.Close()
	if err := v.end(); err != nil {
		t.Error(err)
	}
}

// TestViewNewerSchema: a file of a schema that this version does not know is refused, in the beginning and when it is
// written anew while the page is shown.
func TestViewNewerSchema(t *testing.T) {
	newer := event.Opened{Schema: event.Schema + 1, Program: "starling 99"}
	a, b := newEventLog(t, "a.jsonl"), newEventLog(t, "b.jsonl")
	a.begin("gcn")
	b.text(b.line(newer))
	err := ViewRuns(t.Context(), ViewOptions{Files: []string{a.path, b.path}, Listen: "127.0.0.1:0"}, func(string) {
		t.Error("it is shown")
	})
	refused := func(err error, path string) {
		t.Helper()
		want := fmt.Sprintf("%s of schema %d, want schema %d; use the version that wrote it: starling 99", path,
			event.Schema+1, event.Schema)
		if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	refused(err, b.path)
	ended := make(chan error, 1)
	shown := make(chan bool)
	go func() {
		ended <- ViewRuns(t.Context(), ViewOptions{Files: []string{a.path}, Listen: "127.0.0.1:0"}, func(string) {
			close(shown)
		})
	}()
	<-shown
	a.text(a.line(newer))
	refused(<-ended, a.path)
}

// TestPageBeyondLoopback: where others reach the page its link has a token, new each time, and without it nothing is
// shown. On loopback there is none.
func TestPageBeyondLoopback(t *testing.T) {
	known := map[string]bool{}
	for _, addr := range []string{"0.0.0.0:0", "0.0.0.0:0", "[::]:0"} {
		s, err := servePage("--web", addr, web.NewRun(""))
		if err != nil {
			if strings.HasPrefix(addr, "[") {
				t.Logf("no IPv6 here: %v", err)
				continue
			}
			t.Fatal(err)
		}
		defer s.Close()
		_, token, ok := strings.Cut(s.Link, "/?token=")
		if !ok || len(token) < 16 || known[token] {
			t.Fatalf("the link is %s", s.Link)
		}
		known[token] = true
		if strings.Contains(s.Link, "0.0.0.0") || strings.Contains(s.Link, "[::]") {
			t.Errorf("no host reaches %s", s.Link)
		}
		_, port, _ := net.SplitHostPort(s.Addr)
		for path, want := range map[string]int{"/": 403, "/stream": 403, "/save": 403, "/?token=" + token[1:]: 403,
			"/?token=" + token: 200} {
			if got := statusOf(t, "http://127.0.0.1:"+port+path); got != want {
				t.Errorf("%s %s: %d, want %d", addr, path, got, want)
			}
		}
	}
	s, err := servePage("--web", "127.0.0.1:0", web.NewRun(""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if strings.Contains(s.Link, "token") || statusOf(t, s.Link) != 200 {
		t.Errorf("on loopback: %s", s.Link)
	}
}

func statusOf(t *testing.T, url string) int {
	t.Helper()
	a, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	return a.StatusCode
}
