package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"starling/coflow"
	"starling/rng"
	"starling/wire"
)

// question is asked of the owners of some vertices: an entry of equal length about each, which
// begins with the vertex's number, is answered by numbers, as many as answers says.
type question struct {
	service string
	head    byte // before the entries
	width   int  // of an entry
	entry   func(b []byte, i int) []byte
	answers func(i int) int
	take    func(i int, numbers []uint32)
	// own answers about vertices of this worker.
	own func(head byte, entries []byte) ([]uint32, error)
}

// ask asks about vertices, remote owners first, and waits.
func (s *Store) ask(ctx context.Context, id coflow.ID, q *question, vertices []uint32) (err error) {
	var by split
	s.split(&by, s.Book.Offsets, vertices)
	type call struct {
		part   int
		places []uint32
		reply  *wire.Reply
	}
	var calls []call
	entries := func(b []byte, places []uint32) []byte {
		for _, i := range places {
			b = q.entry(binary.LittleEndian.AppendUint32(b, vertices[i]), int(i))
		}
		return b
	}
	err = s.remoteFirst(&by, s.isOwn, func(part int, places []uint32) error {
		for some := range slices.Chunk(places, (maxRequest-1)/q.width) {
			request := entries(append(make([]byte, 0, 1+len(some)*q.width), q.head), some)
			s.traffic[part].requests.Add(int64(len(request)))
			calls = append(calls, call{part, some, s.end.Call(part, wire.Call{Service: q.service, Coflow: id,
				Kind: wire.Topology, Request: request})})
		}
		return nil
	}, func(part int, places []uint32) error {
		numbers, err := q.own(q.head, entries(nil, places))
		if err != nil {
			return err
		}
		return q.distribute(places, numbers)
	})
	for _, c := range calls {
		body, failed := c.reply.Wait(ctx)
		s.traffic[c.part].edges.Add(int64(len(body)))
		if failed == nil {
			failed = q.distribute(c.places, numbersOf(body))
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s of worker %d: %w", q.service, c.part, failed))
		}
	}
	return err
}

// distribute gives each place its answers.
func (q *question) distribute(places, numbers []uint32) error {
	for _, i := range places {
		n := q.answers(int(i))
		if n > len(numbers) {
			return fmt.Errorf("fewer answers than there were questions")
		}
		q.take(int(i), numbers[:n])
		numbers = numbers[n:]
	}
	if len(numbers) > 0 {
		return fmt.Errorf("%d answers too many", len(numbers))
	}
	return nil
}

// answer serves the questions of a service.
func (s *Store) answer(service string, width int, own func(head byte, entries []byte) ([]uint32, error)) error {
	stop, err := s.end.Serve(wire.Service{Name: service, MaxRequest: maxRequest, MaxResponse: maxResponse, Handlers: 2},
		func(_ context.Context, r *wire.Request) (wire.Response, error) {
			if len(r.Body)%width != 1 {
				return wire.Response{}, fmt.Errorf("a request of %d bytes", len(r.Body))
			}
			numbers, err := own(r.Body[0], r.Body[1:])
			return wire.Response{Kind: wire.Topology, Body: bytesOf(numbers)}, err
		})
	if err == nil {
		s.stops = append(s.stops, stop)
	}
	return err
}

// Negative asks for vertices that replace the end of a pair whose other end, Kept, stays: those
// of keys First to First+Count-1 folded into Key.
type Negative struct {
	Kept         uint32 // number in the partition
	Key          rng.Key
	First, Count int
}

const (
	negativeService = "draw negatives"
	negativeWidth   = 20
)

// ServeNegatives has this worker draw negatives for its vertices, by methods that are known by
// their place; draw gets and returns numbers in the partition. All workers call it.
func (s *Store) ServeNegatives(draws ...func(key rng.Key, kept uint32) uint32) error {
	s.negatives = func(method byte, entries []byte) (out []uint32, err error) {
		own := s.here[s.Part.Meta.Part]
		for e := range slices.Chunk(entries, negativeWidth) {
			kept, key := binary.LittleEndian.Uint32(e), rng.Key(binary.LittleEndian.Uint64(e[4:]))
			first, count := binary.LittleEndian.Uint32(e[12:]), binary.LittleEndian.Uint32(e[16:])
			if int(method) >= len(draws) || kept-own.first >= uint32(own.part.Core()) || count > maxRequest {
				return nil, fmt.Errorf("%d negatives of method %d for vertex %d", count, method, kept)
			}
			for k := range count {
				out = append(out, draws[method](key.Fold(uint64(first+k)), kept))
			}
		}
		return out, nil
	}
	return s.answer(negativeService, negativeWidth, s.negatives)
}

// Negatives draws negatives by a method of the owners of the ends that are kept, and gives those
// of each to take.
func (s *Store) Negatives(ctx context.Context, id coflow.ID, method int, list []Negative,
	take func(i int, numbers []uint32)) error {
	kept := make([]uint32, len(list))
	for i := range list {
		kept[i] = list[i].Kept
	}
	return s.ask(ctx, id, &question{service: negativeService, head: byte(method), width: negativeWidth,
		entry: func(b []byte, i int) []byte {
			b = binary.LittleEndian.AppendUint64(b, uint64(list[i].Key))
			b = binary.LittleEndian.AppendUint32(b, uint32(list[i].First))
			return binary.LittleEndian.AppendUint32(b, uint32(list[i].Count))
		},
		answers: func(i int) int { return list[i].Count }, take: take, own: s.negatives}, kept)
}
