package partition

// loads keeps what every part weighs under every constraint while vertices move.
type loads struct {
	constraints []Constraint
	limit       []int64 // per constraint
	inverse     []float64
	weight      [][]int64 // per part and constraint
}

func newLoads(p *Problem) *loads {
	l := &loads{constraints: p.constraints()}
	for i := range l.constraints {
		c := &l.constraints[i]
		limit := c.Limit(c.Total(p.Graph.Nodes()), p.Parts)
		l.limit = append(l.limit, limit)
		l.inverse = append(l.inverse, 1/float64(max(limit, 1)))
	}
	l.weight = make([][]int64, p.Parts)
	for k := range l.weight {
		l.weight[k] = make([]int64, len(l.constraints))
	}
	return l
}

// of fills in the loads of a whole assignment.
func (l *loads) of(parts []uint32) *loads {
	for v, k := range parts {
		l.add(int(k), v, 1)
	}
	return l
}

// reset makes the loads those of another assignment.
func (l *loads) reset(parts []uint32) {
	for k := range l.weight {
		clear(l.weight[k])
	}
	l.of(parts)
}

// add puts vertex v into part k, or with sign -1 takes it out.
func (l *loads) add(k, v int, sign int64) {
	for c := range l.constraints {
		l.weight[k][c] += sign * l.constraints[c].Of(v)
	}
}

// fits reports whether part k can take v and stay within every limit v counts for.
func (l *loads) fits(k, v int) bool {
	for c := range l.constraints {
		if w := l.constraints[c].Of(v); w > 0 && l.weight[k][c]+w > l.limit[c] {
			return false
		}
	}
	return true
}

// fill is how full part k is, 1 at the limit, under the fullest constraint that
// v counts for.
func (l *loads) fill(k, v int) float64 {
	if len(l.constraints) == 1 && l.constraints[0].Weight == nil {
		return float64(l.weight[k][0]) * l.inverse[0]
	}
	full := 0.0
	for c := range l.constraints {
		if l.constraints[c].Of(v) > 0 {
			full = max(full, float64(l.weight[k][c])*l.inverse[c])
		}
	}
	return full
}

// over is by how much part k exceeds constraint c.
func (l *loads) over(k, c int) int64 { return max(l.weight[k][c]-l.limit[c], 0) }

// excess sums by how much parts exceed their limits, each as a share of its limit.
func (l *loads) excess() float64 {
	sum := 0.0
	for k := range l.weight {
		sum += l.excessOf(k)
	}
	return sum
}

func (l *loads) excessOf(k int) float64 {
	sum := 0.0
	for c := range l.limit {
		sum += float64(l.over(k, c)) * l.inverse[c]
	}
	return sum
}

// unbalanced is the error for the constraint that is worst exceeded, nil if none is.
func (l *loads) unbalanced(parts []uint32) error {
	var worst *Unbalanced
	for c := range l.constraints {
		var total, heaviest int64
		for k := range l.weight {
			total += l.weight[k][c]
			heaviest = max(heaviest, l.weight[k][c])
		}
		if heaviest <= l.limit[c] {
			continue
		}
		mean := float64(total) / float64(len(l.weight))
		e := &Unbalanced{Constraint: l.constraints[c].Name, Heaviest: float64(heaviest) / mean,
			Allowed: float64(l.limit[c]) / mean, Parts: parts}
		if worst == nil || e.Heaviest/e.Allowed > worst.Heaviest/worst.Allowed {
			worst = e
		}
	}
	if worst == nil {
		return nil
	}
	return worst
}
