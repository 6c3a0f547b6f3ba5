package traintest

import (
	"errors"
	"sync"
	"time"

	"starling/wire"
)

// frame is what travels between two endpoints, as a connection carries it.
type frame struct {
	wire.Header
	body []byte
}

// framed is n endpoints in this process between which all that is sent travels as frames, which change sees before they
// are received and may change, keep or repeat.
func framed(n int, opt wire.Options, change func(f frame, deliver func(frame))) []wire.Endpoint {
	inboxes, ends := make([]*wire.Inbox, n), make([]wire.Endpoint, n)
	var opened sync.WaitGroup
	opened.Add(1)
	defer opened.Done()
	for r := range ends {
		links := make([]wire.Link, n)
		for q := range links {
			if q != r {
				links[q] = wire.BetweenServers
			}
		}
		ends[r] = wire.NewEndpoint(r, links, opt, func(in *wire.Inbox) wire.Transport {
			inboxes[r] = in
			c := wire.NewCarriers(n)
			for q := range c.To {
				if q != r {
					c.To[q] = newFrames(in, q, opt, &opened, func() *wire.Inbox { return inboxes[q] }, change)
				}
			}
			return c
		})
	}
	return ends
}

// frames carries messages to one peer.
type frames struct {
	queue  *wire.Queue
	from   *wire.Inbox
	to     func() *wire.Inbox
	peer   int
	change func(f frame, deliver func(frame))
	news   chan struct{}
	gone   chan struct{}
}

func newFrames(from *wire.Inbox, peer int, opt wire.Options, opened *sync.WaitGroup, to func() *wire.Inbox,
	change func(f frame, deliver func(frame))) *frames {
	c := &frames{queue: wire.NewQueue(opt), from: from, to: to, peer: peer, change: change,
		news: make(chan struct{}, 1), gone: make(chan struct{})}
	c.queue.OnPut(c.wake)
	c.queue.OnEnd(c.wake)
	go func() {
		opened.Wait()
		c.work()
	}()
	return c
}

func (c *frames) Carry(m *wire.Message) { c.queue.Put(m) }
func (c *frames) Fail(cause error)      { c.queue.Fail(cause) }
func (c *frames) Close()                { c.queue.Close() }
func (c *frames) Gone() <-chan struct{} { return c.gone }

func (c *frames) wake() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// work sends until the queue has ended, and then how the endpoint has.
func (c *frames) work() {
	defer close(c.gone)
	for range c.news {
		for chunk, ok := c.queue.Take(wire.MaxChunk); ok; chunk, ok = c.queue.Take(wire.MaxChunk) {
			c.change(frame{chunk.Header(), append([]byte(nil), chunk.Bytes()...)}, c.receive)
			c.queue.Sent(chunk, nil)
		}
		c.queue.Lock()
		ended := c.queue.Ended()
		c.queue.Unlock()
		if ended && c.queue.Drained() {
			h, text := c.from.Ending(c.peer)
			c.receive(frame{h, text})
			return
		}
	}
}

// receive is what a peer's reader does with a frame.
func (c *frames) receive(f frame) {
	to, from := c.to(), c.from.Rank()
	var raw [wire.HeaderSize]byte
	f.Header.Put(raw[:])
	var h wire.Header
	err := errors.Join(h.Parse(raw[:]), h.Belongs(from, c.peer))
	if err == nil && h.Chunk != len(f.body) {
		err = wire.ErrFrame // the frames after it cannot be found
	}
	switch {
	case err != nil:
	case h.Frame == wire.FrameGoodbye:
		to.PeerClosed(from)
	case h.Frame == wire.FrameFailure:
		err = to.Ended(&h, f.body)
	default:
		c.deliver(&h, f.body)
	}
	if err != nil {
		to.PeerLost(from, err)
	}
}

// deliver waits for space, unless the peer ends.
func (c *frames) deliver(h *wire.Header, body []byte) {
	to := c.to()
	for to.Deliver(h, body) == wire.ErrNoSpace && to.Err() == nil && c.from.Err() == nil {
		time.Sleep(time.Millisecond)
	}
}
