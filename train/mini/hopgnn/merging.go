package hopgnn

import (
	"math"
	"strconv"

	"starling/nn"
)

// merging decides how many time steps are merged in an epoch, by how long earlier epochs took.
type merging struct {
	merged  int
	most    int
	settled bool // the pattern is kept
	last    float64
}

func (m *merging) begin(merge string, servers int) {
	m.most = servers - 1
	if n, err := strconv.Atoi(merge); err == nil {
		m.merged, m.settled = min(n, m.most), true
	}
}

// after takes in how long an epoch took: the second with no step merged, and then as long as it
// is shorter than the one before one more. The first, in which pages and connections are met for
// the first time, would make any other look short.
func (m *merging) after(seconds float64) (changed bool) {
	switch {
	case m.settled:
		return false
	case m.last == 0:
		m.last = math.MaxFloat64
		return false
	case seconds >= m.last:
		m.settled = true
		m.merged--
		return true
	case m.merged == m.most:
		m.settled = true
		return false
	}
	m.last = seconds
	m.merged++
	return true
}

// kept is the state that a run which is resumed merges by.
func (m *merging) kept() []nn.Tensor {
	settled := 0.0
	if m.settled {
		settled = 1
	}
	return []nn.Tensor{{Name: "merging", Shape: []int{3}, F64: true,
		Data: []float64{float64(m.merged), settled, m.last}}}
}

func (m *merging) resume(caches []nn.Tensor) {
	for _, t := range caches {
		if t.Name == "merging" && len(t.Data) == 3 {
			m.merged, m.settled, m.last = min(int(t.Data[0]), m.most), t.Data[1] > 0, t.Data[2]
		}
	}
}
