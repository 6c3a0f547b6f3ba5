package exchange

import (
	"slices"
	"sync"
	"time"

	"starling/event"
	"starling/tensor"
	"starling/wire"
)

// ring is how whole blocks travel: each from worker to worker, in pieces, so that a worker
// passes a piece on while the next arrives (the ring-based pipelined broadcast of SANCUS
// §4.3.2). Its path goes through the owner's server first, then through one server after
// the other:
//
//	owner ─▶ rest of its server ═▶ a server ═▶ … ═▶ the last server
//
// so that a block crosses each link between servers once, however many workers are behind
// it. Gradients of a block come back the same way, and each worker adds its own to them:
// they cross once too.
type ring struct {
	rank  int
	paths [][]int // by owner: all ranks, it first
	place [][]int // by owner and rank: where the rank is on the path
	size  []int   // rows of blocks
}

func newRing(w *Worker) *ring {
	n := w.End.Size()
	r := &ring{rank: w.End.Rank(), place: make([][]int, n)}
	for owner := range n {
		path := ringPath(owner, n, max(w.Part.Book.Servers, 1))
		r.paths, r.place[owner] = append(r.paths, path), make([]int, n)
		for i, q := range path {
			r.place[owner][q] = i
		}
		r.size = append(r.size, int(w.Part.Book.Size(owner)))
	}
	return r
}

// ringPath is the ranks from an owner on, the ranks of a server together. In other servers
// owners of one server begin with different ranks.
func ringPath(owner, ranks, servers int) (path []int) {
	each := ranks / servers
	home, at := owner/each, owner%each
	for s := range servers {
		for i := range each {
			path = append(path, (home+s)%servers*each+(at+i)%each)
		}
	}
	return path
}

// before and after are this worker's neighbours on the path of a block; -1: none.
func (r *ring) before(owner int) int { return r.at(owner, r.place[owner][r.rank]-1) }
func (r *ring) after(owner int) int  { return r.at(owner, r.place[owner][r.rank]+1) }

func (r *ring) at(owner, place int) int {
	if path := r.paths[owner]; place >= 0 && place < len(path) {
		return path[place]
	}
	return -1
}

// rowsTo is how many rows this worker sends a peer if some of the blocks travel: forward
// to the next on their paths, backward to the one before.
func (r *ring) rowsTo(peer int, backward bool, travels func(owner int) bool) (rows int64) {
	for owner, size := range r.size {
		to := r.after(owner)
		if backward {
			to = r.before(owner)
		}
		if to == peer && travels(owner) {
			rows += int64(size)
		}
	}
	return rows
}

const (
	// ringPiece is the bytes below which a piece costs more than it saves.
	ringPiece = 128 << 10
	// ringPieces is how many pieces a block has at most.
	ringPieces = 32
)

// eachPiece calls f for the pieces of a block of rows, lo to hi, and their numbers. All
// workers cut alike.
func eachPiece(rows, cols int, t tensor.DType, f func(number, lo, hi int)) {
	each := max((rows+ringPieces-1)/ringPieces, ringPiece/max(cols*t.Size(), 1), 1)
	for number, lo := 0, 0; lo < rows; number, lo = number+1, lo+each {
		f(number, lo, min(lo+each, rows))
	}
}

// pieceKey is the key of a piece of a block.
func (x *Transfer) pieceKey(owner, number int) wire.Key {
	key := x.key
	key.Step += FreeSteps * uint32(1+owner*ringPieces+number)
	return key
}

// Broadcast is an exchange in which the blocks of some owners travel: Leave lets the own
// one go, Receive asks for the others. Rows of other owners stay as they are in into.
func (b *Blocks) Broadcast(t Tag, h *Halo, into, src tensor.Matrix) *Broadcast {
	return &Broadcast{Transfer: b.Transfer(t, into, src), ring: b.ring, halo: h}
}

// Broadcast is blocks on their way around the ring.
type Broadcast struct {
	*Transfer
	ring   *ring
	halo   *Halo
	relays sync.WaitGroup
	mu     sync.Mutex // guards what relays send
	sent   []*wire.Pending
}

