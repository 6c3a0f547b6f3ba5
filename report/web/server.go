package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"starling/report/chart"
)

const (
	// mostStreams follow a run; mostConns are connected, those that are idle too.
	mostStreams, mostConns = 64, 768
	// drawEvery is how often panels are drawn at most, and restFactor how much longer it rests than it draws.
	drawEvery  = 500 * time.Millisecond
	restFactor = 50
	// writeTime is how long a browser may take to read what it is sent.
	writeTime = 10 * time.Second
	// signEvery is how often a stream without changes is sent a sign of life.
	signEvery = 15 * time.Second
	// lastTime is how long browsers have to fetch the page of a run that is over.
	lastTime = 3 * time.Second
	// answerTime is how long requests that have come before the end may take.
	answerTime = time.Second
)

// Server shows runs to browsers.
type Server struct {
	// Addr is where it listens, and Link the page's, with the token.
	Addr, Link string

	runs     []*Run
	token    string        // "": none
	patience time.Duration // with a browser that does not read
	server   *http.Server
	served   chan struct{}
	drawn    chan struct{} // closed when nothing is drawn any more
	stop     context.CancelFunc

	drawing sync.Mutex // one draws
	mu      struct {
		sync.Mutex
		panels  []panel
		version uint64
		at      time.Time // they were drawn
		streams map[*stream]bool
		over    bool
	}
}

// stream is a browser that follows. It has no queue: signal says that there is something to send.
type stream struct {
	signal chan struct{}
	gone   chan struct{} // it has what it needs of a run that is over
	once   sync.Once
}

// Listen shows runs at an address. With a token only those who have the link see them.
func Listen(addr, token string, runs ...*Run) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: l.Addr().String(), runs: runs, token: token, patience: writeTime,
		served: make(chan struct{}), drawn: make(chan struct{})}
	s.Link = "http://" + s.Addr + "/"
	if token != "" {
		s.Link += "?token=" + url.QueryEscape(token)
	}
	s.mu.streams = map[*stream]bool{}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		IdleTimeout: 30 * time.Second, MaxHeaderBytes: 8 << 10}
	go func() {
		s.server.Serve(newLimited(l, mostConns)) // until Close
		close(s.served)
	}()
	go s.draw(ctx)
	return s, nil
}

// draw draws panels that have changed while anyone follows.
func (s *Server) draw(ctx context.Context) {
	defer close(s.drawn)
	changed := make(chan struct{}, 1)
	for _, r := range s.runs {
		defer r.notify(changed)()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		rest := drawEvery
		if s.followed() {
			began := time.Now()
			s.refresh(0)
			rest = max(rest, restFactor*time.Since(began))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
	}
}

func (s *Server) followed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.streams) > 0
}

// states are what is known of the runs now.
func (s *Server) states() (list []*state) {
	for _, r := range s.runs {
		list = append(list, r.snapshot())
	}
	return list
}

// refresh draws the panels, unless they were drawn a short while ago, and has streams send those that have changed.
func (s *Server) refresh(fresh time.Duration) {
	s.drawing.Lock()
	defer s.drawing.Unlock()
	s.mu.Lock()
	recent := s.mu.panels != nil && time.Since(s.mu.at) < fresh
	s.mu.Unlock()
	if recent {
		return
	}
	list := drawn(s.states())
	s.mu.Lock()
	before, version := s.mu.panels, s.mu.version+1
	s.mu.Unlock()
	for i := range list {
		if p := &list[i]; i < len(before) && before[i].HTML == p.HTML {
			*p = before[i]
		} else {
			p.version, p.event = version, p.encode()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.version = version
	s.mu.panels, s.mu.at = list, time.Now()
	s.signal()
}

// signal has all streams look for what is new.
// REQUIRES: mu held.
func (s *Server) signal() {
	for x := range s.mu.streams {
		select {
		case x.signal <- struct{}{}:
		default:
		}
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy())
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.patience))
	switch {
	case !s.authorised(r):
		http.Error(w, "the page needs the token of its link: open the link that the run has shown",
			http.StatusForbidden)
	case r.URL.Path == "/bye" && r.Method == http.MethodPost:
		s.left()
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "want GET", http.StatusMethodNotAllowed)
	case r.URL.Path == "/":
		s.page(w)
	case r.URL.Path == "/save":
		h.Set("Content-Disposition", `attachment; filename="run.html"`)
		h.Set("Content-Type", "text/html; charset=utf-8")
		w.Write(saved(s.states()))
	case r.URL.Path == "/stream":
		s.follow(w, r)
	case r.URL.Path == "/favicon.ico":
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "the page is at /", http.StatusNotFound)
	}
}

