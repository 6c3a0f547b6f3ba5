package multilevel

// tuning holds the settings of the stages for a kind of graph.
type tuning struct {
	maxCluster      int64 // the most vertices that become one in a level
	rounds          int   // of label propagation
	finestRounds    int   // of label propagation at the finest level
	balls           bool  // start label propagation from balls
	coarsestPerPart int   // vertices per part in the coarsest graph
	coarsest        int   // the fewest vertices in the coarsest graph
	sparsify        bool  // drop light edges of coarse levels
	hubs            bool  // some vertices have very many edges

	tries int // bisections of each piece
	seeds int // vertices that each of them grows from

	localRounds int // of localized searches

	// Another FM pass follows only if the cut gained in the last one is at least one per
	// gainPerPass boundary vertices; 0: if it gained at all.
	gainPerPass int64
}

// Where degrees vary much, whole communities collapse at once, and should: the graph
// shrinks to a hundredth in one level, and the cut is the better for it. A mesh has no
// communities, and loses its shape unless it shrinks gently.
//
// Small graphs whose degrees vary much keep all edges, and limits of coarse levels are wider: the
// cut of R-MAT is up to 10% smaller. Dense ones shrink gently: whole communities would be larger
// than a part's share (web-like, 7 and 8 parts: 4% smaller).
//
// Small graphs with even degrees need less: half the tries and no localized searches;
// where parts are large, balls alone, fewer seeds, and no pass after one that gained next
// to nothing. Their cuts are up to 4% worse for it. Meshes with missing edges would lose
// 10% and geometric graphs 17%: they are cut as other graphs.
var (
	tunedSkewed = tuning{maxCluster: 1 << 20, rounds: 2, finestRounds: 2, coarsestPerPart: 40, coarsest: 2000,
		sparsify: true, hubs: true, tries: 4, seeds: 6}
	tunedDense = tuning{maxCluster: 8, rounds: 2, finestRounds: 2, coarsestPerPart: 40, coarsest: 600,
		hubs: true, tries: 4, seeds: 6}
	tunedSkewedSmall = tuning{maxCluster: 1 << 20, rounds: 2, finestRounds: 2, coarsestPerPart: 40, coarsest: 600,
		hubs: true, tries: 4, seeds: 6, localRounds: 1}
	tunedGeneral = tuning{maxCluster: 8, rounds: 1, finestRounds: 1, balls: true, coarsestPerPart: 30, coarsest: 600,
		tries: 4, seeds: 6, localRounds: 1}
	tunedMesh = tuning{maxCluster: 8, rounds: 1, finestRounds: 1, balls: true, coarsestPerPart: 30, coarsest: 600,
		tries: 2, seeds: 6}
	tunedMeshLargeParts = tuning{maxCluster: 8, rounds: 1, balls: true, coarsestPerPart: 30, coarsest: 600,
		tries: 2, seeds: 4, gainPerPass: 300}
)

// largePart is the number of vertices from which on a part of a mesh is large.
const largePart = 512

// dense is the mean degree from which on a small graph is dense.
const dense = 32

// tuningFor is how to partition g into k parts.
func (g *levelGraph) tuningFor(k int) tuning {
	switch {
	case g.skewed() && g.edges() <= sequentialEdges && g.edges() >= dense*int64(g.n):
		return tunedDense
	case g.skewed() && g.edges() <= sequentialEdges:
		return tunedSkewedSmall
	case g.skewed():
		return tunedSkewed
	case g.vw != nil || g.edges() > cacheSized || !g.regular():
		return tunedGeneral
	case g.n >= largePart*k:
		return tunedMeshLargeParts
	}
	return tunedMesh
}

// skewed reports whether some degrees are far above the mean.
func (g *levelGraph) skewed() bool {
	most := 0
	for v := range uint32(g.n) {
		most = max(most, g.degree(v))
	}
	return int64(most)*int64(g.n) > 8*g.edges()
}

// regular tells whether nearly all vertices have equal degrees, as in a mesh: the variance
// is below a tenth of the mean, to which it is equal in a random graph.
func (g *levelGraph) regular() bool {
	squares := 0
	for v := range uint32(g.n) {
		squares += g.degree(v) * g.degree(v)
	}
	mean := float64(g.edges()) / float64(g.n)
	return float64(squares)/float64(g.n)-mean*mean < mean/10
}
