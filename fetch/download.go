package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"starling/event"
	"starling/graph"
	"starling/spec"
)

// downloadOptions are deadlines and patience; zeros mean the usual.
type downloadOptions struct {
	idle   time.Duration // without a byte, an attempt is given up
	pause  time.Duration // before the second attempt; doubles after that
	tries  int           // attempts that bring nothing, in a row
	client *http.Client
}

func (o downloadOptions) complete() downloadOptions {
	if o.idle == 0 {
		o.idle = 30 * time.Second
	}
	if o.pause == 0 {
		o.pause = time.Second
	}
	if o.tries == 0 {
		o.tries = 5
	}
	if o.client == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
		o.client = &http.Client{Transport: t}
	}
	c := *o.client
	c.CheckRedirect = checkRedirect
	o.client = &c
	return o
}

const (
	maxRedirects = 10
	dialTimeout  = 10 * time.Second // a network that lets nothing through
)

var errRedirects = fmt.Errorf("more than %d redirections", maxRedirects)

// errScheme is a redirection to what is no web address, or is not encrypted any more.
var errScheme = errors.New("a redirection")

// checkRedirect bounds redirections and does not let one leave the web, or encryption.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return errRedirects
	}
	from, to := via[0].URL.Scheme, r.URL.Scheme
	if to != "http" && to != "https" || from == "https" && to != "https" {
		return fmt.Errorf("%w from %s to %.20s", errScheme, from, to)
	}
	return nil
}

// download is one file to fetch. What came so far is in path.part, and what it is a
// part of in path.part.json; path itself appears only whole and checked.
type download struct {
	url, path string
	size      int64
	most      int64 // bytes it may have where its size is not known; 0: mostDownload
	sha256    string
	opt       downloadOptions
	events    event.Listener
}

// partOf says what a partial file is of: a server that has another one now must
// send it from the start.
type partOf struct {
	URL      string `json:"url"`
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
	Total    int64  `json:"total,omitempty"`
}

// run fetches the file if it is not there. It returns its checksum if none was known.
func (d *download) run(ctx context.Context) (recorded string, err error) {
	d.opt = d.opt.complete()
	if u, err := url.Parse(d.url); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", spec.Mistake("--mirror", fmt.Sprintf("%q", d.url), "an address that starts with http:// or https://", "")
	}
	if _, err := os.Stat(d.path); err == nil {
		recorded, err = d.check(d.path)
		if errors.Is(err, graph.ErrInput) {
			os.Remove(d.path)
		}
		return recorded, err
	}
	pause, failures, most := d.opt.pause, 0, d.have()
	for {
		err := d.attempt(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		var final *graph.InputError
		var disk *diskError
		if errors.As(err, &final) || errors.As(err, &disk) {
			return "", err
		}
		if unreachable(err) && most == 0 && d.have() == 0 {
			return "", &offline{d.url, cause(err)}
		}
		// Only what was never there before counts: servers without ranges start again.
		if failures++; d.have() > most {
			failures, pause, most = 1, d.opt.pause, d.have()
		}
		if failures >= d.opt.tries {
			return "", fmt.Errorf("%s: given up after %d attempts, %s of it are kept and a next try goes on from there: %w (--mirror takes files from elsewhere)", d.url, failures, event.Bytes(d.have()), cause(err))
		}
		d.events.On(event.Note{Text: fmt.Sprintf("%s: %v; trying again in %s", d.url, cause(err), pause)})
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		pause = min(2*pause, time.Minute)
	}
	recorded, err = d.check(d.part())
	if err != nil {
		d.forget()
		return "", err
	}
	if err := os.Rename(d.part(), d.path); err != nil {
		return "", err
	}
	os.Remove(d.part() + ".json")
	return recorded, nil
}

func (d *download) part() string { return d.path + ".part" }

func (d *download) have() int64 {
	info, err := os.Stat(d.part())
	if err != nil {
		return 0
	}
	return info.Size()
}

func (d *download) forget() {
	os.Remove(d.part())
	os.Remove(d.part() + ".json")
}

