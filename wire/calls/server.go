package calls

import (
	"fmt"
	"iter"
)

// Server has the calls of one peer as a server has seen them: requests of type R to services of type S.
type Server[S, R any] struct{ slots []serverSlot[S, R] }

type serverSlot[S, R any] struct {
	generation uint32
	request    *R   // nil: it has not come whole, or was answered
	arriving   *S   // nil: likewise, or there is the request
	cancelled  bool // the next, or the one that arrives
}

// age is how a number stands to the call of its slot that the server knows.
type age uint8

const (
	before age = iota // one that was answered
	now
	next
)

func (s *Server[S, R]) slot(number uint32) (*serverSlot[S, R], age, error) {
	at := int(number % Max)
	for len(s.slots) <= at {
		s.slots = append(s.slots, serverSlot[S, R]{})
	}
	slot := &s.slots[at]
	const generations = 1 << (32 - slotBits)
	switch ahead := (number>>slotBits - slot.generation) % generations; {
	case ahead == 0:
		return slot, now, nil
	case ahead == 1 && slot.request == nil && slot.arriving == nil:
		return slot, next, nil
	case ahead > generations/2:
		return slot, before, nil
	}
	return nil, 0, fmt.Errorf("call %d out of sequence", number)
}

// Check reports whether a call may begin.
func (s *Server[S, R]) Check(number uint32) error {
	_, age, err := s.slot(number)
	if err == nil && age != next {
		err = fmt.Errorf("call %d a second time", number)
	}
	return err
}

// Begin takes in that a request to a service begins to arrive.
// REQUIRES: Check has allowed the call.
func (s *Server[S, R]) Begin(number uint32, service *S) {
	slot := &s.slots[number%Max]
	slot.generation, slot.arriving = number>>slotBits, service
}

// Arrive takes in a request that is whole. It returns the service, and whether the call was cancelled meanwhile.
func (s *Server[S, R]) Arrive(number uint32, r *R) (service *S, cancelled bool) {
	slot := &s.slots[number%Max]
	service, cancelled = slot.arriving, slot.cancelled
	slot.request, slot.arriving, slot.cancelled = r, nil, false
	return service, cancelled
}

// End takes in that a call is about to be answered: its caller may make the next one when it has the answer.
func (s *Server[S, R]) End(number uint32) { s.slots[number%Max].request = nil }

// Cancel takes in that a caller does not wait for an answer any more, and returns the request, if that is whole and
// was not answered. A cancel may overtake its request, and be overtaken by the next.
func (s *Server[S, R]) Cancel(number uint32) (*R, error) {
	slot, age, err := s.slot(number)
	switch {
	case err != nil:
		return nil, err
	case age == before || age == now && slot.request == nil && slot.arriving == nil:
		return nil, nil // it was answered
	case slot.request == nil:
		slot.cancelled = true
	}
	return slot.request, nil
}

// Requests are those that are whole and were not answered.
func (s *Server[S, R]) Requests() iter.Seq[*R] {
	return func(yield func(*R) bool) {
		for i := range s.slots {
			if r := s.slots[i].request; r != nil && !yield(r) {
				return
			}
		}
	}
}
