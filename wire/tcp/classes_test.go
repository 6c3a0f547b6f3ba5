package tcp

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"starling/coflow"
	"starling/internal/testdeadline"
	"starling/wire"
	"starling/wire/wiretest"
)

// oneOfEach is a coflow of every class, the most urgent first.
func oneOfEach() (ids []coflow.ID) {
	ids = make([]coflow.ID, len(coflow.Classes()))
	for _, t := range []coflow.Type{coflow.Bulk, coflow.Inputs, coflow.Params, coflow.Rows} {
		for layer := range int16(4) {
			id := coflow.ID{Type: t, Layer: layer}
			ids[coflow.Class(id)] = id
		}
	}
	return ids
}

// TestClassesInOrder: of classes, only the most urgent that has anything queued may send;
// one that was put later overtakes what is under way.
func TestClassesInOrder(t *testing.T) {
	e, peer := open(0, 1, 2, wire.Options{Order: coflow.ByType})
	peer.lanes.divide()
	q := peer.queue
	may := func() (class int) {
		q.Lock()
		defer q.Unlock()
		class = -1
		for i := range coflow.Classes() {
			if (&connection{carrier: peer, class: i}).mayTake() {
				if class >= 0 {
					t.Fatalf("classes %d and %d may both send", class, i)
				}
				class = i
			}
		}
		return class
	}
	if may() != -1 {
		t.Fatal("a class may send of an empty queue")
	}
	ids := oneOfEach()
	for class := len(ids) - 1; class >= 0; class-- { // bulk first
		e.Send(1, wire.Key{Coflow: ids[class]}, wire.Feature, make([]byte, 200))
		if may() != class {
			t.Fatalf("class %d may send, not %d, which is more urgent", may(), class)
		}
		q.Lock()
		piece := q.Cut(100)
		q.Written(&piece, nil)
		q.Unlock()
	}
	for class := range ids {
		if may() != class {
			t.Fatalf("class %d is next, want %d", may(), class)
		}
		q.Lock()
		piece := q.Cut(100)
		q.Written(&piece, nil)
		q.Unlock()
	}
}

// stalled is a connection of which nothing is read, after the handshake, until it is let go.
type stalled struct {
	net.Conn
	index func(hello []byte) bool // whether it is the one
	once  sync.Once
	this  bool
	reads int
	goOn  <-chan struct{}
}

func (s *stalled) NetConn() net.Conn { return s.Conn }

func (s *stalled) Write(b []byte) (int, error) {
	s.once.Do(func() { s.this = s.index(b) })
	return s.Conn.Write(b)
}

func (s *stalled) Read(b []byte) (int, error) {
	if s.reads++; s.this && s.reads > 2 { // two replies of the handshake
		<-s.goOn
	}
	return s.Conn.Read(b)
}

// TestNobodyWaitsForBulk: while the peer takes nothing of a bulk transfer that has filled its
// connection, messages of all other classes arrive. With the connection let go, so does it.
func TestNobodyWaitsForBulk(t *testing.T) {
	bulk := len(coflow.Classes()) - 1
	goOn := make(chan struct{})
	ends := joinAll(t, 2, func(c *wire.Config) {
		c.Options, c.NoSharedMemory, c.DSCP = wire.DefaultOptions(), true, true
		if c.Rank == 1 {
			c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
				if err != nil {
					return nil, err
				}
				err = conn.(*net.TCPConn).SetReadBuffer(64 << 10) // so that it is full however much others get
				return &stalled{Conn: conn, index: func(hello []byte) bool { return int(hello[10]) == bulk }, goOn: goOn}, err
			}
		}
	})
	defer wiretest.CloseAll(ends)
	ids := oneOfEach()
	large := bytes.Repeat([]byte("bulk"), 32<<20/4) // more than the kernel holds
	into := make([]byte, len(large))
	key := wire.Key{Coflow: ids[bulk]}
	got, left := ends[1].Recv(0, key, wire.Feature, into), ends[0].Send(1, key, wire.Feature, large)
	for class := bulk - 1; class >= 0; class-- {
		key := wire.Key{Coflow: ids[class]}
		word := make([]byte, 6)
		p := ends[1].Recv(0, key, wire.Control, word)
		ends[0].Send(1, key, wire.Control, []byte("urgent"))
		if err := p.Wait(wiretest.Soon(t)); err != nil || string(word) != "urgent" {
			t.Fatalf("class %d: %q, %v", class, word, err)
		}
	}
	if left.IsDone() {
		t.Error("the bulk transfer was not held up: the test shows nothing")
	}
	close(goOn)
	for _, p := range []*wire.Pending{got, left} {
		if err := p.Wait(wiretest.Soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(into, large) {
		t.Error("the bulk transfer arrived changed")
	}
}

// TestClassesAreAllOrNone: a worker with a connection per class refuses one without, and
// a peer is lost with the first of its connections.
func TestClassesAreAllOrNone(t *testing.T) {
	cfgs := configs(t, 2)
	cfgs[1].DSCP = true
	ctx, stop := context.WithCancel(wiretest.Soon(t))
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		if e, err := Join(ctx, cfgs[0]); err == nil {
			e.Close()
		}
	})
	_, err := Join(ctx, cfgs[1])
	if err == nil || !strings.Contains(err.Error(), "connection 0 of 10, this worker uses 2") {
		t.Errorf("joined a worker without classes: %v", err)
	}
	stop()
	wg.Wait()

	var conns []net.Conn
	var mu sync.Mutex
	ends := joinAll(t, 2, func(c *wire.Config) {
		c.Options, c.NoSharedMemory, c.DSCP = wire.DefaultOptions(), true, true
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, conn)
			return conn, err
		}
	})
	defer wiretest.CloseAll(ends)
	if len(conns) != len(coflow.Classes()) {
		t.Fatalf("%d connections for %d classes", len(conns), len(coflow.Classes()))
	}
	conns[4].Close()
	for _, e := range ends {
		testdeadline.Receive(t, e.Done(), "the end of an endpoint")
	}
}
