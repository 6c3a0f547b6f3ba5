package wire

import (
	"maps"
	"sync"
)

// Entry is what a count is of.
type Entry struct {
	Sent  bool // else received
	Kind  Kind
	Link  Link
	Layer int16
	Epoch int32 // -1: epochs so long ago that they are kept together
}

// Count is messages and the bytes of their payloads.
type Count struct {
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
}

func (c Count) plus(d Count) Count { return Count{c.Messages + d.Messages, c.Bytes + d.Bytes} }

// Counts is what a ledger held at one time.
type Counts map[Entry]Count

// Sub is what was counted since an earlier time, epochs that were added together
// meanwhile counted as such.
func (c Counts) Sub(earlier Counts) Counts {
	out := Counts{}
	for e, n := range c {
		if d := n.plus(Count{-earlier[e].Messages, -earlier[e].Bytes}); d != (Count{}) {
			out[e] = d
		}
	}
	return out
}

// Sum sums the counts that a test accepts.
func (c Counts) Sum(accept func(Entry) bool) (total Count) {
	for e, n := range c {
		if accept(e) {
			total = total.plus(n)
		}
	}
	return total
}

// ByKind sums what was sent, or received, by the names of kinds.
func (c Counts) ByKind(sent bool) map[string]Count {
	return c.by(sent, func(e Entry) string { return e.Kind.String() })
}

// ByLink sums what was sent, or received, by the names of links.
func (c Counts) ByLink(sent bool) map[string]Count {
	return c.by(sent, func(e Entry) string { return e.Link.String() })
}

// Channel is a kind of message and how far it travels.
type Channel struct {
	Kind Kind
	Link Link
}

// Channels sums all bytes sent, and received, by channel.
func (l *Ledger) Channels() (sent, received map[Channel]int64) {
	sent, received = map[Channel]int64{}, map[Channel]int64{}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	for e, n := range l.mu.counts {
		to := received
		if e.Sent {
			to = sent
		}
		to[Channel{e.Kind, e.Link}] += n.Bytes
	}
	return sent, received
}

func (c Counts) by(sent bool, name func(Entry) string) map[string]Count {
	out := map[string]Count{}
	for e, n := range c {
		if e.Sent == sent {
			out[name(e)] = out[name(e)].plus(n)
		}
	}
	return out
}

// Ledger counts every message that leaves and arrives. It counts the bytes of
// payloads, which a strategy can plan to the byte; what frames add is overhead.
type Ledger struct {
	mu struct {
		sync.Mutex
		counts   Counts
		now      [2]running // received and sent, not in counts yet
		newest   int32
		folded   int32 // the newest epoch when old ones were last added together
		overhead int64
		beside   map[string]Count
		lent     int64
	}
}

// running is the count of the latest entry: messages of one kind come many in a row,
// and adding to it takes less time than finding it.
type running struct {
	Entry
	Count
}

// epochsKept is how many epochs at least are counted apart; older ones are added together.
const epochsKept = 256

// NewLedger is an empty ledger.
func NewLedger() *Ledger {
	l := &Ledger{}
	l.mu.counts = Counts{}
	return l
}

// entry returns what a message counts as. REQUIRES: mu held.
func (l *Ledger) entry(sent bool, kind Kind, link Link, key Key) Entry {
	e := Entry{Sent: sent, Kind: kind, Link: link, Layer: key.Coflow.Layer, Epoch: int32(key.Coflow.Epoch)}
	if e.Epoch < l.mu.folded-epochsKept {
		e.Epoch = -1
	}
	return e
}

func (l *Ledger) add(sent bool, kind Kind, link Link, key Key, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(sent, kind, link, key)
	now := &l.mu.now[index(sent)]
	if now.Entry != e {
		l.settle()
		now.Entry = e
	}
	now.Count = now.plus(Count{1, int64(bytes)})
	l.mu.newest = max(l.mu.newest, e.Epoch)
	if l.mu.newest-l.mu.folded >= epochsKept {
		l.fold()
	}
}

// AddSent counts payload, and what headers and repetitions have added to it, that left
// another way than through the endpoint, such as to a switch that adds rows.
func (l *Ledger) AddSent(kind Kind, link Link, key Key, bytes, overhead int) {
	l.add(true, kind, link, key, bytes)
	l.addOverhead(overhead)
}

// AddBeside counts what travels beside payloads, by a name: rows that were sent again, sums that a switch sent. Bytes that
// were sent are overhead already.
func (l *Ledger) AddBeside(name string, n Count) {
	if n == (Count{}) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.beside == nil {
		l.mu.beside = map[string]Count{}
	}
	l.mu.beside[name] = l.mu.beside[name].plus(n)
}

// Beside is what AddBeside counted.
func (l *Ledger) Beside() map[string]Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.mu.beside)
}

// Stand records that a message, which was sent or has arrived, stood for others that went another way,
// such as from GPU to GPU: they are counted in its place, and it as overhead.
func (l *Ledger) Stand(sent bool, kind Kind, link Link, key Key, message, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(sent, kind, link, key)
	l.settle()
	if c := l.mu.counts[e].plus(Count{0, int64(bytes - message)}); c.Bytes != 0 || c.Messages != 0 {
		l.mu.counts[e] = c
	}
	if sent {
		l.mu.overhead += int64(message)
		l.mu.lent += int64(bytes)
	}
}

// Lent is the bytes sent for which a message stood.
func (l *Ledger) Lent() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.lent
}

func index(sent bool) int {
	if sent {
		return 1
	}
	return 0
}

// settle adds what is running to the counts.
// REQUIRES: mu held.
func (l *Ledger) settle() {
	for i := range l.mu.now {
		if now := &l.mu.now[i]; now.Count != (Count{}) {
			l.mu.counts[now.Entry] = l.mu.counts[now.Entry].plus(now.Count)
			now.Count = Count{}
		}
	}
}

// fold adds together the epochs that are too old to be counted apart.
// REQUIRES: mu held.
func (l *Ledger) fold() {
	l.settle()
	l.mu.folded = l.mu.newest
	for e, c := range l.mu.counts {
		if e.Epoch >= 0 && e.Epoch < l.mu.folded-epochsKept {
			delete(l.mu.counts, e)
			e.Epoch = -1
			l.mu.counts[e] = l.mu.counts[e].plus(c)
		}
	}
}

func (l *Ledger) addOverhead(bytes int) {
	l.mu.Lock()
	l.mu.overhead += int64(bytes)
	l.mu.Unlock()
}

// Counts is a copy of everything counted so far.
func (l *Ledger) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	return maps.Clone(l.mu.counts)
}

// Overhead is the bytes of headers sent, beyond payloads.
func (l *Ledger) Overhead() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.overhead
}

// Sum sums the counts that a test accepts.
func (l *Ledger) Sum(accept func(Entry) bool) Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	return l.mu.counts.Sum(accept)
}

// Sent is everything that left.
func (l *Ledger) Sent() Count { return l.Sum(func(e Entry) bool { return e.Sent }) }

// Received is everything that arrived whole.
func (l *Ledger) Received() Count { return l.Sum(func(e Entry) bool { return !e.Sent }) }
