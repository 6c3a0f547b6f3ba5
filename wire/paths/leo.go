package paths

// leo is the heuristic of 6.2.2: the path with the least k·toll + base (6.5). k is the number of requests that one more
// request will delay, until the queue of its path is drained. It is estimated by the requests in a row that took longer
// inside hosts than their base time; and no queue has more requests than are under way on its path, as the request state
// table has them. Without that bound (leo-streak) k goes on growing after a path was left: all that was sent before
// returns slow, nothing resets the count, and the path stands idle until the other one is as bad.
type leo struct {
	avoided
	plan     *Plan
	k        []float64 // by path
	underWay []float64 // by path
	slack    float64
	bounded  bool
}

// Slack is by how much of its base time a request may be slower without counting as slow: what rounding adds in exact
// time. A host's clock and processor have more noise.
const Slack = 1e-9

// NewLEO starts with empty queues: k is 0, and requests take the path of the least base time.
func NewLEO(p *Plan, slack float64) Policy { return newLEO(p, slack, true) }

// NewLEOStreak is the rule by which k is updated alone: k may be more than there are requests under way.
func NewLEOStreak(p *Plan, slack float64) Policy { return newLEO(p, slack, false) }

func newLEO(p *Plan, slack float64, bounded bool) *leo {
	return &leo{plan: p, k: make([]float64, len(p.File.Paths)), underWay: make([]float64, len(p.File.Paths)), slack: slack,
		bounded: bounded}
}

func (l *leo) Name() string {
	if l.bounded {
		return "leo"
	}
	return "leo-streak"
}

func (l *leo) Choose(_ float64, kind int) int {
	return l.least(l.plan.Types[kind].Choices, func(_ int, c *Choice) float64 {
		k := l.k[c.Path]
		if l.bounded {
			k = min(k, l.underWay[c.Path])
		}
		return k*c.Toll + c.Base
	})
}

func (l *leo) Took(_ float64, kind, choice int) Mark {
	l.underWay[l.plan.Types[kind].Choices[choice].Path]++
	return Mark{}
}

func (l *leo) Finished(_ float64, f Finished) {
	c := &l.plan.Types[f.Kind].Choices[f.Choice]
	l.underWay[c.Path]--
	if f.Host > c.Base*(1+l.slack) {
		l.k[c.Path]++
	} else {
		l.k[c.Path] = 0
	}
}

// Dropped implements dropper.
func (l *leo) Dropped(kind, choice int) { l.underWay[l.plan.Types[kind].Choices[choice].Path]-- }

// leoQueue takes the path with the least k·toll + base too, but k·toll is the queue that it will find. The streak of slow
// requests is known a round trip late. Here each request on a path adds its toll to the path's queue, and the queue drains with time,
// as in 6.1 and 6.2; a finished request tells how long it did wait, and by what the estimate was wrong for it the
// estimate is corrected since. k·toll is then the queue that a request will find. From the time between two that
// finish while others wait, it learns how much slower than its profile a path is.
type leoQueue struct {
	avoided
	plan  *Plan
	paths []leoPath
}

// leoPath is the estimate of one path.
type leoPath struct {
	queue     float64 // seconds of work that a request will find before it
	at        float64 // when that was so
	corrected float64 // sum of all corrections
	slower    float64 // by what part of the profiled time requests take longer than that
	ended     float64 // when the last request finished
	longest   float64 // what a request of the longest type adds to the queue
}

// learning is how much of a difference one request teaches, mostSlower a bound on what is learnt.
const (
	learning   = 1.0 / 32
	mostSlower = 100
)

// NewLEOQueue starts with empty queues: requests take the path of the least base time.
func NewLEOQueue(p *Plan) Policy {
	l := &leoQueue{plan: p, paths: make([]leoPath, len(p.File.Paths))}
	for _, t := range p.Types {
		for _, c := range t.Choices {
			l.paths[c.Path].longest = max(l.paths[c.Path].longest, c.Slowest)
		}
	}
	return l
}

func (*leoQueue) Name() string { return "leo-queue" }

func (l *leoQueue) Choose(now float64, kind int) int {
	return l.least(l.plan.Types[kind].Choices, func(_ int, c *Choice) float64 {
		p := &l.paths[c.Path]
		return p.left(now) + c.Base + p.slower*c.Slowest
	})
}

// left is the queue at a later time.
func (p *leoPath) left(now float64) float64 { return max(p.queue-(now-p.at), 0) }

func (l *leoQueue) Took(now float64, kind, choice int) Mark {
	c := &l.plan.Types[kind].Choices[choice]
	p := &l.paths[c.Path]
	m := Mark{p.left(now), p.corrected}
	p.queue, p.at = m.Queue+c.Slowest*(1+p.slower), now
	return m
}

func (l *leoQueue) Finished(now float64, f Finished) {
	c := &l.plan.Types[f.Kind].Choices[f.Choice]
	p := &l.paths[c.Path]
	// It waited for those that finished before it.
	if waited := f.Host - c.Base; p.longest > 0 && waited > c.Slowest && now-f.EndToEnd < p.ended {
		// As a part of the longest type's time: what a clock adds to a short request says nothing.
		off := (now - p.ended - c.Slowest*(1+p.slower)) / p.longest
		p.slower = min(max(p.slower+learning*off, 0), mostSlower)
	}
	p.ended = now
	wrong := f.Host - c.Base - p.slower*c.Slowest - f.Mark.Queue - (p.corrected - f.Mark.Corrected)
	p.corrected += wrong
	p.queue, p.at = max(p.left(now)+wrong, 0), now
}
