package wire

// numberSize is the size of the widest numbers that are added: chunks begin between two.
const numberSize = 8

// Place is where a chunk belongs. Transports that hold its bytes put them there; those that
// read them from somewhere read them into its space.
type Place struct {
	receive *receive
	size    int
	offset  int64                           // of the chunk in its message
	into    []byte                          // nil: its bytes are not kept here
	add     func(into, part []byte)         // nil: bytes are written over what is there
	each    func(offset int64, part []byte) // is given the bytes; nil: they are dropped, if there is no into
	part    []byte                          // what was read, to be added or given
}

// at is the place of the chunk of h. What comes early is added when the receive is posted.
// REQUIRES: mu held.
func (in *Inbox) at(r *receive, h *Header) Place {
	end := h.Offset + int64(h.Chunk)
	p := Place{receive: r, size: h.Chunk, offset: h.Offset}
	switch {
	case r.dropped != nil || r.failed != nil:
	case r.call != nil && r.call.call.Each != nil:
		p.each = r.call.call.Each
	case r.request != nil:
		p.into = r.request[h.Offset:end]
	case r.early && !r.joined:
		p.into = in.pool.take(h.Chunk)
		r.held = append(r.held, extent{h.Offset, p.into})
	default:
		p.into, p.add = r.into[h.Offset:end], r.add
	}
	return p
}

// Buffer is where bytes are read to that need no Put; nil: they do.
func (p *Place) Buffer() []byte {
	if p.add != nil {
		return nil
	}
	return p.into
}

// Dropped reports whether the bytes are not wanted.
func (p *Place) Dropped() bool { return p.into == nil && p.each == nil && p.size > 0 }

// Put fills the place from an offset on.
func (p *Place) Put(offset int, bytes []byte) {
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

// Space is where to read the chunk to.
func (in *Inbox) Space(p *Place) []byte {
	if into := p.Buffer(); into != nil {
		return into
	}
	p.part = in.pool.take(p.size)
	return p.part
}

// settle puts what was read in its place, if it was not read there.
func (in *Inbox) settle(p *Place, err error) {
	if p.part == nil {
		return
	}
	if err == nil {
		p.Put(0, p.part)
	}
	in.pool.give(p.part)
}
