package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"starling/coflow"
	"starling/sample"
	"starling/wire"
)

// Masks guide the draws of a worker wherever vertices are owned (sample.Guide): its owner draws the
// in-edges of a vertex by the masks of the worker that asks. Workers send owners once which
// vertices their masks are of, and then the masks, one byte m for m/255, of every version:
//
//	guide   0, missing, deviation float64, numbers [n] uint32 → nothing
//	guide   version > 0, missing, masks [n] bytes → nothing
//
// Version and missing are uint32; missing is the mask of other remote vertices. A request to draw
// names its version. Owners keep the last two: a worker that has sent a version asks for that one
// and, in batches that it began before, the one before it.
const (
	guideService = "guide"
	guideHead    = 8
	keptVersions = 2

	// LatestMasks draws by the last version that was sent.
	LatestMasks = 1<<32 - 1
)

// guide is the masks of one worker, at one owner.
type guide struct {
	deviation float64
	vertices  int
	place     []int32 // by vertex of the owner's part: its mask's, or one of the following

	mu struct {
		sync.Mutex
		versions [keptVersions]maskVersion // the newest first
	}
}

const (
	ofAsker  = -1 // the worker that asks owns it
	maskless = -2
)

type maskVersion struct {
	number  uint32
	missing byte
	masks   []byte
}

// newGuide finds the places of masks for a part's vertices, for a worker that owns another.
func (o *Owner) newGuide(asker int, deviation float64, vertices []uint32) *guide {
	place := make(map[uint32]int32, len(vertices))
	for i, v := range vertices {
		place[v] = int32(i)
	}
	g := &guide{deviation: deviation, vertices: len(vertices), place: make([]int32, len(o.part.IDs))}
	for v := range g.place {
		number := o.number(uint32(v))
		at, ok := place[number]
		switch {
		case o.part.Book.Owner(number) == asker:
			at = ofAsker
		case !ok:
			at = maskless
		}
		g.place[v] = at
	}
	return g
}

// add takes a version in.
func (g *guide) add(v maskVersion) error {
	if len(v.masks) != g.vertices || v.number == 0 {
		return fmt.Errorf("version %d of masks has %d of them, expected %d", v.number, len(v.masks), g.vertices)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.number != g.mu.versions[0].number {
		copy(g.mu.versions[1:], g.mu.versions[:])
	}
	g.mu.versions[0] = v
	return nil
}

// of is a version, for draws.
func (g *guide) of(number uint32) (*sample.Guide, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range g.mu.versions {
		if v.number > 0 && (v.number == number || number == LatestMasks) {
			return &sample.Guide{Deviation: g.deviation, Mask: func(source uint32) (float64, bool) {
				switch at := g.place[source]; at {
				case ofAsker:
					return 1, false
				case maskless:
					return float64(v.missing) / 255, true
				default:
					return float64(v.masks[at]) / 255, true
				}
			}}, nil
		}
	}
	return nil, fmt.Errorf("masks of version %d are not here; they are sent before draws ask for them", number)
}

// guides are the masks that draws of a part go by, by the worker that asks.
type guides struct {
	mu   sync.Mutex
	list map[int]*guide
}

func (g *guides) set(asker int, to *guide) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.list == nil {
		g.list = map[int]*guide{}
	}
	if g.list[asker] != nil {
		return fmt.Errorf("worker %d sends the vertices of its masks twice", asker)
	}
	g.list[asker] = to
	return nil
}

func (g *guides) of(asker int) (*guide, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.list[asker] == nil {
		return nil, fmt.Errorf("worker %d has not sent the vertices of its masks", asker)
	}
	return g.list[asker], nil
}

// guideFor is what a query's draws at a part prefer; nil: nothing.
func (o *Owner) guideFor(asker int, version uint32) (*sample.Guide, error) {
	if version == 0 {
		return nil, nil
	}
	g, err := o.guides.of(asker)
	if err != nil {
		return nil, err
	}
	return g.of(version)
}

// ServeGuides has draws of other workers go by their masks. All workers call it before any
// sends its masks.
func (s *Store) ServeGuides() error {
	return s.serve(wire.Service{Name: guideService, MaxRequest: s.mostGuide(), MaxResponse: maxRequest,
		Handlers: 2},
		s.serveGuide)
}