// Leave lets the own block go.
func (x *Broadcast) Leave() {
	next := x.ring.after(x.ring.rank)
	if next < 0 {
		return
	}
	eachPiece(x.Out.Rows, x.Out.Cols, x.Out.Type(), func(number, lo, hi int) {
		x.leaving = append(x.leaving,
			x.rows.W.End.Send(next, x.pieceKey(x.ring.rank, number), x.Tag.Kind, x.Bytes(lo, hi)))
	})
}

// Receive posts the receives of the blocks of some owners, and passes them on as they
// arrive, beside what the worker computes meanwhile.
func (x *Broadcast) Receive(travels []bool) {
	for owner := range x.ring.paths {
		if owner == x.ring.rank || !travels[owner] {
			continue
		}
		first := len(x.arriving)
		from, at := x.ring.before(owner), int(x.halo.HaloPtr[owner])
		var bytes [][]byte
		eachPiece(x.ring.size[owner], x.In.Cols, x.In.Type(), func(number, lo, hi int) {
			p := x.Ask(from, x.pieceKey(owner, number), at+lo, at+hi)
			x.arriving = append(x.arriving, p)
			bytes = append(bytes, x.arrivesAt(at+lo, at+hi))
		})
		if next := x.ring.after(owner); next >= 0 {
			arriving := x.arriving[first:len(x.arriving):len(x.arriving)]
			x.relays.Go(func() { x.relay(owner, next, arriving, bytes) })
		}
	}
}

// arrivesAt is where rows lo to hi of In arrive, after they were asked for.
func (x *Transfer) arrivesAt(lo, hi int) []byte {
	if x.inPlace(x.In) {
		return x.In.Slice(lo, hi).HostBytes()
	}
	return x.encodedIn.of(lo, hi)
}

// relay sends the pieces of a block to the next worker, each as it arrives, in the form
// it arrived in.
func (x *Broadcast) relay(owner, next int, arriving []*wire.Pending, bytes [][]byte) {
	for number, p := range arriving {
		if <-p.Done(); p.Err() != nil {
			return // which the worker meets too
		}
		piece := bytes[number]
		if x.sparse != nil && !x.rows.W.MemoryOnly {
			piece = piece[:p.Bytes()]
		}
		sent := x.rows.W.End.Send(next, x.pieceKey(owner, number), x.Tag.Kind, piece)
		x.mu.Lock()
		x.sent = append(x.sent, sent)
		x.mu.Unlock()
	}
}

func (x *Broadcast) Wait() { x.Transfer.Wait() }

func (x *Broadcast) Done() {
	x.relays.Wait()
	x.leaving = append(x.leaving, x.sent...)
	x.Transfer.Done()
}

// Reduce begins to return the gradients of the blocks of some owners: use is called with
// the sum of all workers' for the own block, if that one travels.
func (b *Blocks) Reduce(t Tag, h *Halo, grads tensor.Matrix, travels []bool, use func(sum tensor.Matrix)) *Reduction {
	x := &Reduction{ring: b.ring, halo: h, travels: slices.Clone(travels), use: use,
		coming: make([][]*wire.Pending, len(travels))}
	rows := 0
	x.at = make([]int, len(travels))
	for owner, size := range b.ring.size {
		if x.at[owner] = rows; travels[owner] && b.ring.after(owner) >= 0 {
			rows += size
		}
	}
	in := b.W.Dev.Scratch(grads.Type(), rows, grads.Cols)
	x.Transfer = b.Transfer(t, in, grads)
	x.owned = append(x.owned, in)
	x.ask()
	x.last()
	return x
}

// Reduction is gradients on their way back around the ring.
type Reduction struct {
	*Transfer
	ring    *ring
	halo    *Halo
	travels []bool
	use     func(sum tensor.Matrix)
	at      []int             // where a block's gradients arrive
	coming  [][]*wire.Pending // by owner
}

