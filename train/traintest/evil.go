package traintest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/partition"
	"starling/train"
	"starling/wire"
)

// Evil is how a peer that is authenticated misbehaves: from some frame on it changes its own, which were valid, now and
// then. It is drawn from a seed.
type Evil struct {
	Rank int
	How  string

	mu     sync.Mutex
	rand   *rand.Rand
	after  int // frames that go out as they are
	every  int // of the others, one is changed, about
	frames []frame
	did    []string
}

// hows are the ways.
var hows = []string{"mutates", "mutates", "mutates headers", "truncates", "replays", "delays", "reorders"}

// NewEvil draws one among n workers.
func NewEvil(seed uint64, n int) *Evil {
	r := rand.New(rand.NewPCG(seed, 1))
	return &Evil{Rank: r.IntN(n), How: hows[r.IntN(len(hows))], rand: r, after: r.IntN(1 << r.IntN(10)),
		every: 1 + r.IntN(20)}
}

func (e *Evil) String() string {
	return fmt.Sprintf("worker %d, which %s (%s)", e.Rank, e.How, strings.Join(e.did, "; "))
}

// change changes a frame of the evil peer.
func (e *Evil) change(f frame, deliver func(frame)) {
	for _, out := range e.outgoing(f) {
		deliver(out)
	}
}

// outgoing is what leaves in place of a frame.
func (e *Evil) outgoing(f frame) []frame {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.From != e.Rank {
		return []frame{f}
	}
	if e.after--; e.after >= 0 || e.rand.IntN(e.every) > 0 || len(e.did) > 3 {
		return e.remember(f)
	}
	e.did = append(e.did, fmt.Sprintf("frame %d, %v %v of %d bytes to %d", f.Frame, f.Kind, f.Key, len(f.body), f.To))
	switch e.How {
	case "mutates":
		e.mutate(f.body)
	case "mutates headers":
		e.mutateHeader(&f.Header)
	case "truncates":
		f.body = f.body[:e.rand.IntN(len(f.body)+1)]
		f.Chunk, f.Length = len(f.body), f.Offset+int64(len(f.body))
	case "replays":
		return append([]frame{f}, e.earlier(f)...)
	case "delays":
		time.Sleep(time.Duration(e.rand.IntN(30)) * time.Millisecond)
		if e.rand.IntN(3) == 0 {
			return nil // for ever
		}
	case "reorders":
		if len(e.frames) > 0 && e.frames[0].To == f.To {
			return []frame{f, e.frames[0]}
		}
	}
	return e.remember(f)
}

// remember keeps a frame for later.
func (e *Evil) remember(f frame) []frame {
	if !f.Frame.HasBody() || len(f.body) > 1<<16 {
		return []frame{f}
	}
	if e.frames = append(e.frames, f); len(e.frames) > 50 {
		e.frames = e.frames[1:]
	}
	return []frame{f}
}

// earlier is a frame to the same peer that was sent before, under its own number or a new one.
func (e *Evil) earlier(f frame) []frame {
	for _, i := range e.rand.Perm(len(e.frames)) {
		if old := e.frames[i]; old.To == f.To {
			old.body = slices.Clone(old.body)
			if e.rand.IntN(2) == 0 {
				old.Number, old.Key = f.Number+1, f.Key
				old.Key.Step += uint32(e.rand.IntN(3))
			}
			return []frame{old}
		}
	}
	return nil
}

// mutate changes bytes, or numbers.
func (e *Evil) mutate(b []byte) {
	for range 1 + e.rand.IntN(4) {
		if len(b) == 0 {
			return
		}
		at := e.rand.IntN(len(b))
		switch e.rand.IntN(4) {
		case 0:
			copy(b[at&^3:], []byte{255, 255, 255, byte(e.rand.IntN(256))})
		case 1:
			clear(b[at:min(len(b), at+8)])
		default:
			b[at] ^= 1 << e.rand.IntN(8)
		}
	}
}

// mutateHeader changes a field.
func (e *Evil) mutateHeader(h *wire.Header) {
	number := func() uint32 { return e.rand.Uint32() >> e.rand.IntN(32) }
	switch e.rand.IntN(9) {
	case 0:
		h.Length = int64(number()) << e.rand.IntN(6)
	case 1:
		h.Offset = int64(number())
	case 2:
		h.Key.Step = number()
	case 3:
		h.Service = uint16(number())
	case 4:
		h.Limit = number()
	case 5:
		h.Number = number()
	case 6:
		h.Kind = wire.Kind(e.rand.IntN(12))
	case 7:
		h.Frame = wire.FrameType(e.rand.IntN(13))
	default:
		h.Key.Coflow.Epoch, h.Key.Coflow.Layer = number(), int16(number())
	}
}

// evilBytes is what workers beside an evil peer may take.
const evilBytes = 200 << 20

// EvilPeer trains beside a peer that misbehaves. Every other worker ends, in a deadline's time and in little memory:
// well, where nothing can be noticed, or with an error. It returns how, in a word.
func EvilPeer(t *testing.T, seed uint64, parts []*partition.Part, o train.Options) (outcome string) {
	t.Helper()
	e, opt := NewEvil(seed, len(parts)), wire.DefaultOptions()
	opt.Timeout = time.Second
	ends := framed(len(parts), opt, e.change)
	errs := make([]error, len(parts))
	Each(len(parts), func(k int) {
		defer func() {
			if r := recover(); r != nil {
				errs[k] = fmt.Errorf("it panicked: %v\n%s", r, debug.Stack())
				ends[k].Fail(errs[k])
			}
		}()
		_, errs[k] = Work(parts[k], ends[k], Ref, o, nil)
	})
	Close(ends)
	outcome = "well"
	for k, err := range errs {
		if k == e.Rank || err == nil {
			continue
		}
		if outcome = e.blamed(err); outcome == "" {
			t.Errorf("seed %d, %s beside %v: worker %d ended with %v", seed, o.Strategy.Name(), e, k, err)
		}
	}
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.Sys > evilBytes {
		t.Fatalf("seed %d, %s beside %v: %d MiB of memory", seed, o.Strategy.Name(), e, m.Sys>>20)
	}
	return outcome
}

// blamed is how an error of another worker came about: it names the peer, or the worker has waited for one that waits
// for the peer, of which the coordinator of a run finds the end (cluster.WhoWaits). Empty: neither.
func (e *Evil) blamed(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "panicked"):
	case strings.Contains(text, fmt.Sprint("rank ", e.Rank)), strings.Contains(text, fmt.Sprint("worker ", e.Rank)):
		return "named"
	case strings.Contains(text, " waited "):
		return "waited"
	case strings.Contains(text, "not served any more"): // the peer gave one worker another sum, by which it has ended
		return "misled"
	case strings.Contains(text, "training has diverged"): // rows that it changed are numbers like any others
		return "misled"
	}
	return ""
}
