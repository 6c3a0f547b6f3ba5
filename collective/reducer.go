package collective

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"starling/tensor"
	"starling/wire"
)

// NoReducer: workers cannot sum on their devices; they do on the hosts.
type NoReducer struct{ Why string }

func (e *NoReducer) Error() string { return e.Why }

// JoinReducer has all workers agree whether their devices sum by themselves (tensor.Reducer), and join. All call it. It
// is a NoReducer on all of them where one cannot.
func JoinReducer(ctx context.Context, dev tensor.Device, end wire.Endpoint, within time.Duration) (tensor.Reducer,
	error) {
	r, mine := reducerOf(dev)
	cards, err := agree(ctx, end, stepReducers, mine)
	if err != nil {
		return nil, err
	}
	if err := distinct(cards); err != nil {
		return nil, err
	}
	name, err := nameReduction(ctx, r, end)
	if err != nil {
		return nil, err
	}
	joined := word{ok: true}
	if err := r.JoinReduction(name, end.Rank(), end.Size(), within); err != nil {
		joined = word{text: err.Error()}
	}
	if _, err := agree(ctx, end, stepJoined, joined); err != nil {
		r.LeaveReduction()
		return nil, err
	}
	return r, nil
}

// word is what a worker says: that it can, with something, or why not.
type word struct {
	ok   bool
	text string
}

func (w word) bytes() []byte {
	first := byte(0)
	if w.ok {
		first = 1
	}
	return append([]byte{first}, w.text[:min(len(w.text), mostHello-1)]...)
}

func reducerOf(dev tensor.Device) (tensor.Reducer, word) {
	r, ok := dev.(tensor.Reducer)
	if !ok {
		return nil, word{text: "it has no card"}
	}
	card, err := r.ReducerCard()
	if err != nil {
		return nil, word{text: err.Error()}
	}
	return r, word{true, string(card)}
}

// agree is what all workers say, by rank, unless one cannot.
func agree(ctx context.Context, end wire.Endpoint, step uint32, mine word) ([]string, error) {
	theirs, err := tell(ctx, end, step, all, func(int) []byte { return mine.bytes() })
	if err != nil {
		return nil, err
	}
	theirs[end.Rank()] = mine.bytes()
	said, reasons, known := make([]string, len(theirs)), []string(nil), map[string]bool{}
	for q, b := range theirs {
		said[q] = string(b[min(1, len(b)):])
		if (len(b) == 0 || b[0] != 1) && !known[said[q]] {
			known[said[q]] = true
			reasons = append(reasons, fmt.Sprintf("worker %d cannot: %s", q, said[q]))
		}
	}
	if reasons != nil {
		return nil, &NoReducer{strings.Join(reasons, "; ")}
	}
	return said, nil
}

// distinct refuses two workers on one card.
func distinct(cards []string) error {
	first := map[string]int{}
	for q, c := range cards {
		if p, ok := first[c]; ok {
			return &NoReducer{fmt.Sprintf("workers %d and %d are on one card, and each needs its own", p, q)}
		}
		first[c] = q
	}
	return nil
}

// nameReduction is the group's name, which worker 0 makes.
func nameReduction(ctx context.Context, r tensor.Reducer, end wire.Endpoint) ([]byte, error) {
	mine := word{ok: true}
	if end.Rank() == 0 {
		name, err := r.NewReduction()
		if mine.text = string(name); err != nil {
			mine = word{text: err.Error()}
		}
	}
	said, err := agree(ctx, end, stepName, mine)
	if err != nil {
		return nil, err
	}
	return []byte(said[0]), nil
}

// IsNoReducer is whether workers go on without.
func IsNoReducer(err error) bool {
	no := (*NoReducer)(nil)
	return errors.As(err, &no)
}
