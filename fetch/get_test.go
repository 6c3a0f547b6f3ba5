package fetch

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/event"
	"starling/graph"
)

// fileServer serves one file as a script says and notes what was asked for.
type fileServer struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string // Range of every request
	answer func(n int, w http.ResponseWriter, r *http.Request)
}

func fileServed(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *fileServer {
	s := &fileServer{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		n := len(s.asked)
		s.asked = append(s.asked, r.Header.Get("Range"))
		s.mu.Unlock()
		s.answer(n, w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// sendWhole serves b with ranges, as any file server does.
func sendWhole(w http.ResponseWriter, r *http.Request, b []byte, tag string) {
	w.Header().Set("ETag", tag)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// cutOff sends the first k bytes and breaks the connection.
func cutOff(w http.ResponseWriter, b []byte, k int, tag string) {
	w.Header().Set("ETag", tag)
	w.Header().Set("Content-Length", fmt.Sprint(len(b)))
	w.Write(b[:k])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func someBytes(n int) []byte {
	r, b := rand.New(rand.NewPCG(1, uint64(n))), make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

var patience = downloadOptions{idle: 20 * time.Second, pause: time.Millisecond, tries: 3}

func fetchFile(t *testing.T, url string, opt downloadOptions, sum string) (*download, string, error) {
	t.Helper()
	d := &download{url: url, path: filepath.Join(t.TempDir(), "f"), sha256: sum, opt: opt, events: event.All()}
	recorded, err := d.run(context.Background())
	return d, recorded, err
}

func mustHold(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes (%v), want the %d served", len(got), err, len(want))
	}
	if left, _ := filepath.Glob(path + ".part*"); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func sumOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func TestDownloadGoesOnAfterCuts(t *testing.T) {
	b := someBytes(300_000)
	s := fileServed(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 0 {
			cutOff(w, b, 100_000, `"a"`)
		}
		sendWhole(w, r, b, `"a"`)
	})
	d, recorded, err := fetchFile(t, s.URL, patience, sumOf(b))
	if err != nil || recorded != "" {
		t.Fatal(recorded, err)
	}
	mustHold(t, d.path, b)
	if len(s.asked) != 2 || !strings.HasPrefix(s.asked[1], "bytes=") || s.asked[1] == "bytes=0-" {
		t.Errorf("asked for %q", s.asked)
	}
}

func TestDownloadStartsAgainWhenTheFileChanged(t *testing.T) {
	old, b := someBytes(300_000), someBytes(200_000)
	s := fileServed(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 0 {
			cutOff(w, old, 100_000, `"old"`)
		}
		sendWhole(w, r, b, `"new"`)
	})
	d, recorded, err := fetchFile(t, s.URL, patience, "")
	if err != nil || recorded != sumOf(b) {
		t.Fatal(recorded, err)
	}
	mustHold(t, d.path, b)
	// With its sum noted the file as it is stays, another one is refused and removed.
	if err := keepSums(map[string]string{d.path: recorded}); err != nil {
		t.Fatal(err)
	}
	if again, err := d.run(context.Background()); again != "" || err != nil {
		t.Error(again, err)
	}
	os.WriteFile(d.path, old, 0o644)
	if _, err := d.run(context.Background()); !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "SHA-256") {
		t.Error(err)
	}
	if _, err := os.Stat(d.path); err == nil {
		t.Error("the damaged file is still there")
	}
}

// A server that gives nothing to ask by, and sends a part of whatever it has now.
func TestDownloadNeverMixesTwoFiles(t *testing.T) {
	old, b := someBytes(300_000), someBytes(200_000)
	for _, tags := range [][2]string{{"", ""}, {`"old"`, `"new"`}} {
		was := old
		if tags[0] != "" {
			was = someBytes(200_001)[:200_000] // the length does not tell
		}
		s := fileServed(t, func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 0 {
				cutOff(w, was, 100_000, tags[0])
			}
			r.Header.Del("If-Range")
			w.Header()["Etag"] = []string{tags[1]}
			http.ServeContent(w, r, "f.bin", time.Time{}, bytes.NewReader(b))
		})
		d, recorded, err := fetchFile(t, s.URL, patience, "")
		if err != nil || recorded != sumOf(b) {
			t.Fatal(recorded, err)
		}
		mustHold(t, d.path, b)
	}
}

// A server without ranges that breaks off here and there is given up.
func TestDownloadThatNeverGetsFurther(t *testing.T) {
	b := someBytes(200_000)
	s := fileServed(t, func(n int, w http.ResponseWriter, r *http.Request) { cutOff(w, b, 100_000-1000*(n%2), "") })
	if _, _, err := fetchFile(t, s.URL, patience, ""); err == nil || len(s.asked) > 2*patience.tries {
		t.Errorf("%d requests, %v", len(s.asked), err)
	}
}

func TestDownloadWithoutRanges(t *testing.T) {
	b := someBytes(200_000)
	s := fileServed(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 0 {
			cutOff(w, b, 50_000, "")
		}
		w.Header().Set("Content-Type", "application/zip")
		w.Write(b)
	})
	d, _, err := fetchFile(t, s.URL, patience, sumOf(b))
	if err != nil {
		t.Fatal(err)
	}
	mustHold(t, d.path, b)
}

func TestDownloadThatWasAllThere(t *testing.T) {
	b := someBytes(1000)
	s := fileServed(t, func(_ int, w http.ResponseWriter, r *http.Request) { sendWhole(w, r, b, `"a"`) })
	d := &download{url: s.URL, path: filepath.Join(t.TempDir(), "f"), sha256: sumOf(b), opt: patience, events: event.All()}
	os.WriteFile(d.part(), b, 0o644)
	os.WriteFile(d.part()+".json", fmt.Appendf(nil, `{"url": %q, "etag": "\"a\""}`, s.URL), 0o644)
	if _, err := d.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustHold(t, d.path, b)
}

func TestDownloadRefuses(t *testing.T) {
	b := someBytes(1000)
	for mention, c := range map[string]struct {
		answer   func(n int, w http.ResponseWriter, r *http.Request)
		requests int
	}{
		"SHA-256": {func(_ int, w http.ResponseWriter, r *http.Request) { sendWhole(w, r, b, `"a"`) }, 1},
		"404":     {func(_ int, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, 1},
		"redirections": {func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}, 10},
		"packed with gzip": {func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(b)
		}, 1},
		"a web page": {func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Write([]byte("<html>please sign in"))
		}, 1},
	} {
		s := fileServed(t, c.answer)
		d, _, err := fetchFile(t, s.URL+"/f", patience, sumOf([]byte("another")))
		if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), mention) {
			t.Errorf("%s: %v", mention, err)
		}
		if len(s.asked) != c.requests {
			t.Errorf("%s: %d requests, want %d", mention, len(s.asked), c.requests)
		}
		if left, _ := filepath.Glob(d.path + "*"); left != nil {
			t.Errorf("%s: left behind %v", mention, left)
		}
	}
	if _, _, err := fetchFile(t, "ftp://x/y", patience, ""); !errors.Is(err, graph.ErrInput) {
		t.Error(err)
	}
}

