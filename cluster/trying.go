package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"starling/event"
	"starling/wire"
)

// tryingEvery is how often a worker says where it tries to connect.
const tryingEvery = 3 * time.Second

// trying tells the user of a worker that finds no coordinator where it tries to connect: the address may be wrong, and
// a try may take as long as all of them may.
type trying struct {
	in    JoinRequest
	began time.Time
	end   context.CancelFunc
	mu    struct {
		sync.Mutex
		last error // of the last try; nil: the first is under way
	}
}

func newTrying(in JoinRequest) *trying {
	t := &trying{in: in, began: in.Clock.Now(), end: func() {}}
	if in.Trying != nil {
		var ctx context.Context
		ctx, t.end = context.WithCancel(context.Background())
		go t.tell(ctx)
	}
	return t
}

func (t *trying) tell(ctx context.Context) {
	for wire.Sleep(ctx, t.in.Clock, tryingEvery) == nil {
		t.mu.Lock()
		err := t.mu.last
		t.mu.Unlock()
		t.in.Trying(t.text(err))
	}
}

// text is where the worker tries to connect, what it meets there, and for how long it goes on.
func (t *trying) text(err error) string {
	met := "no answer yet"
	if err != nil {
		met = reason(err)
	}
	left := (t.in.Timeout - wire.Since(t.in.Clock, t.began)).Round(time.Second)
	return fmt.Sprintf("trying to connect to the run at %s: %s; giving up in %s (--timeout)", t.in.Coordinator, met,
		event.Duration(left))
}

// reason is an error of a dial without the address, which is named before it.
func reason(err error) string {
	if of, ok := errors.AsType[*net.OpError](err); ok && of.Err != nil {
		return of.Err.Error()
	}
	return err.Error()
}

func (t *trying) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.last = err
}

func (t *trying) stop() { t.end() }
