package collective

// Sums inside servers first, then between them, for ranks on servers of equally many
// each, one after the other. With n ranks, k on a server, and m bytes,
//
//	inside    reduce-scatter among the k of a server:  k-1 shares of m/k
//	between   all-reduce among ranks of one place:     2(n/k-1) shares of m/n
//	inside    all-gather among the k of a server:      k-1 shares of m/k
//
// Between two servers travel 2m·k/n each way, where direct has k times as much.
// Inside a server shares travel segment by segment, so that sums go on early; where
// segments are so small that messages count for more, in one message.
// Sums are (x0 + … + xk-1) + (xk + …) + …, the same bits in every run.

// nestedFrom: algorithms from here on are nested, with as many servers as they are more.
const nestedFrom Algorithm = 256

// joinedTo is up to where segments take less time than their messages would: 1.2 us at
// 3.6 GB/s.
const joinedTo = 4 << 10

// Among is Ordered for ranks on several servers: ranks of a server follow each other,
// and every server has equally many.
func Among(servers int) Algorithm {
	if servers < 2 {
		return Ordered
	}
	return nestedFrom + Algorithm(servers)
}

// nestIn chooses for n ranks on servers: what is small, or not on servers of several
// ranks each, is summed as if there were none.
func nestIn(alg Algorithm, n, bytes int) Algorithm {
	if servers := int(alg - nestedFrom); n%servers != 0 || n == servers || (n-1)*bytes <= wholeTo {
		return Choose(Ordered, n, bytes)
	}
	return alg
}

// nest is a nested sum under way. Rank place of server s ends up with the sum of
// segment (place, s); those of a place on all servers are its slab, one after the other.
type nest struct {
	*program
	servers, each int
	server, place int
	most          int  // pieces of the longest segment
	joined        bool // slabs travel inside servers in one message
	local, far    int  // scratch for what comes from this server, and from others
	sums          []int32
}

func (p *program) nested(servers int) {
	each := p.n / servers
	w := nest{program: p, servers: servers, each: each, server: p.rank / each, place: p.rank % each,
		most: pieces(p.longest(), p.n), joined: p.longest() <= joinedTo}
	w.local = p.reserve((each - 1) * slotBytes(w.slab(w.place).len()))
	w.far = p.reserve((servers - 1) * slotBytes(p.segment(w.own()).len()))
	w.ask()
	w.sumInside()
	w.askForSums()
	w.sumBetween()
	w.handOn()
}

// at is a server, counted from the next one on; the last is our own.
func (w *nest) at(d int) int { return (w.server + 1 + d) % w.servers }

func (w *nest) segmentOf(place, server int) int { return place*w.servers + server }

func (w *nest) own() int { return w.segmentOf(w.place, w.server) }

func (w *nest) rankOf(place, server int) int { return server*w.each + place }

func (w *nest) slab(place int) span {
	return span{data, w.cuts[place*w.servers], w.cuts[(place+1)*w.servers]}
}

// has reports whether a segment has a k-th piece.
func (w *nest) has(segment, k int) bool { return k < w.pieces(segment) }

// ask asks for our slab from our server and for our segment from others, and sends
// those of our server their slabs.
func (w *nest) ask() {
	for q := range w.each {
		if q == w.place {
			continue
		}
		w.inside(w.place, func(s span) { w.in = append(w.in, w.recv(w.rankOf(q, w.server), w.localPart(q, s))) })
	}
	for d := range w.servers - 1 {
		for k := range w.pieces(w.own()) {
			w.back = append(w.back, w.recv(w.rankOf(w.place, w.at(d)), w.farPart(w.at(d), k)))
		}
	}
	for e := 1; e < w.each; e++ {
		q := (w.place + e) % w.each
		w.inside(q, func(s span) { w.out = append(w.out, w.send(w.rankOf(q, w.server), s)) })
	}
}

// parts goes through the pieces of a slab, other servers' first.
func (w *nest) parts(place int, f func(segment, k int)) {
	for k := range w.most {
		for d := range w.servers {
			if s := w.segmentOf(place, w.at(d)); w.has(s, k) {
				f(s, k)
			}
		}
	}
}

