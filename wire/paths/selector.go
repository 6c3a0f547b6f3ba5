package paths

// Wait is the choice of a request that must not begin yet: it depends on one in progress, on a path that its type may
// not take.
const Wait = -1

// Selector gives requests their paths: the policy's choice, unless a request depends on one in progress. It has the
// request state table. It is not safe for use by several goroutines at once.
type Selector struct {
	plan   *Plan
	policy Policy
	rows   []row // the request state table
	unused []int32
	keys   keyTable
}

// row is a request in progress.
type row struct {
	key          uint64
	began        float64
	mark         Mark
	kind, choice int32
	keyed        bool
}

// NewSelector is one over a policy for the same plan.
func NewSelector(p *Plan, policy Policy) *Selector { return &Selector{plan: p, policy: policy} }

// Begin gives a request a choice and a place in the table, or tells it to Wait.
func (s *Selector) Begin(now float64, a *Arrival) (id int32, choice int) {
	t := &s.plan.Types[a.Kind]
	key, keyed := a.key(t.Dependency)
	choice = Wait
	if keyed {
		key = mixed(key, t.Dependency)
		if path, ok := s.keys.path(key); ok {
			if choice = t.byPath[path]; choice < 0 {
				return -1, Wait
			}
		}
	}
	if choice < 0 {
		choice = s.policy.Choose(now, a.Kind)
	}
	mark := s.policy.Took(now, a.Kind, choice)
	if keyed = keyed && !t.ReadOnly; keyed {
		s.keys.add(key, t.Choices[choice].Path)
	}
	return s.put(row{key, now, mark, int32(a.Kind), int32(choice), keyed}), choice
}

// put takes an unused row of the table, or a new one.
func (s *Selector) put(r row) int32 {
	if n := len(s.unused); n > 0 {
		id := s.unused[n-1]
		s.unused = s.unused[:n-1]
		s.rows[id] = r
		return id
	}
	s.rows = append(s.rows, r)
	return int32(len(s.rows) - 1)
}

// End is told that a request has finished, and how long it was inside hosts. The policy learns from it.
func (s *Selector) End(now float64, id int32, host float64) {
	r := s.drop(id)
	s.policy.Finished(now, Finished{int(r.kind), int(r.choice), host, now - r.began, r.mark})
}

// Drop is told that a request has ended without a time that says something, as when its path has failed.
func (s *Selector) Drop(id int32) {
	r := s.drop(id)
	if p, ok := s.policy.(dropper); ok {
		p.Dropped(int(r.kind), int(r.choice))
	}
}

func (s *Selector) drop(id int32) row {
	r := s.rows[id]
	if r.keyed {
		s.keys.remove(r.key)
	}
	s.unused = append(s.unused, id)
	return r
}

// InProgress is how many requests have begun and not ended.
func (s *Selector) InProgress() int { return len(s.rows) - len(s.unused) }

// mixed tells apart addresses and messages of the same number, and spreads keys over the table. It is a bijection for
// each dependency, so that different addresses stay different.
func mixed(key uint64, d Dependency) uint64 {
	z := key + uint64(d)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