// policy lets the page run its two scripts and nothing else, whatever a name may hold, and ask this server only.
var policy = sync.OnceValue(func() string {
	text := "default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; base-uri " +
		"'none'; " +
		"form-action 'none'; frame-ancestors 'none'; script-src"
	for _, script := range []string{string(chart.Script()), liveScript} {
		hash := sha256.Sum256([]byte(script))
		text += " 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
	}
	return text
})

// authorised reports whether a request may see the runs: it has the token, or where none is needed, it is for this
// host by its own name: a page of another site may not have its name point here.
func (s *Server) authorised(r *http.Request) bool {
	if s.token == "" {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		ip := net.ParseIP(host)
		return host == "localhost" || ip != nil && ip.IsLoopback()
	}
	a, b := sha256.Sum256([]byte(r.URL.Query().Get("token"))), sha256.Sum256([]byte(s.token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

func (s *Server) page(w http.ResponseWriter) {
	s.refresh(drawEvery)
	p := &page{Live: true, Several: len(s.runs) > 1}
	var list []*state
	for _, r := range s.runs {
		list = append(list, r.named())
	}
	p.Title = title(list)
	s.mu.Lock()
	p.Panels, p.Version = slices.Clone(s.mu.panels), s.mu.version
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(p.execute())
}

// follow sends changed panels until the browser goes away or the runs are over.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) {
	x := s.enter()
	if x == nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d browsers follow already", mostStreams), http.StatusServiceUnavailable)
		return
	}
	defer s.leave(x)
	since, _ := strconv.ParseUint(r.URL.Query().Get("since"), 10, 64)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	out.SetReadDeadline(time.Time{}) // it sends nothing
	send := func(texts ...[]byte) bool {
		for _, text := range texts {
			out.SetWriteDeadline(time.Now().Add(s.patience))
			if _, err := w.Write(text); err != nil {
				return false
			}
		}
		return true
	}
	send([]byte("retry: 2000\n\n"))
	sign := time.NewTicker(signEvery)
	defer sign.Stop()
	for {
		texts, version, over := s.news(since)
		if !send(texts...) || out.Flush() != nil {
			return
		}
		since = version
		if over {
			if send([]byte("event: over\ndata: {}\n\n")) && out.Flush() == nil {
				wait(x.gone, lastTime, r.Context())
			}
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-x.signal:
		case <-sign.C:
			if !send([]byte(": still here\n\n")) {
				return
			}
		}
	}
}

func wait(c <-chan struct{}, most time.Duration, ctx context.Context) {
	select {
	case <-c:
	case <-ctx.Done():
	case <-time.After(most):
	}
}

// news are the panels that are newer than a version, as events, and the version that they bring a browser to.
func (s *Server) news(since uint64) (texts [][]byte, version uint64, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since > s.mu.version { // of a server that was here before
		since = 0
	}
	for _, p := range s.mu.panels {
		if p.version > since {
			texts = append(texts, p.event)
		}
	}
	if len(texts) > 0 {
		texts = append(texts, fmt.Appendf(nil, "event: version\ndata: %d\n\n", s.mu.version))
	}
	return texts, s.mu.version, s.mu.over
}

// encode is the event that shows the panel, made once for all browsers.
func (p *panel) encode() []byte {
	data, err := json.Marshal(struct {
		ID   string `json:"id"`
		HTML string `json:"html"`
	}{p.ID, string(p.HTML)})
	if err != nil {
		panic(err) // two strings
	}
	return slices.Concat([]byte("event: panel\ndata: "), data, []byte("\n\n"))
}

func (s *Server) enter() *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.streams) == mostStreams {
		return nil
	}
	x := &stream{signal: make(chan struct{}, 1), gone: make(chan struct{})}
	s.mu.streams[x] = true
	return x
}

func (s *Server) leave(x *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.streams, x)
}

// left says that a browser has kept the page. Which one does not matter: the last has all streams end.
func (s *Server) left() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.mu.streams {
		select {
		case <-x.gone:
			continue
		default:
		}
		x.once.Do(func() { close(x.gone) })
		return
	}
}

// Close shows the end of the runs to those who follow, gives them a moment to keep the page, and stops serving.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	s.stop()
	<-s.drawn
	if s.followed() {
		s.refresh(0)
	}
	s.mu.Lock()
	s.mu.over = true
	s.signal()
	s.mu.Unlock()
	for until := time.Now().Add(lastTime); s.followed() && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	err := s.server.Shutdown(ctx) // what is being answered is
	if err != nil {
		err = s.server.Close()
	}
	<-s.served
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
