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

// NoReducer is the error of workers that cannot sum on their devices: they do on the hosts.
type NoReducer struct{ Why string }

func (e *NoReducer) Error() string { return e.Why }

// JoinReducer has all workers agree whether their devices sum by themselves (tensor.Reducer), and join. All call it. It
// is a NoReducer on all of them where one cannot.
func JoinReducer(ctx context.Context, dev tensor.Device, end wire.Endpoint, within time.Duration) (tensor.Reducer,
	error) {
	r, mine := reducerOf(dev)
	gpus, err := agree(ctx, end, stepReducers, mine)
	if err != nil {
		return nil, err
	}
	if err := distinct(gpus); err != nil {
		return nil, err
	}
	name, err := nameReduction(ctx, r, end)
	if err != nil {
		return nil, err
	}
	joined := vote{ok: true}
	if err := r.JoinReduction(name, end.Rank(), end.Size(), within); err != nil {
		joined = vote{text: err.Error()}
	}
	if _, err := agree(ctx, end, stepJoined, joined); err != nil {
		r.LeaveReduction()
		return nil, err
	}
	return r, nil
}

// vote is a worker's answer: yes, with a text, or why not.
type vote struct {
	ok   bool
	text string
}

func (v vote) bytes() []byte {
	first := byte(0)
	if v.ok {
		first = 1
	}
	return append([]byte{first}, v.text[:min(len(v.text), mostHello-1)]...)
}

func reducerOf(dev tensor.Device) (tensor.Reducer, vote) {
	r, ok := dev.(tensor.Reducer)
	if !ok {
		return nil, vote{text: "it has no GPU"}
	}
	gpu, err := r.ReducerCard()
	if err != nil {
		return nil, vote{text: err.Error()}
	}
	return r, vote{true, string(gpu)}
}

// agree collects the texts of all workers' votes, by rank, unless one votes no.
func agree(ctx context.Context, end wire.Endpoint, step uint32, mine vote) ([]string, error) {
	theirs, err := swap(ctx, end, step, all, func(int) []byte { return mine.bytes() })
	if err != nil {
		return nil, err
	}
	theirs[end.Rank()] = mine.bytes()
	texts, reasons, known := make([]string, len(theirs)), []string(nil), map[string]bool{}
	for q, b := range theirs {
		texts[q] = string(b[min(1, len(b)):])
		if (len(b) == 0 || b[0] != 1) && !known[texts[q]] {
			known[texts[q]] = true
			reasons = append(reasons, fmt.Sprintf("worker %d cannot: %s", q, texts[q]))
		}
	}
	if reasons != nil {
		return nil, &NoReducer{strings.Join(reasons, "; ")}
	}
	return texts, nil
}

// distinct refuses two workers on one GPU.
func distinct(gpus []string) error {
	first := map[string]int{}
	for q, c := range gpus {
		if p, ok := first[c]; ok {
			return &NoReducer{fmt.Sprintf("workers %d and %d are on one GPU, and each needs its own", p, q)}
		}
		first[c] = q
	}
	return nil
}

// nameReduction is the group's name, which worker 0 makes.
func nameReduction(ctx context.Context, r tensor.Reducer, end wire.Endpoint) ([]byte, error) {
	mine := vote{ok: true}
	if end.Rank() == 0 {
		name, err := r.NewReduction()
		if mine.text = string(name); err != nil {
			mine = vote{text: err.Error()}
		}
	}
	texts, err := agree(ctx, end, stepName, mine)
	if err != nil {
		return nil, err
	}
	return []byte(texts[0]), nil
}

// IsNoReducer reports whether workers go on without.
func IsNoReducer(err error) bool {
	no := (*NoReducer)(nil)
	return errors.As(err, &no)
}
