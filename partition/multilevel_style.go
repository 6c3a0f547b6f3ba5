package partition

// mlStyle is how to cut.
type mlStyle struct {
	shrink  int64 // the most vertices that become one in a step
	rounds  int   // of label propagation
	balls   bool  // to start it with
	perPart int   // vertices for each part in the coarsest graph
	fewest  int   // vertices in the coarsest graph
	trim    bool  // light edges

	tries int // at every bisection
	seeds int // that each of them grows from

	searches int // rounds of local
	finest   int // rounds of label propagation at the finest level

	worth int64 // one in so many vertices of the boundary must gain in a pass for another to follow; 0: one at all
}

// Where degrees vary much, whole communities collapse at once, and should: in one
// step the graph is a hundredth, and the cut is the better for it. A mesh has no
// communities, and loses its shape unless it shrinks gently.
//
// In a small graph with even degrees less will do: half the tries and no searches, and
// where parts are large, balls as they are, fewer seeds, and no pass of refinement after one
// that gained next to nothing. Cuts are up to 4% worse than with all of it; where edges of a mesh are missing here and there they would be 10%
// worse, on geometric graphs 17%.
var (
	mlBold   = mlStyle{shrink: 1 << 20, rounds: 2, perPart: 40, fewest: 2000, trim: true, tries: 4, seeds: 6, finest: 2}
	mlGentle = mlStyle{shrink: 8, rounds: 1, balls: true, perPart: 30, fewest: 600, tries: 4, seeds: 6, searches: 1, finest: 1}
	mlMesh   = mlStyle{shrink: 8, rounds: 1, balls: true, perPart: 30, fewest: 600, tries: 2, seeds: 6, finest: 1}
	mlCoarse = mlStyle{shrink: 8, rounds: 1, balls: true, perPart: 30, fewest: 600, tries: 2, seeds: 4, worth: 300}
)

// mlLargePart vertices of a mesh are a large part.
const mlLargePart = 512

// style is how to cut g into k parts.
func (g *mlGraph) style(k int) mlStyle {
	switch {
	case g.skewed():
		return mlBold
	case g.vw != nil || g.off[g.n] > mlTiny || !g.even():
		return mlGentle
	case g.n >= mlLargePart*k:
		return mlCoarse
	}
	return mlMesh
}

// skewed tells whether some degrees are far above the mean.
func (g *mlGraph) skewed() bool {
	most := 0
	for v := range uint32(g.n) {
		most = max(most, g.degree(v))
	}
	return int64(most)*int64(g.n) > 8*g.off[g.n]
}

// even tells whether nearly all vertices have as many neighbours, as in a mesh: their
// variance is below a tenth of what chance would make it, the mean.
func (g *mlGraph) even() bool {
	squares := 0
	for v := range uint32(g.n) {
		squares += g.degree(v) * g.degree(v)
	}
	mean := float64(g.off[g.n]) / float64(g.n)
	return float64(squares)/float64(g.n)-mean*mean < mean/10
}
