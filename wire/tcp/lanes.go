package tcp

import (
	"sync"

	"starling/coflow"
	"starling/wire"
)

// lanes choose which connection to a peer takes the next chunk of its queue: any of them; on a slow link the first only;
// or, divided, the one of the message's class. The queue's lock guards them.
type lanes struct {
	queue  *wire.Queue
	any    sync.Cond
	others sync.Cond // connections after the first, while the link is slow
	slow   bool
	class  []sync.Cond // connections that carry one class of coflows each; nil: all carry all
}

func (l *lanes) open(q *wire.Queue) {
	l.queue, l.any.L, l.others.L = q, &q.Mutex, &q.Mutex
	q.OnPut(l.signal)
	q.OnEnd(l.wakeAll)
}

// divide makes a message leave only by the connection of its class.
func (l *lanes) divide() {
	l.class = make([]sync.Cond, len(coflow.Classes()))
	for i := range l.class {
		l.class[i].L = &l.queue.Mutex
	}
}

// setSlow records whether the link is slow.
func (l *lanes) setSlow(slow bool) {
	if l.class == nil && slow != l.slow {
		l.slow = slow
		l.wakeAll()
	}
}

// wakeAll wakes the senders when the queue ends, or the link has become slow or fast.
func (l *lanes) wakeAll() {
	l.any.Broadcast()
	l.others.Broadcast()
	for i := range l.class {
		l.class[i].Broadcast()
	}
}

// signal wakes a sender that may take the next message. Senders of other classes wait until nothing more urgent is
// queued.
// REQUIRES: the queue not empty.
func (l *lanes) signal() {
	if l.class == nil {
		l.any.Signal()
		return
	}
	l.class[coflow.Class(l.queue.First().Coflow())].Signal()
}

// admit reports whether a connection may take the next chunk.
// REQUIRES: the queue not empty.
func (l *lanes) admit(first bool, class int) bool {
	if l.class != nil {
		return coflow.Class(l.queue.First().Coflow()) == class
	}
	return first || !l.slow
}

// wait returns when a connection may have something to take.
func (l *lanes) wait(first bool, class int) {
	switch {
	case l.class != nil:
		l.class[class].Wait()
	case first || !l.slow:
		l.any.Wait()
	default:
		l.any.Signal() // if it was this one that was woken
		l.others.Wait()
	}
}