// ask posts the receives.
func (x *Reduction) ask() {
	for owner := range x.ring.paths {
		from := x.ring.after(owner)
		if !x.travels[owner] || from < 0 {
			continue
		}
		eachPiece(x.ring.size[owner], x.In.Cols, x.In.Type(), func(number, lo, hi int) {
			p := x.Ask(from, x.pieceKey(owner, number), x.at[owner]+lo, x.at[owner]+hi)
			x.coming[owner] = append(x.coming[owner], p)
			x.arriving = append(x.arriving, p)
		})
	}
}

// last lets those gradients go that no other worker adds to before.
func (x *Reduction) last() {
	for owner := range x.ring.paths {
		if x.travels[owner] && owner != x.ring.rank && x.ring.after(owner) < 0 {
			eachPiece(x.ring.size[owner], x.Out.Cols, x.Out.Type(), func(number, lo, hi int) {
				x.send(owner, number, lo, hi)
			})
		}
	}
}

// send lets a piece of a block's gradients go to the worker before.
func (x *Reduction) send(owner, number, lo, hi int) {
	at := int(x.halo.HaloPtr[owner])
	x.leaving = append(x.leaving, x.rows.W.End.Send(x.ring.before(owner), x.pieceKey(owner, number), x.Tag.Kind,
		x.Bytes(at+lo, at+hi)))
}

// Wait adds what this worker has for a block to what arrives, and sends it on. It goes
// through blocks from those it is farthest from: these wait for the fewest others, so that
// no two workers wait for each other.
func (x *Reduction) Wait() {
	waiting := x.rows.W.Now()
	owners := make([]int, len(x.ring.paths))
	for owner := range owners {
		owners[owner] = owner
	}
	slices.SortStableFunc(owners, func(a, b int) int {
		return x.ring.place[b][x.ring.rank] - x.ring.place[a][x.ring.rank]
	})
	for _, owner := range owners { // the own block is the last: its place is 0
		if x.rows.Err() == nil && len(x.coming[owner]) > 0 {
			x.add(owner)
		}
	}
	x.report(waiting)
}

// add takes in the gradients of a block, piece by piece: of the own block the sum of all
// workers', of others those to which this worker adds.
func (x *Reduction) add(owner int) {
	dev, w, own := x.rows.W.Dev, x.rows.W, owner == x.ring.rank
	at := int(x.halo.HaloPtr[owner])
	eachPiece(x.ring.size[owner], x.In.Cols, x.In.Type(), func(number, lo, hi int) {
		p := x.coming[owner][number]
		if x.rows.Err() != nil {
			return
		}
		if err := p.Wait(w.Ctx); err != nil {
			x.rows.Fail(err)
			w.End.Fail(err) // the others end too, and no buffer is written to any more
			return
		}
		in := x.In.Slice(x.at[owner]+lo, x.at[owner]+hi)
		x.Decode(x.at[owner]+lo, x.at[owner]+hi, p)
		if !own {
			mine := x.Out.Slice(at+lo, at+hi)
			dev.Combine(mine, 1, mine, 1, in)
			x.send(owner, number, lo, hi)
		}
	})
	if own {
		x.use(x.In.Slice(x.at[owner], x.at[owner]+x.ring.size[owner]))
	}
}

// report emits how long gradients travelled, and how much of that was waited for.
func (x *Reduction) report(waiting time.Time) {
	if len(x.arriving) == 0 || x.rows.Err() != nil {
		return
	}
	last := x.start
	for _, p := range x.arriving {
		if p.At().After(last) {
			last = p.At()
		}
	}
	w := x.rows.W
	w.Events.On(event.Span{Name: x.Tag.String(), Kind: "transfer", Lane: 1, Start: x.start, Dur: last.Sub(x.start)})
	w.Events.On(event.Span{Name: x.Tag.String(), Kind: "wait", Start: waiting, Dur: w.Now().Sub(waiting)})
}

// Done gives buffers back. After a failure the rest is waited for: what is on its way would
// be written to them.
func (x *Reduction) Done() {
	for _, p := range x.arriving {
		if x.rows.Err() != nil {
			<-p.Done()
		}
	}
	x.Transfer.Done()
}
