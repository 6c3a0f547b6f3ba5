package collective

import (
	"fmt"
	"sync"

	"starling/coflow"
)

const (
	// stepBits of a message's step count messages between two ranks within a call;
	// the bits above count calls of the coflow, around and around: a name is used
	// again 4096 calls later, when its message has long been received.
	stepBits = 20
	// epochsKept is how far behind the newest epoch a call may be. Calls are counted
	// by coflow, and what was counted for older epochs is forgotten.
	epochsKept = 8
)

// counters number the calls of each coflow.
type counters struct {
	mu struct {
		sync.Mutex
		calls  map[coflow.ID]uint32
		newest uint32
		swept  uint32 // the newest epoch when old ones were last forgotten
	}
}

// take reserves the numbers of n calls of a coflow, and returns the first. Coflows of
// epoch 0, batch 0 may always be used, for what belongs to no epoch.
func (c *counters) take(id coflow.ID, calls int) (uint32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.calls == nil {
		c.mu.calls = map[coflow.ID]uint32{}
	}
	if !timeless(id) && id.Epoch+epochsKept < c.mu.newest {
		return 0, fmt.Errorf("the coflow is of epoch %d, but others are in epoch %d already; expected at most %d "+
			"epochs between them", id.Epoch, c.mu.newest, epochsKept)
	}
	c.mu.newest = max(c.mu.newest, id.Epoch)
	if c.mu.newest > c.mu.swept+epochsKept {
		c.forget()
	}
	first := c.mu.calls[id]
	c.mu.calls[id] = first + uint32(calls)
	return first, nil
}

func timeless(id coflow.ID) bool { return id.Epoch == 0 && id.Batch == 0 }

// forget drops the coflows that cannot be used any more.
// REQUIRES: mu held.
func (c *counters) forget() {
	c.mu.swept = c.mu.newest
	for id := range c.mu.calls {
		if !timeless(id) && id.Epoch+epochsKept < c.mu.newest {
			delete(c.mu.calls, id)
		}
	}
}

// step is the name of the nth message between two ranks in a call.
func step(call, nth uint32) uint32 { return call<<stepBits | nth }
