package plan

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"starling/cluster"
	"starling/coflow"
	"starling/collective"
	"starling/cost"
	"starling/event"
	"starling/graph"
	"starling/internal/version"
	"starling/report"
	"starling/setup"
	"starling/spec"
	"starling/wire"
	"starling/worker"
)

// linkSeconds is how long all rounds together may take, but for joining.
const linkSeconds = 1.6

// linkTask is what the workers that measure get.
type linkTask struct {
	Servers int     `json:"servers"`
	Seconds float64 `json:"seconds"`
	Timeout int     `json:"timeout"`
}

// linkReport is what a worker found.
type linkReport struct {
	Host  string       `json:"host"`
	Links []linkToPeer `json:"links"`
}

// linkToPeer is the link to one peer: its rate in the slower direction.
type linkToPeer struct {
	Peer int `json:"peer"`
	cost.Link
}

// measureLinks waits for as many workers as the plan has, lets them measure, and takes in what they found.
func (o *Options) measureLinks(ctx context.Context, known *cost.Known, events event.Listener) error {
	l := &o.Links
	token, id, err := l.secrets()
	if err != nil {
		return err
	}
	task, err := json.Marshal(linkTask{Servers: max(o.Cluster.Servers, 1), Seconds: linkSeconds, Timeout: l.Timeout})
	if err != nil {
		return err
	}
	co, err := cluster.Listen(cluster.Config{Addr: l.Listen, Workers: o.Cluster.Workers, Servers: o.Cluster.Servers,
		Job: cluster.NewSecret()[:12], Version: version.Name(), Token: token, Identity: id, Insecure: l.Insecure, Task: task,
		Timeout: time.Duration(l.Timeout) * time.Second, Events: func(_ int, e event.Event) { events.On(e) },
		Refused: func(from, reason string) {
			events.On(event.Note{Text: fmt.Sprintf("refused %s: %s", from, reason)})
		}})
	if err != nil {
		return spec.Mistake("--listen", graph.Sentence(err.Error()), "an address of this host", "")
	}
	defer co.Close()
	events.On(event.Note{Text: fmt.Sprintf("waiting %d s for %s to measure links: starling plan --join %s%s --rank R "+
		"on each host, R from 0 to %d", l.Timeout, event.Counted(o.Cluster.Workers, "worker"), co.Addr(),
		cluster.ProofFlags(l.TokenFile, l.TLS, l.Insecure), o.Cluster.Workers-1)})
	results, err := co.Run(ctx, nil)
	switch {
	case err != nil && ctx.Err() != nil:
		return report.ErrInterrupted
	case err != nil:
		return fmt.Errorf("measuring links: %w", err)
	}
	found := make([]linkReport, o.Cluster.Workers)
	for r := range found {
		if err := json.Unmarshal(results[r].Body, &found[r]); err != nil {
			return fmt.Errorf("measuring links: rank %d: its result: %w", r, err)
		}
	}
	return o.takeLinks(known, found, events)
}

// secrets are what workers must know, as for a run.
func (l *LinkOptions) secrets() (token []byte, id *cluster.Identity, err error) {
	if id, err = spec.Load("--tls", l.TLS, cluster.LoadIdentity); err != nil {
		return nil, nil, err
	}
	if l.Timeout < 1 {
		return nil, nil, spec.Mistake("--timeout", fmt.Sprint(l.Timeout), "at least 1 second", "")
	}
	token, err = spec.GivenToken(l.TokenFile)
	switch {
	case token != nil || err != nil:
	case cluster.Exposed(l.Listen) && id == nil && !l.Insecure:
		err = spec.Mistake("--listen", l.Listen+", which others can reach", "--tls or a --token-file",
			"or let anyone join with --insecure")
	case id == nil && !l.Insecure:
		token, err = setup.LocalSecret()
	}
	return token, id, err
}

