package generate

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// shape is the published size of a dataset, as its usual loader gives it.
type shape struct {
	name             string
	nodes, edges     int64 // edges as stored, both directions where the loader adds the reverse
	directed         bool
	symmetrized      int64 // stored edges once a directed one is symmetrized
	features         int
	classes          int
	train, val, test int64
	homophily        float64 // share of edges inside a class, about; a guess where labels are many
	signal           float64 // chosen so that features alone are about as weak as the real ones
	multiLabel       bool
}

var shapes = []shape{
	{"ogbn-arxiv", 169_343, 1_166_243, true, 2_315_598, 128, 40, 90_941, 29_799, 48_603, 0.65, 2, false},
	{"ogbn-products", 2_449_029, 123_718_280, false, 0, 100, 47, 196_615, 39_323, 2_213_091, 0.81, 1.5, false},
	{"reddit", 232_965, 114_615_892, false, 0, 602, 41, 153_431, 23_831, 55_703, 0.76, 2, false},
	{"yelp", 716_847, 13_954_819, false, 0, 300, 100, 537_635, 71_685, 107_527, 0.6, 2, true},
	{"flickr", 89_250, 899_756, false, 0, 500, 7, 44_625, 22_312, 22_313, 0.32, 1.5, false},
	{"amazon", 1_569_960, 264_339_468, false, 0, 200, 107, 1_334_466, 78_498, 156_996, 0.6, 2, true},
	{"ogbn-papers100M", 111_059_956, 1_615_685_872, true, 3_228_124_712, 128, 172, 1_207_179, 125_265, 214_338, 0.57,
		2, false},
}

// LikeNames lists what Like knows.
func LikeNames() []string {
	var names []string
	for _, s := range shapes {
		names = append(names, s.name)
	}
	return names
}

// Like gives the parameters of a block model with the published numbers of
// vertices, edges, features, classes and split sizes of a public dataset,
// vertices and edges times scale. A dataset published with one-way edges stays so
// unless symmetrize is set; the others are symmetric already. Call Fit after the
// last change of the parameters.
func Like(name string, scale float64, symmetrize bool) (Params, error) {
	at := slices.IndexFunc(shapes, func(s shape) bool { return s.name == name })
	if at < 0 {
		return Params{}, badParam("like", fmt.Sprintf("%q", name), strings.Join(LikeNames(), ", "))
	}
	if !(scale > 0 && scale <= 100) {
		return Params{}, badParam("scale", fmt.Sprint(scale), "above 0, up to 100")
	}
	s := shapes[at]
	if symmetrize && s.directed {
		s.directed, s.edges = false, s.symmetrized
	}
	p := DefaultParams()
	p.Name = name + "-like"
	p.Nodes = max(int64(math.Round(float64(s.nodes)*scale)), int64(2*s.classes))
	p.Edges = int64(math.Round(float64(s.edges) * scale))
	p.Directed, p.Features, p.Classes, p.Homophily, p.Signal = s.directed, s.features, s.classes, s.homophily, s.signal
	n := float64(s.nodes)
	p.Train, p.Val, p.Test = float64(s.train)/n, float64(s.val)/n, float64(s.test)/n
	p.Notes = append(p.Notes, fmt.Sprintf("generated with the published shape of %s at scale %g; no vertex, edge or feature of the original is in it", name, scale))
	if s.multiLabel {
		p.Notes = append(p.Notes, fmt.Sprintf("the original has %d labels that may hold at once; here each vertex has one of %d classes", s.classes, s.classes))
	}
	return p, nil
}

// Fit lowers the number of edges, then homophily, as far as the number of vertices needs:
// a scaled-down dense graph has too few pairs of vertices for its degree.
func (p *Params) Fit() {
	const densest = 0.2
	n := float64(p.Nodes)
	if most := int64(densest * n * (n - 1)); p.Edges > most {
		p.Notes = append(p.Notes, fmt.Sprintf("%d edges are too many for %d vertices: %d instead", p.Edges, p.Nodes,
			most))
		p.Edges = most
	}
	if p.Classes == 0 {
		return
	}
	degree, size := float64(p.Edges)/n, n/float64(p.Classes)
	if most := densest * size / degree; p.Homophily > most {
		p.Notes = append(p.Notes, fmt.Sprintf("classes of %.0f vertices are too small for homophily %g at degree %.0f: %.2f instead", size, p.Homophily, degree, most))
		p.Homophily = most
	}
}
