package wire

// numberSize is that of the widest numbers that are added: chunks begin between two.
const numberSize = 8

// place is where a chunk belongs. Who has its bytes puts them there; who reads them
// from somewhere reads them into its space.
type place struct {
	letter *letter
	into   []byte
	add    func(into, part []byte) // nil: it is written over what is there
	part   []byte                  // what is to be added
}

// at is the place of the chunk of h. What comes early is added when it is asked for.
// REQUIRES: the mailbox's mu held.
func (l *letter) at(h *header) place {
	part := extent{h.offset, h.offset + int64(h.chunk)}
	if l.early == nil || l.joined {
		return place{letter: l, into: l.into[part.lo:part.hi], add: l.add}
	}
	l.held = append(l.held, part)
	return place{letter: l, into: l.early[part.lo:part.hi]}
}

// put fills the place from an offset on.
func (p *place) put(offset int, bytes []byte) {
	into := p.into[offset : offset+len(bytes)]
	if p.add != nil {
		p.add(into, bytes)
		return
	}
	copy(into, bytes)
}

// space is where to read the chunk to.
func (b *mailbox) space(p *place) []byte {
	if p.add == nil {
		return p.into
	}
	p.part = b.spares.take(len(p.into))
	return p.part
}

// settle adds what was read, if it was and is to be added.
func (b *mailbox) settle(p *place, err error) {
	if p.part == nil {
		return
	}
	if err == nil {
		p.add(p.into, p.part)
	}
	b.spares.give(p.part)
}
