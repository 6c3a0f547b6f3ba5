package worker

import (
	"fmt"
	"slices"

	"starling/cluster"
	"starling/event"
	"starling/watch"
	"starling/wire/paths"
)

// mostChanges of paths wait to be noted; those beyond are left out.
const mostChanges = 64

// links notes paths to peers that are lost, and come back.
type links struct {
	changes chan paths.Change
	done    chan struct{}
}

// noteLinks sends the run's coordinator notes of paths until close is called. They are sent on a goroutine of their
// own, since connections that notify it must not wait.
func noteLinks(m *cluster.Member) *links {
	l := &links{changes: make(chan paths.Change, mostChanges), done: make(chan struct{})}
	notes := watch.NewNotes(m, func(hidden int) string {
		return fmt.Sprintf("[rank %d] %s of paths", m.Rank, event.Counted(hidden, "more change"))
	})
	go func() {
		defer notes.Close()
		for {
			select {
			case c := <-l.changes:
				notes.Show(event.Note{Text: linkText(m, c), Mark: event.Link})
			case <-l.done:
				return
			}
		}
	}()
	return l
}

// changed takes a change.
func (l *links) changed(c paths.Change) {
	select {
	case l.changes <- c:
	default:
	}
}

func (l *links) close() { close(l.done) }

// linkText says between whom a path was lost.
func linkText(m *cluster.Member, c paths.Change) string {
	peer := c.Peer
	if at := slices.IndexFunc(m.Peers, func(p cluster.Peer) bool { return p.Addr == c.Peer }); at >= 0 {
		peer = fmt.Sprintf("rank %d", m.Peers[at].Rank)
	}
	between := fmt.Sprintf("path %s between rank %d and %s", c.Path, m.Rank, peer)
	if c.Cause == nil {
		return between + " is back"
	}
	return fmt.Sprintf("%s was lost: %v; the other paths carry its bytes", between, c.Cause)
}
