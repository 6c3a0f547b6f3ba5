package plexus

import (
	"fmt"
	"strconv"
	"strings"

	"starling/exchange"
	"starling/nn"
)

// grid is workers in three dimensions. Neighbouring ranks, of one server, are along y, then x:
//
//	rank = (z·X + x)·Y + y
type grid struct{ x, y, z int }

func (g grid) String() string { return fmt.Sprintf("%dx%dx%d", g.x, g.y, g.z) }

func (g grid) workers() int { return g.x * g.y * g.z }

// parseGrid reads 2x2x1; ok is false for auto.
func parseGrid(text string) (g grid, ok bool, err error) {
	if text == "auto" {
		return g, false, nil
	}
	words := strings.Split(text, "x")
	if len(words) != 3 {
		return g, false, fmt.Errorf("--axes is %q; it must be auto, or workers along three axes, such as 2x2x1", text)
	}
	for i, to := range []*int{&g.x, &g.y, &g.z} {
		n, err := strconv.Atoi(words[i])
		if err != nil || n < 1 || n > 1<<20 {
			return g, false, fmt.Errorf("--axes is %q; workers along an axis are a number from 1", text)
		}
		*to = n
	}
	return g, true, nil
}

// at is where a rank is.
func (g grid) at(rank int) grid { return grid{rank / g.y % g.x, rank % g.y, rank / g.y / g.x} }

func (g grid) rank(x, y, z int) int { return (z*g.x+x)*g.y + y }

// The axes: a group is the workers that differ in one coordinate, in its order.
const (
	alongX = iota
	alongY
	alongZ
)

func (g grid) along(axis int) int { return [...]int{g.x, g.y, g.z}[axis] }

// place is a rank's coordinate on an axis.
func (g grid) place(axis, rank int) int {
	p := g.at(rank)
	return [...]int{p.x, p.y, p.z}[axis]
}

// group is the ranks of a rank's group.
func (g grid) group(axis, rank int) (ranks []int) {
	p := g.at(rank)
	for i := range g.along(axis) {
		to := [...]int{p.x, p.y, p.z}
		to[axis] = i
		ranks = append(ranks, g.rank(to[0], to[1], to[2]))
	}
	return ranks
}

// grids are all of a number of workers.
func grids(workers int) (list []grid) {
	for x := 1; x <= workers; x++ {
		for y := 1; workers%x == 0 && y <= workers/x; y++ {
			if workers/x%y == 0 {
				list = append(list, grid{x, y, workers / x / y})
			}
		}
	}
	return list
}

// model predicts an epoch of a grid, by which one is chosen: seconds of its busiest worker to sum, to multiply, and to
// send. The rates are fixed, so that every run of a graph, a model and a number of workers chooses the same.
type model struct {
	vertices, edges float64
	layers          []nn.Product
	number          float64 // bytes of one
	sameServer      func(a, b int) bool
	rows            bool // products are made by rows' owners
	cached          bool // the sum over constant features is made once
}

// Rates of the model: numbers summed and operations of products per second of a worker, bytes per
// second inside a server and between servers, seconds of a message, and the numbers of a cache line:
// a row of a sum costs as much as one.
const (
	sumRate, productRate    = 1e10, 6e10
	insideRate, betweenRate = 5e9, 1.25e9
	messageTime             = 2e-6
	lineNumbers             = 16
)

// seconds is the predicted time of an epoch.
func (m *model) seconds(g grid) (s float64) {
	for _, l := range m.layers {
		s += m.layer(g, l)
	}
	return s
}

func (m *model) layer(g grid, l nn.Product) (s float64) {
	x, y, z := float64(g.x), float64(g.y), float64(g.z)
	sums := m.edges / (x * z) * float64(max((l.In+g.y-1)/g.y, lineNumbers)) / sumRate
	product := 2 * m.vertices / (x * y * z) * float64(l.In*l.Out) / productRate
	forward, backward := once(!(l.Constant && m.cached)), once(l.WantDX)
	s = sums*(forward+backward) + product*(2+backward)
	for axis, numbers := range m.sent(g, l, forward, backward) {
		s += numbers*m.vertices*m.number/m.rate(g, axis) + messageTime*exchanges*float64(g.along(axis)-1)
	}
	return s
}

// exchanges is about how many a layer has along an axis in an epoch.
const exchanges = 4

func once(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// sent is the numbers per vertex of the graph that a worker sends along each axis in a training pass.
func (m *model) sent(g grid, l nn.Product, forward, backward float64) (axis [3]float64) {
	x, y, z := float64(g.x), float64(g.y), float64(g.z)
	p, in, out := x*y*z, float64(l.In), float64(l.Out)
	share := func(n float64) float64 { return (n - 1) / n }
	// rows to blocks of columns and back
	axis[alongY] += (forward + backward) * share(y) * in / p
	// features gathered forward, their gradients scattered backward
	axis[alongZ] += (forward + backward) * share(z) * in / (x * y)
	if m.rows {
		axis[alongX] += (forward + backward) * share(x) * in / (y * z)
		axis[alongY] += (forward + backward) * share(y) * in / p
		return axis
	}
	axis[alongX] += (forward + backward) * 2 * share(x) * in / (y * z)
	axis[alongY] += 2 * share(y) * out / (x * z)
	axis[alongX] += 2 * share(x) * out / p
	return axis
}

// rate is the bytes per second of the slowest link of the groups along an axis.
func (m *model) rate(g grid, axis int) float64 {
	for _, q := range g.group(axis, 0) {
		if !m.sameServer(0, q) {
			return betweenRate
		}
	}
	return insideRate
}

// best is the grid with the least predicted time, the first of equals.
func (m *model) best(workers int) (best grid) {
	least := 0.0
	for i, g := range grids(workers) {
		if s := m.seconds(g); i == 0 || s < least {
			best, least = g, s
		}
	}
	return best
}

// modelOf is the model of a run.
func modelOf(w *exchange.Worker, rows bool) *model {
	b := w.Part.Book
	m := &model{vertices: float64(b.Nodes), edges: float64(b.Edges), number: float64(w.Dev.RowType(w.Rows).Size()),
		sameServer: func(p, q int) bool { return b.Servers <= 1 || b.Server(p) == b.Server(q) }, rows: rows,
		cached: w.CacheFirst}
	on := nn.New(w.Dev, w.Model, w.Seed)
	defer on.Free(w.Dev)
	for i := range on.Convs() {
		if l, ok := on.Product(i, w.SparseFeatures(), true); ok {
			m.layers = append(m.layers, l)
		}
	}
	return m
}
