package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"starling/internal/testdeadline"
)

// running is a server on a port of its own, and what ends it.
func running(t *testing.T) (addr string, stop func() error) {
	t.Helper()
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := serverFor(t, "gcn", block(t))
	go func() { done <- s.Run(ctx, l, func() {}) }()
	t.Cleanup(cancel)
	return l.Addr().String(), func() error {
		cancel()
		return <-done
	}
}

const oneVertex = "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 16\r\n\r\n{\"vertices\":[3]}"

// answered reads one whole answer.
func answered(r *bufio.Reader) (*http.Response, error) {
	a, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	_, err = io.Copy(io.Discard, a.Body)
	return a, err
}

// Two hundred clients ask while the server stops, some on new connections, some of which wait before
// they send, some on connections that stay. Each client that got a connection gets an answer, and none a reset.
func TestStopResetsNobody(t *testing.T) {
	for round := range 3 {
		addr, stop := running(t)
		var wg sync.WaitGroup
		var ended atomic.Bool
		var answers atomic.Int64
		started := make(chan struct{}, 200)
		for k := range 200 {
			wg.Go(func() {
				c := &client{addr: addr, wait: time.Duration(k%7) * 5 * time.Millisecond, stays: k%2 == 0}
				for first := true; ; first = false {
					err := c.ask()
					if first {
						started <- struct{}{}
					}
					switch {
					case err == nil:
						answers.Add(1)
					case errors.Is(err, syscall.ECONNREFUSED) && ended.Load():
						return
					case errors.Is(err, errIdle) && ended.Load():
					default:
						t.Errorf("round %d, client %d: %v", round, k, err)
						return
					}
				}
			})
		}
		testdeadline.Do(t, time.Minute, "200 clients and a server that stops", func() {
			for range 200 {
				<-started
			}
			ended.Store(true)
			if err := stop(); err != nil {
				t.Error(err)
			}
			wg.Wait()
		})
		if answers.Load() < 200 {
			t.Errorf("only %d answers", answers.Load())
		}
	}
}

// errIdle is a connection that the server had closed when the next request was sent: HTTP/1.1
// lets it, and clients ask again.
var errIdle = errors.New("an idle connection was closed")

// client asks again and again.
type client struct {
	addr  string
	wait  time.Duration // between connecting and asking
	stays bool          // on one connection, while the server lets it
	conn  net.Conn
	r     *bufio.Reader
	used  bool
}

func (c *client) ask() error {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.addr, 10*time.Second)
		if err != nil {
			return err
		}
		c.conn, c.r, c.used = conn, bufio.NewReader(conn), false
	}
	c.conn.SetDeadline(time.Now().Add(20 * time.Second))
	time.Sleep(c.wait) // the server has accepted it and waits for the request
	_, err := io.WriteString(c.conn, oneVertex)
	var a *http.Response
	if err == nil {
		a, err = answered(c.r)
	}
	if err != nil {
		was := c.used
		c.close()
		if was && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE)) {
			return errIdle
		}
		return err
	}
	if c.used = true; a.StatusCode != http.StatusOK && a.StatusCode != http.StatusServiceUnavailable {
		return fmt.Errorf("status %d", a.StatusCode)
	}
	if a.Close || !c.stays {
		c.close()
	}
	return nil
}

func (c *client) close() {
	c.conn.Close()
	c.conn = nil
}

// Requests that were written before the server is told to stop are answered, those on connections that stay too, and
// however long the answers take.
func TestStopAnswersRequestsThatWereWritten(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serverFor(t, "gcn", block(t))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l, func() {}) }()
	var clients [40]net.Conn
	for k := range clients {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		io.WriteString(c, oneVertex)
		if _, err := answered(bufio.NewReader(c)); err != nil {
			t.Fatal(err)
		}
		clients[k] = c
	}
	for range s.limits.AtOnce {
		s.slots <- struct{}{} // requests wait
	}
	for _, c := range clients {
		io.WriteString(c, oneVertex)
	}
	cancel()
	time.Sleep(3 * lastRequest) // the answers come after idle connections have ended
	for range s.limits.AtOnce {
		<-s.slots
	}
	for k, c := range clients {
		if a, err := answered(bufio.NewReader(c)); err != nil || a.StatusCode != http.StatusOK || !a.Close {
			t.Errorf("client %d: %v %v", k, a, err)
		}
		c.Close()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Connections beyond the limit get 503 and no reset, although their request is not read.
func TestTooManyConnections(t *testing.T) {
	on, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newListener(on, 1)
	server := &http.Server{Handler: serverFor(t, "gcn", block(t))}
	go server.Serve(l)
	defer server.Close()
	first, err := net.Dial("tcp", on.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	first.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(first, oneVertex)
	if a, err := answered(bufio.NewReader(first)); err != nil || a.StatusCode != http.StatusOK {
		t.Fatal(a, err)
	}
	for range 20 {
		c, err := net.Dial("tcp", on.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(20 * time.Second))
		io.WriteString(c, oneVertex+strings.Repeat(" ", 100_000))
		a, err := answered(bufio.NewReader(c))
		if err != nil || a.StatusCode != http.StatusServiceUnavailable || !a.Close {
			t.Fatal(a, err)
		}
		c.Close()
	}
}
