package wire

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

// victim is an endpoint that serves, and calls, a peer which sends any frames.
type victim struct {
	*endpoint
	peer  net.Conn
	reply *Reply
}

// newVictim serves "s" as service 1, with requests of at most 100 bytes and two calls under
// way, and has a call to the peer's service "p" under way, whose response may have 50 bytes.
func newVictim(t *testing.T) *victim {
	t.Helper()
	opt := DefaultOptions()
	opt.Linger = time.Millisecond
	v := &victim{endpoint: newEndpoint(0, []Link{SameProcess, SameHost}, opt)}
	mine, peer := net.Pipe()
	carrier := newTCPPeer(v.endpoint, 1, []net.Conn{mine})
	v.transport, v.peer = over(nil, carrier), peer
	carrier.start()
	go io.Copy(io.Discard, peer)
	_, err := v.Serve(Service{Name: "s", MaxRequest: 100, Window: 2},
		func(ctx context.Context, r *Request) (Response, error) {
			<-ctx.Done()
			return Response{}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	v.reply = v.Call(1, Call{Service: "p", Limit: 50})
	v.says(header{frame: frameServed, service: 1}, (&service{Service: Service{Name: "p", MaxRequest: 10,
		MaxResponse: 100, Window: 1}}).limits())
	for v.calls.underWay(1, first) == nil {
		runtime.Gosched() // until the call was sent
	}
	return v
}

// first is the number of the first call between two ranks.
const first = 1 << slotBits

func (v *victim) says(h header, chunk []byte) {
	h.from, h.to = 1, 0
	if h.length == 0 {
		h.length = int64(len(chunk))
	}
	h.chunk = len(chunk)
	v.peer.Write(frame(h, chunk))
}

// TestHostileCalls: a peer that does not keep to the protocol of calls is named, and gets
// neither memory nor handlers.
func TestHostileCalls(t *testing.T) {
	request := func(number uint32) header { return header{frame: frameRequest, service: 1, key: callKey(number)} }
	window := func(n uint32) []byte {
		return append(binary.LittleEndian.AppendUint32(make([]byte, 8), n), "p"...)
	}
	for _, c := range []struct {
		name, want string
		do         func(v *victim)
	}{
		{"no such service", "a request to service 9 of 1", func(v *victim) {
			v.says(header{frame: frameRequest,
				service: 9, key: callKey(first)}, nil)
		}},
		{"service 0", "a request to service 0 of 1", func(v *victim) {
			v.says(header{frame: frameRequest,
				key: callKey(first)}, nil)
		}},
		{"long request", "a request of 101 bytes to \"s\", which takes at most 100",
			func(v *victim) { v.says(request(first), make([]byte, 101)) }},
		{"a gibibyte", "a request of 1073741824 bytes", func(v *victim) {
			h := request(first)
			h.length = maxBody
			v.says(h, make([]byte, 10))
		}},
		{"beyond the window", "more than 2 calls of \"s\" under way", func(v *victim) {
			for slot := range uint32(3) {
				v.says(request(first+slot), nil)
			}
		}},
		{"a call twice", "call 4096 a second time", func(v *victim) {
			v.says(request(first), nil)
			v.says(request(first), nil)
		}},
		{"out of turn", "call 20480 out of sequence", func(v *victim) { v.says(request(5<<slotBits), nil) }},
		{"two messages of a call", "two messages of call 4096", func(v *victim) {
			h := request(first)
			h.length = 10
			v.says(h, make([]byte, 5))
			h.number, h.offset = 7, 5
			v.says(h, make([]byte, 5))
		}},
		{"response to no call", "a response to call 77, which is not under way",
			func(v *victim) { v.says(header{frame: frameResponse, key: callKey(77)}, nil) }},
		{"long response", "a response of 51 bytes, where 50 are allowed",
			func(v *victim) { v.says(header{frame: frameResponse, key: callKey(first)}, make([]byte, 51)) }},
		{"refusal of no call", "a refusal of call 77, which is not under way",
			func(v *victim) { v.says(header{frame: frameRefusal, key: callKey(77)}, []byte{0}) }},
		{"refusal without a reason", "a refusal without a reason",
			func(v *victim) { v.says(header{frame: frameRefusal, key: callKey(first)}, nil) }},
		{"refusal after a response", "a refusal of call 4096", func(v *victim) {
			v.says(header{frame: frameResponse, key: callKey(first), length: 20}, make([]byte, 10))
			v.says(header{frame: frameRefusal, key: callKey(first)}, []byte{0})
		}},
		{"not wanted", "service \"p\", which was not wanted",
			func(v *victim) { v.says(header{frame: frameServed, service: 1}, window(1)) }},
		{"no window", "0 calls", func(v *victim) { v.says(header{frame: frameServed, service: 1}, window(0)) }},
		{"no limits", "limits of 3 bytes", func(v *victim) {
			v.says(header{frame: frameServed, service: 1},
				[]byte("abc"))
		}},
		{"no name", "a service with a name of 0 bytes", func(v *victim) { v.says(header{frame: frameWant}, nil) }},
		{"a long name", "a service with a name of 65 bytes",
			func(v *victim) { v.says(header{frame: frameWant}, make([]byte, 65)) }},
		{"many names", "257 services that are not served", func(v *victim) {
			for i := range 257 {
				v.says(header{frame: frameWant}, []byte{byte(i), byte(i >> 8), 'x'})
			}
		}},
		{"cancel out of turn", "call 28672 out of sequence",
			func(v *victim) { v.says(header{frame: frameCancel, key: callKey(7 << slotBits)}, nil) }},
		{"an address", "not a valid frame", func(v *victim) {
			v.says(header{frame: frameResponse, offered: true, key: callKey(first), length: 40},
				make([]byte, offerSize))
		}},
	} {
		v := newVictim(t)
		go c.do(v)
		select {
		case <-v.Done():
		case <-soon(t).Done():
			t.Fatalf("%s: no error", c.name)
		}
		if err := v.Err(); !strings.HasPrefix(err.Error(), "rank 0 lost rank 1: not a valid frame") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %s", c.name, err, c.want)
		}
		if _, err := v.reply.Wait(soon(t)); err == nil {
			t.Errorf("%s: the call under way was answered", c.name)
		}
		v.Close()
		v.peer.Close()
	}
}

// A peer may answer late, and cancel what was answered: neither is a mistake.
func TestLateCallFrames(t *testing.T) {
	v := newVictim(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := v.reply.Wait(ctx); err != context.Canceled {
		t.Error(err)
	}
	<-v.reply.Done()
	again := v.Call(1, Call{Service: "p", Limit: 50}) // it waits for the place of the first
	v.says(header{frame: frameResponse, key: callKey(first), length: 30}, make([]byte, 10))
	v.says(header{frame: frameResponse, key: callKey(first), length: 30, offset: 10}, make([]byte, 20))
	v.says(header{frame: frameCancel, key: callKey(first)}, nil) // before its request
	v.says(header{frame: frameRequest, service: 1, key: callKey(first)}, nil)
	v.says(header{frame: frameCancel, key: callKey(first)}, nil)
	for v.calls.underWay(1, 2*first) == nil {
		runtime.Gosched()
	}
	v.says(header{frame: frameResponse, key: callKey(2 * first)}, []byte("here"))
	if b, err := again.Wait(soon(t)); err != nil || string(b) != "here" {
		t.Errorf("%q, %v", b, err)
	}
	if n := v.Ledger().Sum(func(e Entry) bool { return !e.Sent }); n.Bytes != 34 {
		t.Errorf("%d bytes were counted, expected 34", n.Bytes)
	}
	v.peer.Close()
	v.Close()
}
