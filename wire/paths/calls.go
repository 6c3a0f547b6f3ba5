package paths

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"starling/wire"
)

// The unified calls of LEO (table 6.2), over all paths of a host: Init opens them; Register and Share name functions and
// memory that peers may use, RegisterCommunication, RegisterMemory and RegisterTimestamps what connects a path, holds
// memory and tells the time on this hardware; Send and Receive exchange messages with a peer; Read and Write reach its memory without its
// program; Handle answers all that peers ask.

// Context is what Init makes.
type Context struct {
	host  *Host
	clock wire.Clock
	mu    struct {
		sync.Mutex
		functions map[string]func(request []byte) ([]byte, error)
		memory    map[string][]byte
		allocate  func(bytes int) ([]byte, error) // nil: Go's
		now       func() time.Duration            // nil: the clock's
	}
}

// Init listens on every path of the plan, and at base, for peers that have access.
func Init(plan *Plan, base net.Listener, access Access, clock wire.Clock) (*Context, error) {
	h, err := NewHost(plan, base, access, clock)
	if err != nil {
		return nil, err
	}
	c := &Context{host: h, clock: clock}
	c.mu.functions, c.mu.memory = map[string]func([]byte) ([]byte, error){}, map[string][]byte{}
	return c, nil
}

// Register names a function that peers may call by Send.
func (c *Context) Register(name string, f func(request []byte) ([]byte, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.functions[name] = f
}

// Share names memory that peers may Read and Write. Handle copies in and out of it under one lock.
func (c *Context) Share(name string, memory []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.memory[name] = memory
}

// RegisterCommunication has a function connect to peers on a path, in place of a socket: a device's own connections. It
// is for what is dialed from then on; peers accept it as they accept a socket.
func (c *Context) RegisterCommunication(path string, open func(ctx context.Context, addr string) (net.Conn, error)) error {
	at := c.host.chooser.plan.File.path(path)
	if at < 0 {
		return fmt.Errorf("found path %q, want one of the file's", path)
	}
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	if c.host.mu.opens == nil {
		c.host.mu.opens = map[int]func(context.Context, string) (net.Conn, error){}
	}
	c.host.mu.opens[at] = open
	return nil
}

// RegisterMemory has a function allocate what Allocate shares: pinned memory, or a device's that is mapped.
func (c *Context) RegisterMemory(allocate func(bytes int) ([]byte, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.allocate = allocate
}

// Allocate makes memory and shares it by a name.
func (c *Context) Allocate(name string, bytes int) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	memory, err := []byte(nil), error(nil)
	if c.mu.allocate == nil {
		memory = make([]byte, bytes)
	} else if memory, err = c.mu.allocate(bytes); err != nil {
		return nil, err
	}
	c.mu.memory[name] = memory
	return memory, nil
}

// RegisterTimestamps has a function tell the time of calls: that of a NIC, or of a processor's counter.
func (c *Context) RegisterTimestamps(now func() time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.now = now
}

// stamp is the time of a call, from any beginning.
func (c *Context) stamp() time.Duration {
	c.mu.Lock()
	now := c.mu.now
	c.mu.Unlock()
	if now == nil {
		return time.Duration(c.clock.Now().UnixNano())
	}
	return now()
}

// Close stops listening.
func (c *Context) Close() error { return c.host.Close() }

// A call is a head and a body; the answer too, with what 0 or an error's text.
const (
	callSend = iota + 1
	callRead
	callWrite
	callHead = 24      // what u8, bytes of the name u8, zero u16, length u32, offset u64, count u64
	maxCall  = 1 << 26 // bytes of a body
)

// Peer is another host's context. Its calls are answered in their order.
type Peer struct {
	conn    net.Conn
	sending sync.Mutex
	waiting sync.Mutex
	served  time.Duration // of the last answer
}

// Dial connects with a peer.
func (c *Context) Dial(ctx context.Context, addr string) (*Peer, error) {
	conn, err := c.host.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &Peer{conn: conn}, nil
}

// Close ends the connection.
func (p *Peer) Close() error { return p.conn.Close() }

// Send calls a function of the peer, without waiting for its answer.
func (p *Peer) Send(name string, message []byte) error { return p.call(callSend, name, 0, 0, message) }

// Receive waits for the next answer.
func (p *Peer) Receive() ([]byte, error) {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	var head [callHead]byte
	if _, err := io.ReadFull(p.conn, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[4:])
	if n > maxCall {
		return nil, fmt.Errorf("found an answer of %d bytes, want at most %d", n, maxCall)
	}
	p.served = time.Duration(binary.LittleEndian.Uint64(head[8:]))
	body := make([]byte, n)
	if _, err := io.ReadFull(p.conn, body); err != nil {
		return nil, err
	}
	if head[0] != 0 {
		return nil, errors.New(string(body))
	}
	return body, nil
}

// Served is how long the last call that was answered was inside the peer, by the peer's timestamps.
func (p *Peer) Served() time.Duration {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	return p.served
}

// Read is bytes of the peer's memory.
func (p *Peer) Read(name string, offset, count int) ([]byte, error) {
	if err := p.call(callRead, name, offset, count, nil); err != nil {
		return nil, err
	}
	return p.Receive()
}

// Write puts bytes into the peer's memory. It returns when they are there.
func (p *Peer) Write(name string, offset int, data []byte) error {
	if err := p.call(callWrite, name, offset, 0, data); err != nil {
		return err
	}
	_, err := p.Receive()
	return err
}

func (p *Peer) call(what byte, name string, offset, count int, body []byte) error {
	if len(name) > 255 || len(body) > maxCall || offset < 0 || count < 0 || count > maxCall {
		return fmt.Errorf("found a call %q with %d bytes at %d, want at most %d", name, max(len(body), count), offset, maxCall)
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	b := make([]byte, callHead, callHead+len(name)+len(body))
	le := binary.LittleEndian
	b[0], b[1] = what, byte(len(name))
	le.PutUint32(b[4:], uint32(len(body)))
	le.PutUint64(b[8:], uint64(offset))
	le.PutUint64(b[16:], uint64(count))
	_, err := p.conn.Write(append(append(b, name...), body...))
	return err
}

// Handle answers the calls of all peers, each peer's in their order, until the context is closed.
func (c *Context) Handle() error {
	for {
		conn, err := wire.Accept(c.host, nil)
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			for c.answer(conn) == nil {
			}
		}()
	}
}

// answer reads one call and answers it.
func (c *Context) answer(conn net.Conn) error {
	var head [callHead]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	le := binary.LittleEndian
	begun, n := c.stamp(), le.Uint32(head[4:])
	if n > maxCall {
		return fmt.Errorf("found a call of %d bytes, want at most %d", n, maxCall)
	}
	b := make([]byte, int(head[1])+int(n))
	if _, err := io.ReadFull(conn, b); err != nil {
		return err
	}
	reply, err := c.perform(head[0], string(b[:head[1]]), le.Uint64(head[8:]), le.Uint64(head[16:]), b[head[1]:])
	out := make([]byte, callHead)
	if err != nil {
		out[0], reply = 1, []byte(err.Error())
	}
	le.PutUint32(out[4:], uint32(len(reply)))
	le.PutUint64(out[8:], uint64(max(c.stamp()-begun, 0)))
	_, err = conn.Write(append(out, reply...))
	return err
}

// perform does what a call asks for.
func (c *Context) perform(what byte, name string, offset, count uint64, body []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if what == callSend {
		f := c.mu.functions[name]
		if f == nil {
			return nil, fmt.Errorf("found no function %q, want one that is registered", name)
		}
		return f(body)
	}
	memory := c.mu.memory[name]
	n := max(count, uint64(len(body)))
	if what > callWrite || offset > uint64(len(memory)) || n > uint64(len(memory))-offset {
		return nil, fmt.Errorf("found bytes %d to %d of %q, want some of its %d", offset, offset+n, name, len(memory))
	}
	if what == callWrite {
		copy(memory[offset:], body)
		return nil, nil
	}
	return append([]byte(nil), memory[offset:offset+n]...), nil
}