func TestDownloadFollowsAFewRedirections(t *testing.T) {
	b := someBytes(1000)
	s := fileServed(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n < 3 {
			http.Redirect(w, r, "/next", http.StatusFound)
			return
		}
		sendWhole(w, r, b, `"a"`)
	})
	d, _, err := fetchFile(t, s.URL, patience, sumOf(b))
	if err != nil {
		t.Fatal(err)
	}
	mustHold(t, d.path, b)
}

// A server that stops sending, and knows no ranges, is left after the deadline and a few
// attempts, though some of them bring more than the one before.
func TestDownloadFromASilentServer(t *testing.T) {
	b := someBytes(200_000)
	s := fileServed(t, func(n int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		if r.Header.Get("Range") == "" {
			w.Write(b[:50_000])
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	opt := patience
	opt.idle = 200 * time.Millisecond
	d, _, err := fetchFile(t, s.URL, opt, "")
	if err == nil || !strings.Contains(err.Error(), "nothing came for") || !strings.Contains(err.Error(), "goes on from there") {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.path); err == nil {
		t.Error("a part passes for the whole")
	}
}

func TestDownloadTriesAgainAfterServerErrors(t *testing.T) {
	b := someBytes(1000)
	s := fileServed(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n < 2 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		sendWhole(w, r, b, `"a"`)
	})
	if _, _, err := fetchFile(t, s.URL, patience, sumOf(b)); err != nil {
		t.Fatal(err)
	}
	s = fileServed(t, func(_ int, w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusBadGateway) })
	if _, _, err := fetchFile(t, s.URL, patience, ""); err == nil || len(s.asked) != patience.tries {
		t.Errorf("%d requests, %v", len(s.asked), err)
	}
}

func TestDownloadStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := fileServed(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	d := &download{url: s.URL, path: filepath.Join(t.TempDir(), "f"), opt: patience, events: event.All()}
	if _, err := d.run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// arxivZip is a tiny dataset packed as OGB packs its own.
func arxivZip(t testing.TB, change func(map[string]string)) []byte {
	files := map[string]string{"arxiv/raw/edge.csv.gz": "0,1\n1,2\n2,3\n", "arxiv/raw/num-node-list.csv.gz": "4\n", "arxiv/raw/node-feat.csv.gz": "1,2\n3,4\n5,6\n7,8\n",
		"arxiv/raw/node-label.csv.gz": "0\n1\n0\n1\n", "arxiv/split/time/train.csv.gz": "0\n1\n", "arxiv/split/time/valid.csv.gz": "2\n", "arxiv/split/time/test.csv.gz": "3\n"}
	if change != nil {
		change(files)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		g := gzip.NewWriter(w)
		g.Write([]byte(text))
		g.Close()
	}
	z.Close()
	return b.Bytes()
}

func TestGetFromAMirror(t *testing.T) {
	b := arxivZip(t, nil)
	s := fileServed(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/graphs/ogbn-arxiv/arxiv.zip" {
			http.NotFound(w, r)
			return
		}
		if n == 0 {
			cutOff(w, b, len(b)/2, `"a"`)
		}
		sendWhole(w, r, b, `"a"`)
	})
	dir := t.TempDir()
	var notes []string
	listen := event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok {
			notes = append(notes, n.Text)
		}
	})
	opt := Options{Out: filepath.Join(dir, "arxiv"), Cache: filepath.Join(dir, "cache"), Mirror: s.URL + "/graphs/", Symmetrize: true, download: patience}
	sum, err := Get(context.Background(), "ogbn-arxiv", opt, listen)
	if err != nil || sum.Nodes != 4 || sum.Edges != 6 || sum.Name != "ogbn-arxiv" || sum.Features != 2 || sum.Train != 2 {
		t.Fatalf("%+v %v", sum, err)
	}
	if left, _ := os.ReadDir(opt.Cache); len(left) != 0 {
		t.Errorf("the cache still has %v", left)
	}
	if !strings.Contains(strings.Join(notes, "\n"), sumOf(b)) {
		t.Errorf("the sum was not told: %q", notes)
	}
	asked := len(s.asked)
	if _, err := Get(context.Background(), "ogbn-arxiv", opt, listen); !errors.Is(err, graph.ErrInput) || len(s.asked) != asked {
		t.Errorf("an existing folder is found too late: %v", err)
	}
	if _, err := Get(context.Background(), "ogbn-arxif", opt, listen); !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "ogbn-arxiv?") {
		t.Error(err)
	}
}

