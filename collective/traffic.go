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
