package wire

import (
	"context"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"starling/wire/calls"
)

// victim is an endpoint that serves, and calls, a peer which sends any frames.
type victim struct {
	*endpoint
	reply *Reply
}

// newVictim serves "s" as service 1, with requests of at most 100 bytes and two calls under
// way, and has a call to the peer's service "p" under way, whose response may have 50 bytes.
func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{endpoint: newEndpoint(0, []Link{SameProcess, SameHost}, DefaultOptions())}
	v.transport = discard{}
	_, err := v.Serve(Service{Name: "s", MaxRequest: 100, Window: 2},
		func(ctx context.Context, r *Request) (Response, error) {
			<-ctx.Done()
			return Response{}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	v.reply = v.Call(1, Call{Service: "p", Limit: 50})
	v.gets(Header{Frame: FrameServed, Service: 1}, calls.Limits{MaxRequest: 10, MaxResponse: 100,
		Window: 1}.Append("p"))
	if v.calls.underWay(1, first) == nil {
		t.Fatal("the call was not sent")
	}
	return v
}

// first is the number of the first call between two ranks.
const first = calls.First

// gets delivers a frame of the peer.
func (v *victim) gets(h Header, chunk []byte) {
	h.From, h.To = 1, 0
	if h.Length == 0 {
		h.Length = int64(len(chunk))
	}
	h.Chunk = len(chunk)
	v.inbox.Deliver(&h, chunk)
}

// TestHostileCalls: a peer that does not keep to the protocol of calls is named, and gets
// neither memory nor handlers.
func TestHostileCalls(t *testing.T) {
	request := func(number uint32) Header { return Header{Frame: FrameRequest, Service: 1, Key: callKey(number)} }
	window := func(n uint32) []byte {
		return append(binary.LittleEndian.AppendUint32(make([]byte, 8), n), "p"...)
	}
	for _, c := range []struct {
		name, want string
		do         func(v *victim)
	}{
		{"no such service", "a request to service 9 of 1", func(v *victim) {
			v.gets(Header{Frame: FrameRequest,
				Service: 9, Key: callKey(first)}, nil)
		}},
		{"service 0", "a request to service 0 of 1", func(v *victim) {
			v.gets(Header{Frame: FrameRequest,
				Key: callKey(first)}, nil)
		}},
		{"long request", "a request of 101 bytes to \"s\", which takes at most 100",
			func(v *victim) { v.gets(request(first), make([]byte, 101)) }},
		{"a gibibyte", "a request of 1073741824 bytes", func(v *victim) {
			h := request(first)
			h.Length = calls.MaxBody
			v.gets(h, make([]byte, 10))
		}},
		{"beyond the window", "more than 2 calls of \"s\" under way", func(v *victim) {
			for slot := range uint32(3) {
				v.gets(request(first+slot), nil)
			}
		}},
		{"a call twice", "call 4096 a second time", func(v *victim) {
			v.gets(request(first), nil)
			v.gets(request(first), nil)
		}},
		{"out of turn", "call 20480 out of sequence", func(v *victim) { v.gets(request(5*first), nil) }},
		{"two messages of a call", "two messages of call 4096", func(v *victim) {
			h := request(first)
			h.Length = 10
			v.gets(h, make([]byte, 5))
			h.Number, h.Offset = 7, 5
			v.gets(h, make([]byte, 5))
		}},
		{"response to no call", "a response to call 77, which is not under way",
			func(v *victim) { v.gets(Header{Frame: FrameResponse, Key: callKey(77)}, nil) }},
		{"long response", "a response of 51 bytes, where 50 are allowed",
			func(v *victim) { v.gets(Header{Frame: FrameResponse, Key: callKey(first)}, make([]byte, 51)) }},
		{"refusal of no call", "a refusal of call 77, which is not under way",
			func(v *victim) { v.gets(Header{Frame: FrameRefusal, Key: callKey(77)}, []byte{0}) }},
		{"refusal without a reason", "a refusal without a reason",
			func(v *victim) { v.gets(Header{Frame: FrameRefusal, Key: callKey(first)}, nil) }},
		{"refusal after a response", "a refusal of call 4096", func(v *victim) {
			v.gets(Header{Frame: FrameResponse, Key: callKey(first), Length: 20}, make([]byte, 10))
			v.gets(Header{Frame: FrameRefusal, Key: callKey(first)}, []byte{0})
		}},
		{"not wanted", "service \"p\", which was not wanted",
			func(v *victim) { v.gets(Header{Frame: FrameServed, Service: 1}, window(1)) }},
		{"no window", "0 calls", func(v *victim) { v.gets(Header{Frame: FrameServed, Service: 1}, window(0)) }},
		{"no limits", "limits of 3 bytes", func(v *victim) {
			v.gets(Header{Frame: FrameServed, Service: 1},
				[]byte("abc"))
		}},
		{"no name", "a service with a name of 0 bytes", func(v *victim) { v.gets(Header{Frame: FrameWant}, nil) }},
		{"a long name", "a service with a name of 65 bytes",
			func(v *victim) { v.gets(Header{Frame: FrameWant}, make([]byte, 65)) }},
		{"many names", "257 services that are not served", func(v *victim) {
			for i := range 257 {
				v.gets(Header{Frame: FrameWant}, []byte{byte(i), byte(i >> 8), 'x'})
			}
		}},
		{"cancel out of turn", "call 28672 out of sequence",
			func(v *victim) { v.gets(Header{Frame: FrameCancel, Key: callKey(7 * first)}, nil) }},
	} {
		v := newVictim(t)
		c.do(v)
		if err := v.Err(); err == nil || !strings.HasPrefix(err.Error(), "rank 0 lost rank 1: not a valid frame") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %s", c.name, err, c.want)
		}
		if _, err := v.reply.Wait(soon(t)); err == nil {
			t.Errorf("%s: the call under way was answered", c.name)
		}
		v.Close()
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
	v.gets(Header{Frame: FrameResponse, Key: callKey(first), Length: 30}, make([]byte, 10))
	v.gets(Header{Frame: FrameResponse, Key: callKey(first), Length: 30, Offset: 10}, make([]byte, 20))
	v.gets(Header{Frame: FrameCancel, Key: callKey(first)}, nil) // before its request
	v.gets(Header{Frame: FrameRequest, Service: 1, Key: callKey(first)}, nil)
	v.gets(Header{Frame: FrameCancel, Key: callKey(first)}, nil)
	for v.calls.underWay(1, 2*first) == nil {
		runtime.Gosched()
	}
	v.gets(Header{Frame: FrameResponse, Key: callKey(2 * first)}, []byte("here"))
	if b, err := again.Wait(soon(t)); err != nil || string(b) != "here" {
		t.Errorf("%q, %v", b, err)
	}
	if n := v.Ledger().Sum(func(e Entry) bool { return !e.Sent }); n.Bytes != 34 {
		t.Errorf("%d bytes were counted, expected 34", n.Bytes)
	}
	v.Close()
}

// FuzzDeliver lets a peer send any frames: the endpoint fails or goes on, takes bounded memory, and ends.
func FuzzDeliver(f *testing.F) {
	for _, h := range sampleHeaders {
		b := make([]byte, HeaderSize+h.Chunk)
		h.Put(b)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		opt := DefaultOptions()
		opt.UnexpectedLimit = 1 << 16
		v := &victim{endpoint: newEndpoint(0, []Link{SameProcess, SameHost}, opt)}
		v.transport = discard{}
		v.Recv(1, key(0), Feature, make([]byte, 100))
		for len(sent) >= HeaderSize {
			seal(sent)
			var h Header
			if h.Parse(sent) != nil || h.Offered {
				break
			}
			chunk := sent[HeaderSize:min(len(sent), HeaderSize+h.Chunk)]
			if sent = sent[HeaderSize+len(chunk):]; len(chunk) == h.Chunk {
				h.From, h.To = 1, 0
				v.inbox.Deliver(&h, chunk)
			}
		}
		if held := v.inbox.mu.unexpected[1]; held > opt.UnexpectedLimit {
			t.Errorf("%d bytes were taken", held)
		}
		v.Close()
	})
}