// cause is an error without the address that net/http puts before it: our messages name it already.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// bad is a server that will not answer otherwise however often it is asked.
func (d *download) bad(found, want, fix string) error {
	return &graph.InputError{File: d.url, Found: found, Want: want, Fix: fix}
}

// attempt asks for what is missing and appends it.
func (d *download) attempt(ctx context.Context) error {
	have, of := d.have(), d.known()
	if have > 0 && of.URL != d.url {
		d.forget()
		have = 0
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(d.opt.idle, func() { cancel(fmt.Errorf("nothing came for %s", d.opt.idle)) })
	defer idle.Stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return d.bad(graph.Sentence(err.Error()), "an address", "check --mirror")
	}
	r.Header.Set("User-Agent", "starling")
	r.Header.Set("Accept-Encoding", "identity") // sizes and ranges are of the file itself
	if have > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if tag := of.ETag; tag != "" && !strings.HasPrefix(tag, "W/") {
			r.Header.Set("If-Range", tag)
		} else if of.Modified != "" {
			r.Header.Set("If-Range", of.Modified)
		}
	}
	answer, err := d.opt.client.Do(r)
	if err != nil {
		if errors.Is(err, errRedirects) || errors.Is(err, errScheme) {
			return d.bad(graph.Sentence(cause(err).Error()), "the file", "use another --mirror")
		}
		return because(ctx, err)
	}
	defer answer.Body.Close()
	from, total, err := d.place(answer, have, of)
	if err != nil {
		return err
	}
	if total > 0 && from == total {
		return nil // all of it was here already
	}
	return because(ctx, d.append(answer, from, total, func() { idle.Reset(d.opt.idle) }))
}

// because names the deadline instead of the cancelled request.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (d *download) known() (of partOf) {
	if b, err := os.ReadFile(d.part() + ".json"); err == nil {
		_ = json.Unmarshal(b, &of) // a damaged note counts as missing: the file starts again
	}
	return of
}

// place reads from an answer where its bytes belong and how many there are in all (0:
// not said).
func (d *download) place(a *http.Response, have int64, of partOf) (from, total int64, err error) {
	if packed := a.Header.Get("Content-Encoding"); a.StatusCode < 300 && packed != "" && packed != "identity" {
		return 0, 0, d.bad("an answer packed with "+packed, "the file as it is", "use another --mirror")
	}
	switch a.StatusCode {
	case http.StatusOK:
		if total = max(a.ContentLength, 0); strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
			return 0, 0, d.bad("a web page", "the file", "the place may ask for a visit by hand or be gone: use --mirror")
		}
	case http.StatusPartialContent:
		var first, last int64
		if _, err := fmt.Sscanf(a.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &total); err != nil || first != have || total < have {
			d.forget()
			return 0, 0, fmt.Errorf("a part %q where %d- was asked for", a.Header.Get("Content-Range"), have)
		}
		// Servers that know no If-Range, or gave nothing to ask by, still tell this much.
		if tag := a.Header.Get("ETag"); have > 0 && (of.Total > 0 && total != of.Total || of.ETag != "" && tag != "" && tag != of.ETag) {
			d.forget()
			return 0, 0, errors.New("the file on the server has changed")
		}
		from = have
	case http.StatusRequestedRangeNotSatisfiable:
		if size, ok := strings.CutPrefix(a.Header.Get("Content-Range"), "bytes */"); ok {
			if total, err = strconv.ParseInt(size, 10, 64); err == nil && total == have && have > 0 {
				return have, total, nil
			}
		}
		d.forget()
		return 0, 0, errors.New("the file on the server has changed")
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return 0, 0, errors.New(a.Status)
	default:
		if a.StatusCode >= 500 {
			return 0, 0, errors.New(a.Status)
		}
		return 0, 0, d.bad(a.Status, "the file", "the place has moved: use --mirror, or download it by hand and use starling import")
	}
	if d.size > 0 && total > 0 && total != d.size {
		return 0, 0, d.bad(fmt.Sprintf("%d bytes", total), fmt.Sprintf("the %d of the known file", d.size), "use another --mirror")
	}
	return from, total, d.checkTotal(from, total)
}

