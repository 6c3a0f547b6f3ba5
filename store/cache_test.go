package store

import (
	"encoding/binary"
	"testing"

	"starling/rng"
)

// TestS3FIFO: a row that is there is the one that was put, there are never more than fit, and
// rows that are asked for often stay through a scan of others.
func TestS3FIFO(t *testing.T) {
	const rows, width = 50, 8
	c := newS3FIFO(rows, width)
	row := make([]byte, width)
	ask := func(v uint32) (hit bool) {
		if hit = c.get(v, row); hit {
			if got := binary.LittleEndian.Uint64(row); got != uint64(v)*7 {
				t.Fatalf("row of %d is %d", v, got)
			}
			return hit
		}
		binary.LittleEndian.PutUint64(row, uint64(v)*7)
		c.put(v, row)
		if n := len(c.mu.entry); n > rows || n != c.mu.smallQ.len()+c.mu.mainQ.len() || len(c.mu.noted) > c.main {
			t.Fatalf("%d rows in queues of %d and %d, %d noted", n, c.mu.smallQ.len(), c.mu.mainQ.len(),
				len(c.mu.noted))
		}
		return hit
	}
	for i := range 3000 {
		ask(uint32(rng.New(5).IntN(uint64(i), 200)))
	}
	hits := 0
	for round := range 200 {
		for v := range uint32(10) {
			if ask(v) && round > 5 {
				hits++
			}
		}
		ask(uint32(1000 + round)) // a scan
	}
	if hits < 1900 {
		t.Errorf("%d of 1940 hits on rows that are asked for in every round", hits)
	}
}
