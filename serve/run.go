package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	// mostConnections is how many clients may be connected; others are refused.
	mostConnections = 4096
	// lastAnswers is how long requests may go on after the end of the context.
	lastAnswers = 10 * time.Second
	// quiet is how long no connection must have come before the listener is closed.
	quiet = 100 * time.Millisecond
)

// Listen listens for Run. Sockets of multipath TCP, Go's default, take no packet filter: see
// refuseNew.
func Listen(addr string) (net.Listener, error) {
	var c net.ListenConfig
	c.SetMultipathTCP(false)
	return c.Listen(context.Background(), "tcp", addr)
}

// Run answers HTTP requests until ctx ends, then those of every connection that was made before, each
// with "Connection: close". No connection is reset: see drain. ready is called when it answers.
func (s *Server) Run(ctx context.Context, on net.Listener, ready func()) error {
	l := newListener(on, mostConnections)
	server := &http.Server{Handler: s.closing(l), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 20 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	ready()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	return drain(server, l)
}

// closing tells clients of a server that stops not to send another request on the connection.
func (s *Server) closing(l *listener) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		s.ServeHTTP(w, r)
	})
}

// drain ends a server without a reset. New connections are refused first, and those that are
// in the kernel's queue accepted and answered; then the listener is closed, requests in flight are
// finished, and idle connections closed from our end, so that a request on its way meets no
// closed socket.
func drain(server *http.Server, l *listener) error {
	until := time.Now().Add(lastAnswers)
	l.draining.Store(true)
	refuseNew(l.Listener)
	for came := int64(-1); came != l.accepted.Load() && time.Now().Before(until); {
		came = l.accepted.Load()
		time.Sleep(quiet)
	}
	last, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // those who still talk have had their time
	}
	l.wait(lingering + time.Second)
	return err
}
