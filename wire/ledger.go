package wire

import (
	"maps"
	"sync"
)

// Entry says what a count is of.
type Entry struct {
	Sent  bool // else received
	Kind  Kind
	Link  Link
	Layer int16
	Epoch int32 // -1: epochs so long ago that they are kept together
}

// Count is messages and the bytes of their payloads.
type Count struct{ Messages, Bytes int64 }

// Ledger counts every message that leaves and arrives. Bytes are those of
// payloads, which a strategy can plan to the byte; what frames add is overhead.
type Ledger struct {
	mu struct {
		sync.Mutex
		counts   map[Entry]Count
		newest   int32
		overhead int64
	}
}

// epochsKept is how many epochs are told apart; older ones are added together.
const epochsKept = 256

// NewLedger is an empty ledger.
func NewLedger() *Ledger {
	l := &Ledger{}
	l.mu.counts = map[Entry]Count{}
	return l
}

func (l *Ledger) add(sent bool, kind Kind, link Link, key Key, bytes int) {
	e := Entry{Sent: sent, Kind: kind, Link: link, Layer: key.Coflow.Layer, Epoch: int32(key.Coflow.Epoch)}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.mu.counts[e]
	l.mu.counts[e] = Count{c.Messages + 1, c.Bytes + int64(bytes)}
	if e.Epoch > l.mu.newest {
		l.mu.newest = e.Epoch
		if e.Epoch%epochsKept == 0 {
			l.fold()
		}
	}
}

// fold adds together the epochs that are too old to be told apart.
// REQUIRES: mu held.
func (l *Ledger) fold() {
	for e, c := range l.mu.counts {
		if e.Epoch >= 0 && e.Epoch < l.mu.newest-epochsKept {
			delete(l.mu.counts, e)
			e.Epoch = -1
			old := l.mu.counts[e]
			l.mu.counts[e] = Count{old.Messages + c.Messages, old.Bytes + c.Bytes}
		}
	}
}

func (l *Ledger) addOverhead(bytes int) {
	l.mu.Lock()
	l.mu.overhead += int64(bytes)
	l.mu.Unlock()
}

// Counts is a copy of everything counted so far.
func (l *Ledger) Counts() map[Entry]Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.mu.counts)
}

// Overhead is the bytes of headers sent, beyond payloads.
func (l *Ledger) Overhead() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.overhead
}

// Sum adds up the counts that a test accepts.
func (l *Ledger) Sum(accept func(Entry) bool) (total Count) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e, c := range l.mu.counts {
		if accept(e) {
			total.Messages += c.Messages
			total.Bytes += c.Bytes
		}
	}
	return total
}

// Sent is everything that left.
func (l *Ledger) Sent() Count { return l.Sum(func(e Entry) bool { return e.Sent }) }
