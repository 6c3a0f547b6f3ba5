package paths

import "slices"

// Plan is what is known before a run: for every request type its choices, each with its base time and toll.
type Plan struct {
	File      *File
	Resources []Resource
	Types     []TypePlan
}

// Resource is what requests queue for: a node of a side, or a link in one direction.
type Resource struct {
	Name     string
	Capacity int
}

// TypePlan is a request type's.
type TypePlan struct {
	Name       string
	Dependency Dependency
	ReadOnly   bool
	Choices    []Choice
	byPath     []int // choice of each path; -1: none
}

// Choice is a path that the type may take.
type Choice struct {
	Path   int
	Stages []Stage
	// Base is the time inside hosts while nothing else is under way, Toll what one request delays a later one by.
	Base, Toll float64
	// Slowest is the part of the toll that the path's slowest resource has: by so much a queue grows per request.
	Slowest float64
	// Network is the time between hosts without jitter, Jitter by how much it may grow.
	Network, Jitter float64
}

// Stage is one resource of a path: Work occupies it, After passes before the next stage.
type Stage struct {
	Resource    int
	Work, After float64
	Jitter      float64
	Network     bool
}

// NewPlan computes base times and tolls (6.2.2, the offline phase).
func NewPlan(f *File) *Plan {
	p := &Plan{File: f}
	for _, r := range f.Requests {
		t := TypePlan{Name: r.Name, Dependency: r.Dependency, ReadOnly: r.ReadOnly,
			byPath: make([]int, len(f.Paths))}
		for i := range t.byPath {
			t.byPath[i] = -1
		}
		for i, o := range r.Options {
			t.Choices = append(t.Choices, p.choice(f, o))
			t.byPath[o.Path] = i
		}
		p.Types = append(p.Types, t)
	}
	return p
}

func (p *Plan) choice(f *File, o Option) Choice {
	c := Choice{Path: o.Path}
	stops := f.Paths[o.Path].Stops
	for i, stop := range stops {
		_, name, _ := splitStop(stop)
		n := f.Hardware.node(name)
		if o.Compute[i] > 0 || n.Delay > 0 && i > 0 && i < len(stops)-1 {
			c.Stages = append(c.Stages, Stage{Resource: p.resource(stop, n.Capacity), Work: o.Compute[i], After: n.Delay})
		}
		if i == len(stops)-1 {
			break
		}
		way, _ := f.Hardware.route(stop, stops[i+1])
		for _, h := range way {
			c.Stages = append(c.Stages, p.hopStage(h, o.Sizes[i]))
		}
	}
	for _, s := range c.Stages {
		if s.Network {
			c.Network += s.Work + s.After
			c.Jitter += s.Jitter
			continue
		}
		c.Base += s.Work + s.After
		c.Toll += s.Work / float64(p.Resources[s.Resource].Capacity)
	}
	c.Slowest = p.slowest(c.Stages)
	return c
}

// slowest is how long a request occupies the resource inside hosts that it occupies longest.
func (p *Plan) slowest(stages []Stage) (longest float64) {
	for i := range stages {
		busy := 0.0
		for _, s := range stages[i:] {
			if s.Resource == stages[i].Resource && !s.Network {
				busy += s.Work / float64(p.Resources[s.Resource].Capacity)
			}
		}
		longest = max(longest, busy)
	}
	return longest
}

// hopStage is a link on the way.
func (p *Plan) hopStage(h hop, size float64) Stage {
	s := Stage{Resource: p.resource(h.from+">"+h.to, 1)}
	if h.network != nil {
		s.Network, s.After, s.Jitter = true, h.network.Latency, h.network.Jitter
		if h.network.Bandwidth > 0 {
			s.Work = size / h.network.Bandwidth
		}
		return s
	}
	s.Work, s.After = size/h.link.Bandwidth, h.link.Latency
	return s
}

// resource is the place of a resource, which is added when it is new.
func (p *Plan) resource(name string, capacity int) int {
	if i := slices.IndexFunc(p.Resources, func(r Resource) bool { return r.Name == name }); i >= 0 {
		return i
	}
	p.Resources = append(p.Resources, Resource{name, capacity})
	return len(p.Resources) - 1
}

// Type finds a request type by name; -1: there is none.
func (p *Plan) Type(name string) int {
	return slices.IndexFunc(p.Types, func(t TypePlan) bool { return t.Name == name })
}

// Choice finds the choice of a type that takes a path; -1: it has none.
func (p *Plan) Choice(kind, path int) int { return p.Types[kind].byPath[path] }

// Capacity is the rate per second that a choice sustains alone.
func (p *Plan) Capacity(kind, choice int) float64 { return 1 / p.Types[kind].Choices[choice].Slowest }
