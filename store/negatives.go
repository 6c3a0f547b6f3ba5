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

// The owner of the end of a pair that stays draws vertices that replace the other end:
//
//	draw negatives   method byte, [n] of (kept uint32, key uint64, first, count uint32) → numbers [Σ count] uint32
const (
	negativeService = "draw negatives"
	negativeWidth   = 20
	mostNegatives   = 1 << 22 // of a request
)

// Negative asks for vertices that replace the end of a pair whose other end, Kept, stays. They are drawn by Key, into
// which First to First+Count-1 are folded.
type Negative struct {
	Kept         uint32 // number in the partition
	Key          rng.Key
	First, Count int
}

// append writes it to a request.
func (n *Negative) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, n.Kept)
	b = binary.LittleEndian.AppendUint64(b, uint64(n.Key))
	b = binary.LittleEndian.AppendUint32(b, uint32(n.First))
	return binary.LittleEndian.AppendUint32(b, uint32(n.Count))
}

// parseNegatives reads a request: the method, and what append wrote.
func parseNegatives(b []byte) (method int, list []Negative, err error) {
	if len(b)%negativeWidth != 1 {
		return 0, nil, fmt.Errorf("a request of %d bytes", len(b))
	}
	all := 0
	for e := range slices.Chunk(b[1:], negativeWidth) {
		n := Negative{binary.LittleEndian.Uint32(e), rng.Key(binary.LittleEndian.Uint64(e[4:])),
			int(binary.LittleEndian.Uint32(e[12:])), int(binary.LittleEndian.Uint32(e[16:]))}
		if all += n.Count; all > mostNegatives {
			return 0, nil, fmt.Errorf("%d negatives at once, expected at most %d", all, mostNegatives)
		}
		list = append(list, n)
	}
	return int(b[0]), list, nil
}

// ServeNegatives has this worker draw negatives for its vertices, by methods that are known by
// their place; draw gets and returns numbers in the partition. All workers call it.
func (s *Store) ServeNegatives(draws ...func(key rng.Key, kept uint32) uint32) error {
	s.negatives = draws
	return s.serve(wire.Service{Name: negativeService, MaxRequest: maxRequest, MaxResponse: maxResponse, Handlers: 2},
		func(_ context.Context, r *wire.Request) (wire.Response, error) {
			method, list, err := parseNegatives(r.Body)
			if err != nil {
				return wire.Response{}, err
			}
			numbers, err := s.drawNegatives(method, list)
			return wire.Response{Kind: wire.Topology, Body: bytesOf(numbers)}, err
		})
}

// drawNegatives draws for vertices of this worker.
func (s *Store) drawNegatives(method int, list []Negative) (out []uint32, err error) {
	own := s.own()
	for _, n := range list {
		if method >= len(s.negatives) || n.Kept-own.first >= uint32(own.part.Core()) {
			return nil, fmt.Errorf("%d negatives of method %d for vertex %d", n.Count, method, n.Kept)
		}
		for k := range uint32(n.Count) {
			out = append(out, s.negatives[method](n.Key.Fold(uint64(uint32(n.First)+k)), n.Kept))
		}
	}
	return out, nil
}

// Negatives has the owners of the ends that are kept draw negatives by one of their methods, and gives
// take the negatives of each.
func (s *Store) Negatives(ctx context.Context, id coflow.ID, method int, list []Negative,
	take func(i int, numbers []uint32)) error {
	kept := make([]uint32, len(list))
	for i := range list {
		kept[i] = list[i].Kept
	}
	var by split
	s.split(&by, s.Book.Offsets, kept)
	calls := s.newCalls(negativeService, "drawing negatives at")
	err := s.remoteFirst(&by, s.isOwn, func(part int, places []uint32) error {
		for len(places) > 0 {
			some, count := places[:fitting(list, places)], 0
			request := append(make([]byte, 0, 1+len(some)*negativeWidth), byte(method))
			for _, i := range some {
				request = list[i].append(request)
				count += list[i].Count
			}
			calls.send(id, part, some, request, 4*count)
			places = places[len(some):]
		}
		return nil
	}, func(part int, places []uint32) error {
		mine := make([]Negative, len(places))
		for k, i := range places {
			mine[k] = list[i]
		}
		numbers, err := s.drawNegatives(method, mine)
		if err != nil {
			return err
		}
		return distribute(list, places, numbers, s.Book.Nodes, take)
	})
	if err = errors.Join(err, calls.wait(ctx)); err != nil {
		return err
	}
	for _, c := range calls.list {
		if err := distribute(list, c.places, numbersOf(c.body), s.Book.Nodes, take); err != nil {
			return fmt.Errorf("drawing negatives at worker %d: %w", c.part, err)
		}
	}
	return nil
}

// fitting is how many of the negatives at places, at least one, a request asks for.
func fitting(list []Negative, places []uint32) int {
	count := 0
	for k, i := range places {
		if count += list[i].Count; k > 0 && (count > mostNegatives || k == (maxRequest-1)/negativeWidth) {
			return k
		}
	}
	return len(places)
}

// distribute gives take the negatives of each place, which a reply has one after the other.
func distribute(list []Negative, places, numbers []uint32, nodes int64, take func(i int, numbers []uint32)) error {
	all := 0
	for _, i := range places {
		all += list[i].Count
	}
	if all != len(numbers) {
		return fmt.Errorf("%d negatives, expected %d", len(numbers), all)
	}
	if i := slices.IndexFunc(numbers, func(v uint32) bool { return int64(v) >= nodes }); i >= 0 {
		return fmt.Errorf("vertex %d of %d", numbers[i], nodes)
	}
	for _, i := range places {
		n := list[i].Count
		take(int(i), numbers[:n])
		numbers = numbers[n:]
	}
	return nil
}
