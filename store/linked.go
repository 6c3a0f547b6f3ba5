package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"starling/coflow"
	"starling/wire"
)

// The owner of a vertex says which other vertices are no negatives for it, since it knows all of its edges:
//
//	check pairs   method byte, [n] of (kept, other uint32) → [n] uint8, 1 where there is an edge
const (
	checkService = "check pairs"
	checkWidth   = 8
)

// Checked is a pair that may be an edge: Kept by number in the partition, Other by id in the dataset.
type Checked struct{ Kept, Other uint32 }

// append writes it to a request.
func (c Checked) append(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, c.Kept), c.Other)
}

// parseChecks reads a request: the method, and what append wrote.
func parseChecks(b []byte) (method int, list []Checked, err error) {
	if len(b)%checkWidth != 1 {
		return 0, nil, fmt.Errorf("a request of %d bytes", len(b))
	}
	for e := range slices.Chunk(b[1:], checkWidth) {
		list = append(list, Checked{binary.LittleEndian.Uint32(e), binary.LittleEndian.Uint32(e[4:])})
	}
	return int(b[0]), list, nil
}

// ServeChecks has this worker say what its vertices are linked with, by methods that are known by their place; each
// takes pairs as Checked has them. All workers call it.
func (s *Store) ServeChecks(linked ...func(kept, other uint32) bool) error {
	s.linked = linked
	return s.serve(wire.Service{Name: checkService, MaxRequest: maxRequest, MaxResponse: maxRequest, Handlers: 2},
		func(_ context.Context, r *wire.Request) (wire.Response, error) {
			method, list, err := parseChecks(r.Body)
			if err != nil {
				return wire.Response{}, err
			}
			answer, err := s.checkOwn(method, list)
			return wire.Response{Kind: wire.Topology, Body: answer}, err
		})
}

// checkOwn answers for vertices of this worker.
func (s *Store) checkOwn(method int, list []Checked) ([]byte, error) {
	own, out := s.own(), make([]byte, len(list))
	for i, c := range list {
		if method >= len(s.linked) || c.Kept-own.first >= uint32(own.part.Core()) || int64(c.Other) >= s.Book.Nodes {
			return nil, fmt.Errorf("a check of vertices %d and %d by method %d", c.Kept, c.Other, method)
		}
		if s.linked[method](c.Kept, c.Other) {
			out[i] = 1
		}
	}
	return out, nil
}

// Linked says of each pair whether it is an edge, as the owner of its kept vertex does by one of its methods.
func (s *Store) Linked(ctx context.Context, id coflow.ID, method int, list []Checked) ([]bool, error) {
	kept, out := make([]uint32, len(list)), make([]bool, len(list))
	for i := range list {
		kept[i] = list[i].Kept
	}
	var by split
	s.split(&by, s.Book.Offsets, kept)
	calls := s.newCalls(checkService, "checking pairs at")
	err := s.remoteFirst(&by, s.isOwn, func(part int, places []uint32) error {
		for some := range slices.Chunk(places, (maxRequest-1)/checkWidth) {
			request := append(make([]byte, 0, 1+len(some)*checkWidth), byte(method))
			for _, i := range some {
				request = list[i].append(request)
			}
			calls.send(id, part, some, request, len(some))
		}
		return nil
	}, func(_ int, places []uint32) error {
		mine := make([]Checked, len(places))
		for k, i := range places {
			mine[k] = list[i]
		}
		answer, err := s.checkOwn(method, mine)
		if err != nil {
			return err
		}
		return takeChecks(out, places, answer)
	})
	if err = errors.Join(err, calls.wait(ctx)); err != nil {
		return nil, err
	}
	for _, c := range calls.list {
		if err := takeChecks(out, c.places, c.body); err != nil {
			return nil, fmt.Errorf("checking pairs at worker %d: %w", c.part, err)
		}
	}
	return out, nil
}

// takeChecks reads an answer about the pairs at places.
func takeChecks(out []bool, places []uint32, answer []byte) error {
	if len(answer) != len(places) {
		return fmt.Errorf("%d answers, expected %d", len(answer), len(places))
	}
	for k, i := range places {
		if answer[k] > 1 {
			return fmt.Errorf("an answer of %d, expected 0 or 1", answer[k])
		}
		out[i] = answer[k] == 1
	}
	return nil
}
