package serve

import (
	"context"
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
	server := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 20 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ConnState: follow}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	ready()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	return drain(server, l, done)
}

// closing tells clients of a server that stops not to send another request on the connection.
func (s *Server) closing(w http.ResponseWriter) {
	if s.stopping.Load() {
		w.Header().Set("Connection", "close")
	}
}

// drain ends a server without a reset and without losing a request. New connections are refused first, and those
// that are in the kernel's queue accepted; then the listener is closed, and every connection answers what was sent on
// it. http.Server.Shutdown would close idle connections whose next request has arrived and is not read yet:
// see gentleConn.
func drain(server *http.Server, l *listener, served <-chan error) error {
	until := time.Now().Add(lastAnswers)
	l.drain()
	refuseNew(l.Listener)
	for came := int64(-1); (came != l.accepted.Load() || queued(l.Listener)) && time.Now().Before(until); {
		came = l.accepted.Load()
		time.Sleep(quiet)
	}
	l.Listener.Close()
	<-served
	l.wait(time.Until(until))
	err := server.Close() // those who still talk have had their time
	l.wait(lingering + time.Second)
	return err
}