// mostDownload bounds a file whose size is not known: a server must not fill the disk.
const mostDownload = 16 << 30

// limit is how many bytes the file may have.
func (d *download) limit() int64 {
	switch {
	case d.size > 0:
		return d.size
	case d.most > 0:
		return d.most
	}
	return mostDownload
}

// checkTotal refuses an announced size at once: one beyond the limit, or beyond the disk.
func (d *download) checkTotal(from, total int64) error {
	if total > d.limit() {
		return d.bad(fmt.Sprintf("an announced size of %s", event.Bytes(total)),
			"at most "+event.Bytes(d.limit())+" for this file", "use another --mirror")
	}
	if free, known := graph.DiskFree(filepath.Dir(d.path)); known && total-from > free {
		return &graph.InputError{Field: "--cache", Found: fmt.Sprintf("%s, on a disk with %s free", filepath.Dir(d.path), event.Bytes(free)),
			Want: event.Bytes(total - from), Fix: "choose a folder on another disk"}
	}
	return nil
}

// append writes what comes behind what is there.
func (d *download) append(a *http.Response, from, total int64, alive func()) error {
	if from == 0 {
		d.forget()
		note, err := json.Marshal(partOf{URL: d.url, ETag: a.Header.Get("ETag"), Modified: a.Header.Get("Last-Modified"), Total: total})
		if err != nil {
			return err
		}
		if err := os.WriteFile(d.part()+".json", note, 0o644); err != nil {
			return &diskError{err}
		}
	}
	f, err := os.OpenFile(d.part(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return &diskError{err}
	}
	defer f.Close()
	buf := make([]byte, 256<<10)
	for at := from; ; {
		n, err := a.Body.Read(buf)
		if n > 0 {
			alive()
			if at += int64(n); total > 0 && at > total || d.size > 0 && at > d.size {
				d.forget()
				return d.bad("more bytes than announced", "the file", "use another --mirror")
			}
			if at > d.limit() {
				d.forget()
				return d.bad("more than "+event.Bytes(d.limit())+" without an announced size", "the file", "use another --mirror")
			}
			if _, err := f.Write(buf[:n]); err != nil {
				return &diskError{err}
			}
			d.events.On(event.Progress{Task: "download " + d.name(), Done: at, Total: total})
		}
		if err == io.EOF {
			if total > 0 && at < total {
				return io.ErrUnexpectedEOF
			}
			if d.have() != at {
				d.forget()
				return &diskError{fmt.Errorf("%s is being written by another process; run one download at a time", d.part())}
			}
			if err := f.Sync(); err != nil {
				return &diskError{err}
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// diskError is a disk that fails, which trying again does not mend.
type diskError struct{ err error }

func (e *diskError) Error() string { return e.err.Error() }
func (e *diskError) Unwrap() error { return e.err }

func (d *download) name() string {
	return filepath.Base(d.path)
}

// check compares a whole file with what is known of it: the table's checksum, or the
// one noted when it was first imported. Where no sum is known it returns the sum of the file.
func (d *download) check(path string) (recorded string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return "", err
	}
	sum, want := hex.EncodeToString(h.Sum(nil)), d.sha256
	if want == "" {
		b, _ := os.ReadFile(d.path + ".sha256")
		want = strings.TrimSpace(string(b))
	}
	switch {
	case d.size > 0 && n != d.size:
		return "", &graph.InputError{File: path, Field: "size", Found: fmt.Sprint(n), Want: fmt.Sprint(d.size), Fix: "the server sent another file: use another --mirror"}
	case want == "":
		return sum, nil
	case sum != want:
		return "", &graph.InputError{File: path, Field: "SHA-256", Found: sum, Want: want,
			Fix: "the file was damaged on its way or is another one: it was removed, try again or use another --mirror"}
	}
	return "", nil
}
