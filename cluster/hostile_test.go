package cluster

import (
	"context"
	"net"
	"testing"
	"time"

	"starling/wire"
)

// TestChatter: what answers where the coordinator should be, and says something for ever,
// but never who it is, is given up.
func TestChatter(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for c := newControl(conn, time.Minute, wire.Real); c.write(message{Type: "ping"}) == nil; {
					time.Sleep(time.Millisecond)
				}
			}()
		}
	}()
	failed := make(chan error, 1)
	go func() {
		_, err := Join(context.Background(), JoinRequest{Coordinator: l.Addr().String(), Rank: -1,
			Timeout: 100 * time.Millisecond})
		failed <- err
	}()
	select {
	case err := <-failed:
		if err == nil {
			t.Error("it was taken for the coordinator")
		}
	case <-time.After(time.Minute):
		t.Error("the worker listens for ever")
	}
}

// FuzzRoster: whatever a roster says, a worker has a rank among its peers, and no more
// bytes than came.
func FuzzRoster(f *testing.F) {
	f.Add([]byte(`{"rank":0,"peers":[{}],"own":2}`), []byte("abc"))
	f.Add([]byte(`{"rank":1,"peers":[{}],"own":-1}`), []byte("abc"))
	f.Add([]byte(`{"rank":0,"peers":[{}],"own":9223372036854775807}`), []byte(nil))
	f.Fuzz(func(t *testing.T, body, blob []byte) {
		m, err := memberOf(message{Type: "roster", Body: body, blob: blob})
		if err == nil && (m.Here() < 1 || len(m.Blob)+len(m.Own) != len(blob)) {
			t.Errorf("%+v", m)
		}
	})
}

// FuzzSession: whatever workers say, in whatever order they come and go, what is done
// about it is done for ranks that there are, and it ends with all results or a reason.
func FuzzSession(f *testing.F) {
	kinds := []string{"event", "ping", "state", "result", "failure", "stop", ""}
	f.Add([]byte{0, 1, 20, 21, 22, 23, 24}, []byte(`{"text":"x","rank":-7,"type":"note"}`), true)
	f.Add([]byte{0, 24, 1, 30, 31, 33, 40}, []byte(`7`), false)
	f.Fuzz(func(t *testing.T, steps, body []byte, launched bool) {
		const size = 2
		m := newTestSession(size, launched)
		for i, s := range steps {
			conn := int(s) % 3
			switch what := int(s) / 3 % 10; {
			case what == 0:
				m.arrive(conn, Hello{Version: "v", Rank: i%4 - 1})
				m.begin()
			case what == 1:
				m.disconnected(conn, errSilent)
			case what == 2 && conn < size:
				m.exited(conn, 1, "h", nil, "")
			case what > 2:
				m.received(conn, message{Type: kinds[what-3], Body: body})
			}
			for _, a := range m.out {
				if told := a.event != nil || a.state != nil || a.status != nil; told && (a.rank < 0 || a.rank >= size) {
					t.Fatalf("rank %d: %+v", a.rank, a)
				}
				if a.status != nil && a.status.Rank != a.rank {
					t.Fatalf("rank %d speaks for rank %d", a.rank, a.status.Rank)
				}
			}
			m.out = nil
		}
		if !m.over() {
			return
		}
		if all, err := m.outcome(); err == nil && len(all) != size {
			t.Errorf("all is well with %d results", len(all))
		}
	})
}