func TestGetRefusesBadArchives(t *testing.T) {
	for mention, b := range map[string][]byte{
		"inside one folder": arxivZip(t, func(m map[string]string) { m["../../out.csv"] = "x" }),
		"a zip":             []byte("no zip at all"),
		"raw":               arxivZip(t, func(m map[string]string) { clear(m); m["arxiv/x"] = "" }),
	} {
		s := fileServed(t, func(_ int, w http.ResponseWriter, r *http.Request) { sendWhole(w, r, b, `"a"`) })
		dir := t.TempDir()
		_, err := Get(context.Background(), "ogbn-arxiv", Options{Out: filepath.Join(dir, "arxiv"), Cache: filepath.Join(dir, "cache"), Mirror: s.URL, download: patience}, event.All())
		if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), mention) {
			t.Errorf("%s: %v", mention, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "arxiv")); err == nil {
			t.Errorf("%s: a folder was written", mention)
		}
		if found, _ := filepath.Glob(filepath.Join(dir, "*.csv")); found != nil {
			t.Errorf("%s: unpacked outside: %v", mention, found)
		}
	}
}

// Whatever a server sends as an archive, nothing lands outside the folder.
func FuzzUnzip(f *testing.F) {
	f.Add(arxivZip(f, func(m map[string]string) {}))
	f.Add(arxivZip(f, func(m map[string]string) { m["../../out.csv"] = "x" }))
	f.Add(arxivZip(f, func(m map[string]string) { clear(m); m["a"], m["a/b"] = "1", "2" }))
	f.Add([]byte("PK\x05\x06"))
	parent := f.TempDir()
	path := filepath.Join(parent, "x.zip")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := unzip(context.Background(), path, filepath.Join(parent, "to"), event.All()); err != nil && !errors.Is(err, graph.ErrInput) {
			t.Fatal(err)
		}
		if entries, _ := os.ReadDir(parent); len(entries) > 2 {
			t.Fatal("unpacked outside:", entries)
		}
	})
}

// What was wrong once, and has no known checksum, must not stand in the way of the right file.
func TestGetAfterABadDownload(t *testing.T) {
	good := arxivZip(t, nil)
	bad := bytes.Clone(good)
	bad[65] ^= 1 // inside the first file: behind 30 bytes and its name
	served := bad
	s := fileServed(t, func(_ int, w http.ResponseWriter, r *http.Request) { sendWhole(w, r, served, `"a"`) })
	dir := t.TempDir()
	opt := Options{Out: filepath.Join(dir, "arxiv"), Cache: filepath.Join(dir, "cache"), Mirror: s.URL, Keep: true, download: patience}
	if _, err := Get(context.Background(), "ogbn-arxiv", opt, event.All()); !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "remove") {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(opt.Cache, "ogbn-arxiv", "*"))
	if len(left) != 1 || filepath.Base(left[0]) != "arxiv.zip" {
		t.Errorf("left in the cache: %v", left)
	}
	os.Remove(left[0])
	served = good
	if _, err := Get(context.Background(), "ogbn-arxiv", opt, event.All()); err != nil {
		t.Fatal(err)
	}
	sum, _ := os.ReadFile(left[0] + ".sha256")
	if strings.TrimSpace(string(sum)) != sumOf(good) {
		t.Errorf("the sum that is kept is %q", sum)
	}
}

func TestPublicSets(t *testing.T) {
	for name, set := range publicSets {
		if set.about == "" || (len(set.files) == 0) != (set.make != nil) {
			t.Errorf("%s: %+v", name, set)
		}
		for _, f := range set.files {
			if !strings.HasPrefix(f.url, "https://") || f.name == "" || f.sha256 != "" && len(f.sha256) != 64 {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}
