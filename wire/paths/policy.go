package paths

import "fmt"

// Policy chooses a path for each request. It is pure: what it returns follows from the calls made before, and from
// nothing else. Times are seconds.
type Policy interface {
	Name() string
	// Choose is the choice for a request of a type that begins now: a place in Plan.Types[kind].Choices.
	Choose(now float64, kind int) int
	// Took tells which choice a request was given: the policy's, or that of a request on which it depends. The mark
	// comes back when the request has finished.
	Took(now float64, kind, choice int) Mark
	// Finished tells how long a request took.
	Finished(now float64, f Finished)
	// Avoid takes a path out of the choice, for as long as there is another, or back into it.
	Avoid(path int, avoid bool)
}

// dropper is a policy that is told of requests that it gave a path and that ended without a time.
type dropper interface{ Dropped(kind, choice int) }

// online are the policies that runs can have, by name.
var online = []struct {
	name string
	make func(p *Plan) Policy
}{
	{"leo-queue", NewLEOQueue},
	{"leo", func(p *Plan) Policy { return NewLEO(p, noise) }},
	{"leo-streak", func(p *Plan) Policy { return NewLEOStreak(p, noise) }},
	{"greedy-e2e", func(p *Plan) Policy { return NewGreedy(p, true) }},
	{"greedy-host", func(p *Plan) Policy { return NewGreedy(p, false) }},
	{"round-robin", NewRoundRobin},
	{"first", func(p *Plan) Policy { return &singlePath{plan: p, name: p.File.Paths[0].Name} }},
}

// noise is the slack of a host: what its clock and processor add to a request.
const noise = 0.1

// PolicyNames are the policies that a file can name.
func PolicyNames() (names []string) {
	for _, o := range online {
		names = append(names, o.name)
	}
	return names
}

// NewPolicy is the one that the plan's file names.
func NewPolicy(p *Plan) Policy {
	for _, o := range online {
		if o.name == p.File.Policy {
			return o.make(p)
		}
	}
	return NewLEOQueue(p)
}

// avoided are the paths that are not to be taken. Policies embed it.
type avoided struct{ paths []bool }

// Avoid implements Policy.
func (a *avoided) Avoid(path int, avoid bool) {
	for len(a.paths) <= path {
		a.paths = append(a.paths, false)
	}
	a.paths[path] = avoid
}

func (a *avoided) avoids(path int) bool { return path < len(a.paths) && a.paths[path] }

// least returns the first choice of the least cost whose path is not avoided; 0 if all are.
func (a *avoided) least(choices []Choice, cost func(i int, c *Choice) float64) int {
	best, least := -1, 0.0
	for i := range choices {
		c := &choices[i]
		if x := cost(i, c); !a.avoids(c.Path) && (best < 0 || x < least) {
			best, least = i, x
		}
	}
	return max(best, 0)
}

// Finished is a request that has completed.
type Finished struct {
	Kind, Choice int
	// Host is the time inside hosts, EndToEnd that with the network.
	Host, EndToEnd float64
	Mark           Mark
}

// Mark is what a policy notes of a request in the request state table.
type Mark struct{ Queue, Corrected float64 }

// stateless is embedded by policies that need not be told.
type stateless struct{ avoided }

func (stateless) Took(float64, int, int) Mark { return Mark{} }
func (stateless) Finished(float64, Finished)  {}

// singlePath takes one path always, or where a type does not have it, the first that the type has.
type singlePath struct {
	stateless
	plan *Plan
	path int
	name string
}

// NewSinglePath takes the path of that name.
func NewSinglePath(p *Plan, path string) (Policy, error) {
	at := p.File.path(path)
	if at < 0 {
		return nil, fmt.Errorf("found path %q, want one of the file's", path)
	}
	return &singlePath{plan: p, path: at, name: path}, nil
}

func (s *singlePath) Name() string { return "path " + s.name }

func (s *singlePath) Choose(_ float64, kind int) int {
	at := max(s.plan.Choice(kind, s.path), 0)
	for i, c := range s.plan.Types[kind].Choices {
		if s.avoids(s.plan.Types[kind].Choices[at].Path) && !s.avoids(c.Path) {
			return i
		}
	}
	return at
}

// roundRobin takes one path after the other, per type.
type roundRobin struct {
	avoided
	plan *Plan
	next []int
}

// NewRoundRobin spreads requests evenly, whatever the paths can do.
func NewRoundRobin(p *Plan) Policy { return &roundRobin{plan: p, next: make([]int, len(p.Types))} }

func (*roundRobin) Name() string { return "round-robin" }

func (r *roundRobin) Choose(_ float64, kind int) int {
	choices := r.plan.Types[kind].Choices
	for i := range choices {
		if at := (r.next[kind] + i) % len(choices); !r.avoids(choices[at].Path) {
			return at
		}
	}
	return r.next[kind]
}

func (r *roundRobin) Took(_ float64, kind, choice int) Mark {
	r.next[kind] = (choice + 1) % len(r.plan.Types[kind].Choices)
	return Mark{}
}

func (*roundRobin) Finished(float64, Finished) {}

// random takes any path, with equal chances (figure 6.3), also one that is to be avoided.
type random struct {
	avoided
	plan *Plan
	draw func(i uint64, n int) int
	i    uint64
}

// NewRandom draws choices: draw is a number below n, a function of i.
func NewRandom(p *Plan, draw func(i uint64, n int) int) Policy { return &random{plan: p, draw: draw} }

func (*random) Name() string { return "random" }

func (r *random) Choose(_ float64, kind int) int { return r.draw(r.i, len(r.plan.Types[kind].Choices)) }

func (r *random) Took(float64, int, int) Mark {
	r.i++
	return Mark{}
}

func (*random) Finished(float64, Finished) {}