// takeLinks makes of what workers found the links inside servers and between them.
func (o *Options) takeLinks(known *cost.Known, found []linkReport, events event.Listener) error {
	servers := max(o.Cluster.Servers, 1)
	between, inside := map[[2]int]cost.ServerLink{}, cost.Link{}
	for r, one := range found {
		for _, l := range one.Links {
			if l.Peer <= r || l.Peer >= o.Cluster.Workers || !(l.Rate > 0) {
				return fmt.Errorf("measuring links: rank %d tells of one to rank %d of %g bytes per second, want a later "+
					"rank and a rate above 0", r, l.Peer, l.Rate)
			}
			if a, b := setup.ServerOf(&o.Spec, r), setup.ServerOf(&o.Spec, l.Peer); a != b {
				key, next := [2]int{a, b}, cost.ServerLink{A: a, B: b, Link: l.Link, Hosts: [2]string{one.Host, found[l.Peer].Host}}
				if old, ok := between[key]; !ok || next.Rate < old.Rate {
					between[key] = next
				}
			} else if inside.Rate == 0 || l.Rate < inside.Rate {
				inside = l.Link
			}
		}
	}
	if inside.Rate > 0 {
		known.Inside = inside
	}
	list := slices.SortedFunc(maps.Values(between), func(a, b cost.ServerLink) int {
		return (a.A-b.A)*servers + a.B - b.B
	})
	known.SetLinks(list)
	for _, l := range list {
		events.On(event.Note{Minor: true, Text: "measured " + describeLink(l)})
	}
	return nil
}

func describeLink(l cost.ServerLink) string {
	return fmt.Sprintf("servers %d and %d (%s, %s): %s, %s", l.A, l.B, l.Hosts[0], l.Hosts[1], rateText(l.Rate),
		report.Seconds(l.Delay))
}

// useLinks keeps measured links for the prediction, or says that what was given contradicts them.
func (o *Options) useLinks(known *cost.Known, events event.Listener) {
	for _, l := range known.Links {
		if l.B >= max(o.Cluster.Servers, 1) { // of another cluster
			known.Links = nil
			return
		}
	}
	slow, ok := known.Slowest()
	if o.Rate == "" || !ok {
		return
	}
	if times := slow.Rate / known.Between.Rate; times > 2 || times < 0.5 {
		events.On(event.Note{Text: fmt.Sprintf("--rate %s is not what was measured: %s; the plan is for --rate", o.Rate,
			describeLink(slow))})
	}
	known.Links = nil
}

// JoinLinks measures links with the other workers of the plan at w.Addr.
func JoinLinks(ctx context.Context, w *worker.Spec) error {
	m, err := w.Join(ctx)
	if err != nil {
		return err
	}
	found, err := measureAsMember(ctx, w, m)
	if err != nil {
		m.Fail(err, false)
		return err
	}
	body, err := json.Marshal(found)
	if err != nil {
		return err
	}
	return m.Done(body, nil)
}

func measureAsMember(ctx context.Context, w *worker.Spec, m *cluster.Member) (*linkReport, error) {
	var t linkTask
	if err := json.Unmarshal(m.Task, &t); err != nil || t.Servers < 1 || t.Timeout < 1 || !(t.Seconds > 0 && t.Seconds < 60) {
		m.Listener.Close()
		return nil, fmt.Errorf("the plan's task is invalid: %.100s", m.Task)
	}
	end, err := w.Connect(ctx, m, "auto", time.Duration(t.Timeout)*time.Second)
	if err != nil {
		return nil, err
	}
	defer end.Close()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-m.Ended():
			end.Fail(m.Err())
		case <-ctx.Done():
			end.Fail(report.ErrInterrupted)
		case <-over:
		}
	}()
	host, _ := os.Hostname()
	out := &linkReport{Host: host}
	out.Links, err = timePairs(ctx, end, t.Servers, t.Seconds)
	return out, err
}

// timePairs measures the links of this worker, in rounds. Of a pair the lower rank tells.
func timePairs(ctx context.Context, end wire.Endpoint, servers int, seconds float64) (links []linkToPeer, err error) {
	rounds, comm := cost.LinkRounds(end.Size(), servers), collective.New(end)
	p := &pairTimer{ctx: ctx, end: end, slice: seconds / float64(max(len(rounds), 1)) / 6}
	for _, round := range rounds {
		if err := comm.Barrier(ctx, coflow.Preparing); err != nil {
			return nil, err
		}
		for _, pair := range round {
			switch end.Rank() {
			case pair[0]:
				p.peer, p.step = pair[1], 0
				l, err := p.measure()
				if err != nil {
					return nil, err
				}
				links = append(links, linkToPeer{pair[1], l})
			case pair[1]:
				p.peer, p.step = pair[0], 0
				if err := p.answer(); err != nil {
					return nil, err
				}
			}
		}
	}
	return links, comm.Barrier(ctx, coflow.Preparing)
}

