package wire

// numberSize is that of the widest numbers that are added: chunks begin between two.
const numberSize = 8

// place is where a chunk belongs. Transports that hold its bytes put them there; those that
// read them from somewhere read them into its space.
type place struct {
	receive *receive
	size    int
	offset  int64                           // of the chunk in its message
	into    []byte                          // nil: its bytes are not kept here
	add     func(into, part []byte)         // nil: bytes are written over what is there
	each    func(offset int64, part []byte) // is given the bytes; nil: they are dropped, if there is no into
	part    []byte                          // what was read, to be added or given
}

// at is the place of the chunk of h. What comes early is added when the receive is posted.
// REQUIRES: the inbox's mu held.
func (r *receive) at(h *header) place {
	part := extent{h.offset, h.offset + int64(h.chunk)}
	p := place{receive: r, size: h.chunk, offset: h.offset}
	switch {
	case r.dropped != nil || r.failed != nil:
	case r.call != nil && r.call.call.Each != nil:
		p.each = r.call.call.Each
	case r.early == nil || r.joined:
		p.into, p.add = r.into[part.lo:part.hi], r.add
	default:
		r.held = append(r.held, part)
		p.into = r.early[part.lo:part.hi]
	}
	return p
}

// direct reports whether bytes are read straight into the place.
func (p *place) direct() bool { return p.into != nil && p.add == nil }

// dropped reports whether the bytes are not wanted.
func (p *place) dropped() bool { return p.into == nil && p.each == nil && p.size > 0 }

// put fills the place from an offset on.
func (p *place) put(offset int, bytes []byte) {
	switch {
	case p.each != nil:
		p.each(p.offset+int64(offset), bytes)
	case p.into == nil:
	case p.add != nil:
		p.add(p.into[offset:offset+len(bytes)], bytes)
	default:
		copy(p.into[offset:], bytes)
	}
}

// space is where to read the chunk to.
func (in *Inbox) space(p *place) []byte {
	if p.direct() {
		return p.into
	}
	p.part = in.pool.take(p.size)
	return p.part
}

// settle puts what was read in its place, if it was not read there.
func (in *Inbox) settle(p *place, err error) {
	if p.part == nil {
		return
	}
	if err == nil {
		p.put(0, p.part)
	}
	in.pool.give(p.part)
}
