package collective

// Traffic is messages and their bytes.
type Traffic struct {
	Messages int
	Bytes    int64
}

func (t *Traffic) add(messages, bytes int) {
	t.Messages += messages
	t.Bytes += int64(bytes)
}

// Plan is what one rank does in one call. The Plan functions say it by formula;
// tests hold the programs to it, and what the ledger counts.
type Plan struct {
	Sent, Received Traffic
	Peers          int // ranks it sends to or receives from
}

// plan of bytes both sent and received.
func (p *Plan) both(messages, bytes int) {
	p.Sent.add(messages, bytes)
	p.Received.add(messages, bytes)
}

// sentTo is what the program sends to each peer.
func (p *program) sentTo() []Traffic {
	out := make([]Traffic, p.n)
	for i := range p.code {
		if in := &p.code[i]; in.verb == send {
			out[in.peer].add(1, in.a.len())
		}
	}
	return out
}

// written is the program of one rank that an algorithm writes.
func written(rank, n int, write func(*program)) *program {
	p := &program{}
	p.reset(rank, n)
	write(p)
	return p
}
