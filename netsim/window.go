package netsim

// wayBack is acknowledgements that take the same time. They keep their order, so that only
// the oldest needs an event.
type wayBack struct {
	takes Time
	acks  list
}

// wayBack is the number of the way that takes so long.
func (n *Packets) wayBack(takes Time) int32 {
	for i := range n.ways {
		if n.ways[i].takes == takes {
			return int32(i)
		}
	}
	n.ways = append(n.ways, wayBack{takes: takes})
	return int32(len(n.ways) - 1)
}

// sendBack acknowledges a packet.
func (n *Packets) sendBack(way, i int32) {
	w := &n.ways[way]
	n.packets[i].at = n.now + w.takes
	if w.acks.first == 0 {
		n.schedule(n.packets[i].at, eventAck, way, 0)
	}
	n.push(&w.acks, i)
}

// acknowledge takes the acknowledgements of this time to their senders.
func (n *Packets) acknowledge(way int32) {
	w := &n.ways[way]
	for w.acks.first != 0 && n.packets[w.acks.first].at == n.now {
		i := n.pop(&w.acks)
		p := n.packets[i]
		n.release(i)
		n.settle(p.segment, p.version, p.bit)
		n.conns[p.conn].acknowledged(&p)
		w = &n.ways[way]
	}
	if next := w.acks.first; next != 0 {
		n.schedule(n.packets[next].at, eventAck, way, 0)
	}
}

func (c *conn) acknowledged(p *packet) {
	c.measure(c.net.now - p.sent)
	c.progress, c.backoff = c.net.now, 1
	c.over(p.number)
	c.count(int64(p.bytes), p.marked)
	if p.number >= c.windowEnd {
		c.endWindow()
	}
	late := int64(reorder)
	if c.net.spray {
		late = reorderSprayed
	}
	if c.lose(p.number - late) {
		c.cut(p.number)
	}
	c.forget()
	c.offer()
	c.reuse()
}

// over says that an attempt is no longer in flight. It reports whether it was.
func (c *conn) over(number int64) bool {
	if number < c.first || c.sent[number-c.first].over {
		return false
	}
	a := &c.sent[number-c.first]
	a.over = true
	c.inFlight -= int64(a.bytes)
	return true
}

// lose counts attempts before a number as lost, and reports whether there were any.
func (c *conn) lose(before int64) (any bool) {
	for k := c.oldest; k < before; k++ {
		if c.over(k) {
			c.resend = append(c.resend, c.sent[k-c.first])
			any = true
		}
	}
	return any
}

// forget drops the oldest attempts that are over. They are moved out when they are half of
// the slice, so that it is used again.
func (c *conn) forget() {
	for c.oldest < c.number && c.sent[c.oldest-c.first].over {
		c.oldest++
	}
	if k := int(c.oldest - c.first); 2*k >= len(c.sent) {
		c.sent = c.sent[:copy(c.sent, c.sent[k:])]
		c.first = c.oldest
	}
}

// count grows the window and counts marks.
func (c *conn) count(bytes int64, marked bool) {
	c.ackedB += bytes
	if marked {
		c.markedB += bytes
		c.slowStart = false
	}
	if c.slowStart {
		c.window = min(c.window+bytes, c.net.top.Window)
	}
}

// endWindow adapts the window to the marks of the last.
func (c *conn) endWindow() {
	part := float64(c.markedB) / float64(c.ackedB)
	c.alpha += (part - c.alpha) / 16
	packet := c.net.top.Payload + c.net.top.Header
	switch {
	case c.markedB > 0:
		c.window = max(packet, int64(float64(c.window)*(1-c.alpha/2)))
	case !c.slowStart:
		c.window = min(c.window+packet, c.net.top.Window)
	}
	c.ackedB, c.markedB, c.windowEnd = 0, 0, c.number
}

// cut halves the window, once per window.
func (c *conn) cut(number int64) {
	if number < c.cutUntil {
		return
	}
	c.cutUntil, c.slowStart = c.number, false
	c.window = max(c.net.top.Payload+c.net.top.Header, c.window/2)
}

// measure takes a round-trip time into the estimates of RFC 6298.
func (c *conn) measure(rtt Time) {
	if c.srtt == 0 {
		c.srtt, c.rttvar = rtt, rtt/2
		return
	}
	c.rttvar += (max(rtt-c.srtt, c.srtt-rtt) - c.rttvar) / 4
	c.srtt += (rtt - c.srtt) / 8
}

func (c *conn) patience() Time { return c.backoff * max(minTimeout, c.srtt+4*c.rttvar) }

// setTimer makes sure that losses are noticed. Where switches never drop there are none.
func (c *conn) setTimer() {
	if !c.timerSet && c.net.top.Buffer > 0 {
		c.timerSet = true
		c.net.schedule(c.progress+c.patience(), eventTimeout, c.id, 0)
	}
}

// timeout sends everything again when nothing was acknowledged for too long.
func (c *conn) timeout() {
	c.timerSet = false
	if c.inFlight == 0 {
		c.reuse()
		return
	}
	if c.progress+c.patience() <= c.net.now {
		c.lose(c.number)
		c.progress, c.slowStart = c.net.now, false
		c.window = c.net.top.Payload + c.net.top.Header
		c.backoff = min(2*c.backoff, 64)
		c.offer()
		return
	}
	c.setTimer()
}
