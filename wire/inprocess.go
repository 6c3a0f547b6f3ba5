package wire

// NewGroup is n endpoints in this process, for workers that are goroutines. A
// message for which a receive was posted is copied once, from the sender's buffer to the
// receiver's, by whichever of the two comes last; so there are no goroutines and
// no queues, and nothing to be overtaken.
func NewGroup(n int, opt Options) []Endpoint {
	opt = opt.withDefaults()
	inboxes, out := make([]*Inbox, n), make([]Endpoint, n)
	for r := range out {
		out[r] = NewEndpoint(r, linksWithin(r, n, opt.ServerOf), opt, func(in *Inbox) Transport {
			inboxes[r] = in
			return &inProcess{rank: r, inboxes: inboxes}
		})
	}
	return out
}

// linksWithin a process are SameProcess, but between the servers that the user
// grouped the workers into.
func linksWithin(rank, n int, serverOf []int) []Link {
	links := make([]Link, n)
	for to := range links {
		if serverOf != nil && serverOf[to] != serverOf[rank] {
			links[to] = BetweenServers
		}
	}
	return links
}

// inProcess hands the messages of a rank to the inboxes of others in this process.
type inProcess struct {
	rank    int
	inboxes []*Inbox // of all ranks
}

func (t *inProcess) Carry(m *Message) { t.inboxes[m.To()].DeliverMessage(m) }

func (t *inProcess) Fail(cause error) {
	t.others(func(in *Inbox) { in.PeerFailed(t.rank, cause) })
}

func (t *inProcess) Close() {
	t.others(func(in *Inbox) { in.PeerClosed(t.rank) })
}

// Wait has nothing to wait for: what a peer has not received was given to it, or taken back.
func (t *inProcess) Wait() {}

func (t *inProcess) others(do func(*Inbox)) {
	for r, in := range t.inboxes {
		if r != t.rank {
			do(in)
		}
	}
}
