package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/event"
	"starling/graph"
)

// bounded downloads one file that may have 1,000 bytes.
func bounded(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) (*fileServer, error) {
	t.Helper()
	s := fileServed(t, answer)
	d := &download{url: s.URL, path: filepath.Join(t.TempDir(), "f"), most: 1000, opt: patience, events: event.All()}
	_, err := d.run(context.Background())
	if left, _ := os.ReadDir(filepath.Dir(d.path)); err != nil && len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return s, err
}

func TestDownloadIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		answer  func(n int, w http.ResponseWriter, r *http.Request)
		mention string
	}{
		"no size at all": {func(_ int, w http.ResponseWriter, r *http.Request) {
			for range 1000 {
				if _, err := w.Write(make([]byte, 100)); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			}
		}, "more than 1000 B without an announced size"},
		"a large announced size": {func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1001")
			w.WriteHeader(http.StatusOK)
		}, "an announced size of 1001 B"},
		"an absurd one": {func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(int64(1)<<62))
			w.WriteHeader(http.StatusOK)
		}, "an announced size of"},
		"a redirection to a file": {func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, "a redirection from http to file"},
		"a redirection to ftp": {func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "ftp://example.org/f", http.StatusMovedPermanently)
		}, "a redirection from http to ftp"},
	} {
		s, err := bounded(t, c.answer)
		if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), c.mention) {
			t.Errorf("%s: %v", name, err)
		}
		if len(s.asked) != 1 {
			t.Errorf("%s: asked %d times, want once", name, len(s.asked))
		}
	}
	if _, err := bounded(t, func(_ int, w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 1000)) }); err != nil {
		t.Errorf("a file that fits: %v", err)
	}
}

// Without a network the first attempt tells what to do by hand; files that were put there are used.
func TestGetOffline(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + l.Addr().String()
	l.Close()
	dir := t.TempDir()
	opt := Options{Out: filepath.Join(dir, "arxiv"), Cache: filepath.Join(dir, "cache"), Mirror: gone, download: patience}
	var notes []string
	listen := event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok {
			notes = append(notes, n.Text)
		}
	})
	_, err = Get(context.Background(), "ogbn-arxiv", opt, listen)
	here := filepath.Join(opt.Cache, "ogbn-arxiv")
	if err == nil || !strings.Contains(err.Error(), "put them into "+here) {
		t.Fatal(err)
	}
	want := fmt.Sprintf("missing: %s, from %s/ogbn-arxiv/arxiv.zip", filepath.Join(here, "arxiv.zip"), gone)
	if !slices.Equal(notes, []string{want}) {
		t.Errorf("%q, want %q", notes, want)
	}
	if err := os.WriteFile(filepath.Join(here, "arxiv.zip"), arxivZip(t, nil), 0o644); err != nil {
		t.Fatal(err)
	}
	if sum, err := Get(context.Background(), "ogbn-arxiv", opt, listen); err != nil || sum.Nodes != 4 {
		t.Errorf("%+v %v", sum, err)
	}
}

func TestGetDemo(t *testing.T) {
	dir := t.TempDir()
	var sums []string
	for i := range 2 {
		out := filepath.Join(dir, fmt.Sprint(i))
		sum, err := Get(context.Background(), "demo", Options{Out: out}, event.All())
		if err != nil || sum.Nodes != 1500 || sum.Classes != 6 {
			t.Fatalf("%+v %v", sum, err)
		}
		d, err := graph.OpenWith(out, graph.OpenOptions{Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		if graph.ClassName(d.Labels.Names, 0) != "astronomy" ||
			len(d.Meta.Features.Columns) != d.Features.Cols || !d.HasIDs() {
			t.Errorf("%+v", d.Meta)
		}
		sums = append(sums, d.Meta.CRC32C)
		d.Close()
	}
	if sums[0] != sums[1] || sums[0] != demoSum {
		t.Errorf("checksums %v, want %s: the demonstration dataset changed", sums, demoSum)
	}
	if _, err := Get(context.Background(), "demo", Options{Out: filepath.Join(dir, "2"), Keep: true}, event.All()); !errors.Is(err, graph.ErrInput) {
		t.Error(err)
	}
}

const demoSum = "c8592c7e"