// mostGuide is the length of the longest message: masks are of remote vertices.
func (s *Store) mostGuide() int { return int(min(guideHead+8+4*s.Book.Nodes, maxResponse)) }

func (s *Store) serveGuide(_ context.Context, r *wire.Request) (wire.Response, error) {
	m, err := parseGuide(r.Body, s.Book.Nodes)
	if err == nil {
		err = s.own().takeGuide(r.From, m)
	}
	return wire.Response{Kind: wire.Topology}, err
}

// guideMessage is a version of masks, or with version 0 their vertices.
type guideMessage struct {
	version  uint32
	missing  byte
	masks    []byte
	deviates float64
	vertices []uint32
}

func (m *guideMessage) encode() []byte {
	put := binary.LittleEndian
	b := put.AppendUint32(make([]byte, 0, guideHead+8+len(m.masks)+4*len(m.vertices)), m.version)
	b = put.AppendUint32(b, uint32(m.missing))
	if m.version > 0 {
		return append(b, m.masks...)
	}
	return append(put.AppendUint64(b, math.Float64bits(m.deviates)), bytesOf(m.vertices)...)
}

// parseGuide reads what encode wrote, about vertices of a graph.
func parseGuide(b []byte, nodes int64) (*guideMessage, error) {
	if len(b) < guideHead {
		return nil, fmt.Errorf("masks in %d bytes", len(b))
	}
	m := &guideMessage{version: binary.LittleEndian.Uint32(b), missing: b[4]}
	rest := b[guideHead:]
	if m.version > 0 {
		m.masks = append([]byte(nil), rest...)
		return m, nil
	}
	if len(rest) < 8 || len(rest)%4 != 0 {
		return nil, fmt.Errorf("vertices of masks in %d bytes", len(b))
	}
	m.deviates, m.vertices = math.Float64frombits(binary.LittleEndian.Uint64(rest)), numbersOf(rest[8:])
	if !(m.deviates >= 0 && m.deviates <= 1) {
		return nil, fmt.Errorf("a deviation of %g, expected 0 to 1", m.deviates)
	}
	if err := below(m.vertices, nodes); err != nil {
		return nil, err
	}
	return m, nil
}

// takeGuide takes a worker's message in.
func (o *Owner) takeGuide(asker int, m *guideMessage) error {
	if m.version == 0 {
		return o.guides.set(asker, o.newGuide(asker, m.deviates, m.vertices))
	}
	g, err := o.guides.of(asker)
	if err != nil {
		return err
	}
	return g.add(maskVersion{m.version, m.missing, m.masks})
}

// GuideBy says which remote vertices this worker's masks are of, and the deviation of its draws.
func (s *Store) GuideBy(ctx context.Context, vertices []uint32, deviation float64) error {
	return s.sendGuide(ctx, &guideMessage{deviates: deviation, vertices: vertices})
}

// TellMasks gives a version of masks, in the order of GuideBy's vertices, to all owners. When it
// returns draws may ask for it.
func (s *Store) TellMasks(ctx context.Context, version uint32, masks []byte, missing byte) error {
	return s.sendGuide(ctx, &guideMessage{version: version, missing: missing, masks: masks})
}

// MaskBytes is what a version of masks takes on its way to an owner.
func (s *Store) MaskBytes(masks int) int { return guideHead + masks }

// sendGuide sends a message to the owners of all parts, and takes it in for those that are here.
func (s *Store) sendGuide(ctx context.Context, m *guideMessage) error {
	calls, body := s.newCalls(guideService, "sending masks to"), m.encode()
	for q := range s.here {
		if s.here[q] == nil {
			calls.send(guidesSent, q, nil, body, noReply)
		}
	}
	own, err := parseGuide(body, s.Book.Nodes)
	for _, o := range s.here {
		if o != nil && err == nil {
			err = o.takeGuide(s.Part.Meta.Part, own)
		}
	}
	return errors.Join(err, calls.wait(ctx))
}

var guidesSent = coflow.ID{Type: coflow.Bulk, Layer: -1, Batch: 2}