// Sizes of what a pair is timed with.
const (
	linkTrips            = 8
	firstLink, longLinks = 64 << 10, 64 << 20
)

// pairTimer times one pair after the other.
type pairTimer struct {
	ctx   context.Context
	end   wire.Endpoint
	peer  int
	slice float64 // seconds that the last transfer takes about
	step  uint32  // messages of this pair so far
	bytes []byte
}

// measure is the delay, and the rate of the slower direction. The peer answers.
func (p *pairTimer) measure() (l cost.Link, err error) {
	if l.Delay, err = p.trips(true); err != nil {
		return l, err
	}
	if l.Rate, err = p.send(l.Delay); err != nil {
		return l, err
	}
	if err = p.receive(); err != nil {
		return l, err
	}
	back, err := p.number(0, false)
	l.Rate = min(l.Rate, float64(back))
	return l, err
}

// answer is the other side.
func (p *pairTimer) answer() error {
	delay, err := p.trips(false)
	if err != nil {
		return err
	}
	if err := p.receive(); err != nil {
		return err
	}
	rate, err := p.send(delay)
	if err != nil {
		return err
	}
	_, err = p.number(uint64(rate), true)
	return err
}

// trips times short messages there and back: half of the shortest.
func (p *pairTimer) trips(first bool) (delay float64, err error) {
	delay = 60
	for range linkTrips {
		began := time.Now()
		for _, send := range []bool{first, !first} {
			if _, err := p.number(0, send); err != nil {
				return 0, err
			}
		}
		delay = min(delay, time.Since(began).Seconds()/2)
	}
	return delay, nil
}

// send sends more and more bytes until they take a slice, and is the rate of the last.
func (p *pairTimer) send(delay float64) (rate float64, err error) {
	for size := firstLink; ; {
		if _, err := p.number(uint64(size), true); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := p.end.Send(p.peer, p.key(), wire.Control, p.buffer(size)).Wait(p.ctx); err != nil {
			return 0, err
		}
		if _, err := p.number(0, false); err != nil { // all has arrived
			return 0, err
		}
		took := max(time.Since(began).Seconds()-delay, 1e-7)
		rate = max(1, float64(size)/took)
		if took >= p.slice/2 || 2*size > longLinks {
			_, err := p.number(0, true)
			return rate, err
		}
		size = min(longLinks, size*int(min(8, max(2, p.slice/took))))
	}
}

// receive is the other side of send.
func (p *pairTimer) receive() error {
	for {
		size, err := p.number(0, false)
		switch {
		case err != nil || size == 0:
			return err
		case size > longLinks:
			return fmt.Errorf("measuring links: rank %d announces %d bytes, want at most %d", p.peer, size, longLinks)
		}
		if err := p.end.Recv(p.peer, p.key(), wire.Control, p.buffer(int(size))).Wait(p.ctx); err != nil {
			return err
		}
		if _, err := p.number(0, true); err != nil {
			return err
		}
	}
}

// number sends a number, or receives one.
func (p *pairTimer) number(x uint64, send bool) (uint64, error) {
	b := binary.LittleEndian.AppendUint64(nil, x)
	if send {
		return x, p.end.Send(p.peer, p.key(), wire.Control, b).Wait(p.ctx)
	}
	err := p.end.Recv(p.peer, p.key(), wire.Control, b).Wait(p.ctx)
	return binary.LittleEndian.Uint64(b), err
}

// key is the key of the next message of the pair, which both sides count.
func (p *pairTimer) key() wire.Key {
	p.step++
	return wire.Key{Coflow: coflow.ID{Type: coflow.Bulk, Layer: -1}, Step: p.step}
}

func (p *pairTimer) buffer(n int) []byte {
	if len(p.bytes) < n {
		p.bytes = make([]byte, n)
	}
	return p.bytes[:n]
}