// inside goes through what travels of a slab inside its server: all of it, or pieces.
func (w *nest) inside(place int, f func(s span)) {
	if w.joined {
		f(w.slab(place))
		return
	}
	w.parts(place, func(segment, k int) { f(w.piece(segment, k)) })
}

// localPart is where a span of our slab lies that place q of our server sent.
func (w *nest) localPart(q int, s span) span {
	mine := w.slab(w.place)
	lo := w.local + before(q, w.place)*slotBytes(mine.len()) - mine.lo
	return span{scratch, lo + s.lo, lo + s.hi}
}

// farPart is where the k-th piece of our segment lies that another server sent.
func (w *nest) farPart(server, k int) span {
	mine := w.segment(w.own())
	lo := w.far + before(server, w.server)*slotBytes(mine.len()) - mine.lo
	s := w.piece(w.own(), k)
	return span{scratch, lo + s.lo, lo + s.hi}
}

// before is the place of q among all but one.
func before(q, but int) int {
	if q > but {
		return q - 1
	}
	return q
}

// sumInside reduces our slab over our server. What other servers go on with leaves.
func (w *nest) sumInside() {
	pieces, at := len(w.in)/(w.each-1), 0
	sum := func(s span) {
		nth := at
		at++
		w.sumOf(s, w.place, w.each, func(q int) (span, int32) {
			return w.localPart(q, s), w.in[before(q, w.place)*pieces+nth]
		})
	}
	if w.joined {
		sum(w.slab(w.place))
	}
	w.parts(w.place, func(segment, k int) {
		own, op := w.piece(segment, k), int32(none)
		if !w.joined {
			sum(own)
		}
		if segment != w.own() {
			op = w.send(w.rankOf(w.place, segment-w.place*w.servers), own)
		}
		w.sums = append(w.sums, op)
	})
}

// askForSums asks for the sums of all other segments, each in its place as soon as
// what was there has left: of our slab from other servers, of other slabs from ours.
func (w *nest) askForSums() {
	at := 0
	w.parts(w.place, func(segment, k int) {
		if left := w.sums[at]; segment != w.own() {
			w.wait(left)
			w.sums[at] = w.recv(w.rankOf(w.place, segment-w.place*w.servers), w.piece(segment, k))
		}
		at++
	})
	for _, op := range w.out {
		w.wait(op)
	}
	for e := 1; e < w.each; e++ {
		q := (w.place + e) % w.each
		if w.joined {
			w.recv(w.rankOf(q, w.server), w.slab(q))
			continue
		}
		for k := range w.pieces(w.segmentOf(q, w.server)) {
			w.recv(w.rankOf(q, w.server), w.piece(w.segmentOf(q, w.server), k))
		}
		w.parts(q, func(segment, k int) {
			if segment != w.segmentOf(q, w.server) {
				w.recv(w.rankOf(q, w.server), w.piece(segment, k))
			}
		})
	}
}

// sumBetween reduces our segment over the servers and sends the sum to all who go on
// with it.
func (w *nest) sumBetween() {
	count := w.pieces(w.own())
	for k := range count {
		own := w.piece(w.own(), k)
		w.sumOf(own, w.server, w.servers, func(s int) (span, int32) {
			d := (s - w.server - 1 + w.servers) % w.servers
			return w.farPart(s, k), w.back[d*count+k]
		})
		for d := range w.servers - 1 {
			w.send(w.rankOf(w.place, w.at(d)), own)
		}
		if !w.joined {
			w.toServer(own)
		}
	}
}

// handOn sends our server the sums that others made of our slab.
func (w *nest) handOn() {
	at := 0
	w.parts(w.place, func(segment, k int) {
		if segment != w.own() {
			w.wait(w.sums[at])
			if !w.joined {
				w.toServer(w.piece(segment, k))
			}
		}
		at++
	})
	if w.joined {
		w.toServer(w.slab(w.place))
	}
}

func (w *nest) toServer(s span) {
	for e := 1; e < w.each; e++ {
		w.send(w.rankOf((w.place+e)%w.each, w.server), s)
	}
}
