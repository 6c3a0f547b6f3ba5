package tcp

import (
	"net"
	"sync"
	"testing"

	"starling/internal/testdeadline"
	"starling/wire"
	"starling/wire/wiretest"
)

// On a slow link all goes by the first connection, and the others end with it.
func TestSlowQueueHasOneConnection(t *testing.T) {
	for _, slow := range []bool{false, true} {
		e, p := open(0, 1, 2, wire.DefaultOptions(), make([]net.Conn, 3)...)
		p.lanes.slow = slow
		var mu sync.Mutex
		var all sync.WaitGroup
		took := make([]int, len(p.conns))
		for i, c := range p.conns {
			all.Go(func() {
				for c.takeBatch() {
					mu.Lock()
					took[i] += len(c.chunks)
					mu.Unlock()
					p.queue.Lock()
					for k := range c.chunks {
						p.queue.Written(&c.chunks[k], nil)
					}
					p.queue.Unlock()
				}
			})
		}
		const size = 64 * wire.ChunkSize
		var pending []*wire.Pending
		for i := range 20 {
			pending = append(pending, e.Send(1, wiretest.Key(i), wire.Feature, make([]byte, size)))
		}
		p.queue.Close()
		testdeadline.Wait(t, &all, "connections")
		for _, one := range pending {
			if !one.IsDone() {
				t.Error("a message was left behind")
			}
		}
		if others := took[1] + took[2]; slow && others > 0 {
			t.Errorf("%d chunks left by other connections of a slow link", others)
		}
		if took[0]+took[1]+took[2] != 20*64 {
			t.Errorf("%v chunks, expected %d", took, 20*64)
		}
	}
}
