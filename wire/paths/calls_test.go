package paths

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"starling/wire"
)

// TestCalls: functions, memory and the errors of both.
func TestCalls(t *testing.T) {
	t.Parallel()
	plan := links(t, 2)
	plan.File.Paths[0].Address, plan.File.Paths[1].Address = "127.0.0.1/32", "127.0.0.2/32"
	open := func() *Context {
		base, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c, err := Init(plan, base, Access{Token: []byte("secret")}, wire.Real)
		if err != nil {
			t.Skip("no second loopback address:", err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	server, client := open(), open()
	server.Register("upper", func(b []byte) ([]byte, error) { return bytes.ToUpper(b), nil })
	server.Share("rows", make([]byte, 1<<20))
	go server.Handle()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := client.Dial(ctx, server.host.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, word := range []string{"one", "two"} {
		if err := p.Send("upper", []byte(word)); err != nil {
			t.Fatal(err)
		}
	}
	for _, word := range []string{"ONE", "TWO"} {
		if got, err := p.Receive(); err != nil || string(got) != word {
			t.Errorf("%q, %v, want %s", got, err, word)
		}
	}
	rows := text(300000, 5)
	if err := p.Write("rows", 1000, rows); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Read("rows", 1000, len(rows)); err != nil || !bytes.Equal(got, rows) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := p.Read("rows", 1<<20-1, 2); err == nil || !strings.Contains(err.Error(), "1048576") {
		t.Errorf("past the end: %v", err)
	}
	// The wrappers: a path's own connections, memory and timestamps.
	var opened atomic.Int32
	open2 := func(ctx context.Context, addr string) (net.Conn, error) {
		opened.Add(1)
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	if err := client.RegisterCommunication(plan.File.Paths[1].Name, open2); err != nil {
		t.Fatal(err)
	}
	if err := client.RegisterCommunication("no such", open2); err == nil {
		t.Error("a path that is not there")
	}
	mapped, stamps := make([]byte, 10), time.Duration(0)
	server.RegisterMemory(func(n int) ([]byte, error) { return mapped[:n], nil })
	server.RegisterTimestamps(func() time.Duration { stamps += 3 * time.Microsecond; return stamps })
	if _, err := server.Allocate("mapped", 8); err != nil {
		t.Fatal(err)
	}
	second, err := client.Dial(ctx, server.host.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := second.Write("mapped", 2, []byte("abc")); err != nil || string(mapped[2:5]) != "abc" {
		t.Errorf("%q, %v", mapped, err)
	}
	if took := second.Served(); took != 3*time.Microsecond {
		t.Errorf("inside the peer for %v, want 3 us by its timestamps", took)
	}
	for opened.Load() == 0 && ctx.Err() == nil {
		wire.Sleep(ctx, wire.Real, time.Millisecond)
	}
	if opened.Load() == 0 {
		t.Error("the path was not opened by its function")
	}
	p.Send("lower", nil)
	if _, err := p.Receive(); err == nil || !strings.Contains(err.Error(), "lower") {
		t.Errorf("an unknown function: %v", err)
	}
}
