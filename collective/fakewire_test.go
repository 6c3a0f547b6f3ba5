package collective

import (
	"bytes"
	"fmt"
	"math/rand/v2"
)

// fakeNet runs the machines of a whole cluster in one loop. Which machine goes on,
// which message is delivered and when a sender hears of it is drawn from a seed,
// so all orders and delays are possible and none takes time. It is unkind where
// the wire's contract allows it: what is sent is read as late as the sender may
// be told it has left, and what is received is spoilt before it comes.
type fakeNet struct {
	rng     *rand.Rand
	eager   bool // messages without a receive can leave
	jobs    []*fakeJob
	letters map[fakeKey]*fakeLetter
	open    []*fakeLetter // those that are not done on both ends
	sent    map[[2]int]Traffic

	ready   []*fakeJob    // those that can go on, at the moment
	movable []*fakeLetter // likewise
}

// fakeJob is the machine of one rank in one collective.
type fakeJob struct {
	m          *machine
	rank, call int
	blocked    bool
	waits      int32
	ended      bool
}

type fakeKey struct {
	call, from, to int
	nth            uint32
}

type fakeLetter struct {
	key            fakeKey
	from, to       *fakeJob
	sendOp, recvOp int32
	payload, into  []byte
	add            bool
	held           []byte // left the sender before anybody asked
}

func newFakeNet(seed uint64) *fakeNet {
	rng := rand.New(rand.NewPCG(seed, 7))
	return &fakeNet{rng: rng, eager: rng.IntN(2) == 0, letters: map[fakeKey]*fakeLetter{}, sent: map[[2]int]Traffic{}}
}

func (f *fakeNet) add(call int, m *machine) {
	m.load()
	if m.need > 0 {
		m.bufs = append(m.bufs, make([]byte, m.need))
	}
	f.jobs = append(f.jobs, &fakeJob{m: m, rank: m.rank, call: call})
}

// run until all have ended. An error is a deadlock, or a mistake of a program.
func (f *fakeNet) run() error {
	for {
		left := f.look()
		if left == 0 && len(f.open) == 0 {
			return nil
		}
		if len(f.ready)+len(f.movable) == 0 {
			return fmt.Errorf("deadlock: %d machines wait, %d messages have one end only", left, len(f.open))
		}
		if i := f.rng.IntN(len(f.ready) + len(f.movable)); i < len(f.ready) {
			if err := f.step(f.ready[i]); err != nil {
				return err
			}
		} else if err := f.move(f.movable[i-len(f.ready)]); err != nil {
			return err
		}
	}
}

// look finds what can go on: machines that do not wait; letters into the wire, if
// it is eager, or to who asked. It counts the machines that have not ended.
func (f *fakeNet) look() (left int) {
	f.ready, f.movable = f.ready[:0], f.movable[:0]
	for _, j := range f.jobs {
		if !j.ended {
			left++
		}
		if !j.ended && !j.blocked {
			f.ready = append(f.ready, j)
		}
	}
	for _, l := range f.open {
		if (l.from != nil && l.held == nil && f.eager) || (l.to != nil && (l.from != nil || l.held != nil)) {
			f.movable = append(f.movable, l)
		}
	}
	return left
}

// step lets a machine take one action.
func (f *fakeNet) step(j *fakeJob) error {
	in := j.m.next()
	switch in.verb {
	case wait:
		j.blocked, j.waits = true, in.op
	case end:
		j.ended = true
	case send:
		l := f.letter(fakeKey{j.call, j.rank, int(in.peer), in.nth})
		if l.from != nil {
			return fmt.Errorf("rank %d sends message %+v twice", j.rank, l.key)
		}
		l.from, l.sendOp, l.payload = j, in.op, j.m.bytes(in.a)
		t := f.sent[[2]int{j.rank, int(in.peer)}]
		t.add(1, in.a.len())
		f.sent[[2]int{j.rank, int(in.peer)}] = t
	case recv, recvAdd:
		l := f.letter(fakeKey{j.call, int(in.peer), j.rank, in.nth})
		if l.to != nil {
			return fmt.Errorf("rank %d asks for message %+v twice", j.rank, l.key)
		}
		l.to, l.recvOp, l.into, l.add = j, in.op, j.m.bytes(in.a), in.verb == recvAdd
		if !l.add {
			spoil(l.into)
		}
	}
	return nil
}

// spoil writes bytes that no sum survives (all ones is a NaN).
func spoil(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, spoilt):]
	}
}

var spoilt = bytes.Repeat([]byte{0xff}, 4096)

func (f *fakeNet) letter(k fakeKey) *fakeLetter {
	l := f.letters[k]
	if l == nil {
		l = &fakeLetter{key: k}
		f.letters[k] = l
		f.open = append(f.open, l)
	}
	return l
}

// move takes a letter a step further: off the sender, or to the receiver.
func (f *fakeNet) move(l *fakeLetter) error {
	if l.from != nil && l.held == nil {
		l.held = bytes.Clone(l.payload)
		if l.held == nil {
			l.held = []byte{}
		}
		f.finish(l.from, l.sendOp)
		l.from = nil
		return nil
	}
	if len(l.held) != len(l.into) {
		return fmt.Errorf("message %+v has %d bytes, %d were asked for", l.key, len(l.held), len(l.into))
	}
	if l.add {
		l.to.m.sum(l.into, l.held)
	} else {
		copy(l.into, l.held)
	}
	f.finish(l.to, l.recvOp)
	for i := range f.open {
		if f.open[i] == l {
			f.open[i] = f.open[len(f.open)-1]
			f.open = f.open[:len(f.open)-1]
			break
		}
	}
	return nil
}

func (f *fakeNet) finish(j *fakeJob, op int32) {
	j.m.finish(op)
	if j.blocked && j.waits == op {
		j.blocked = false
	}
}
