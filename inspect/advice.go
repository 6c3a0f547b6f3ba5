package inspect

import (
	"fmt"
	"math"
	"strings"

	"starling/event"
	"starling/graph"
)

// Where advice begins.
const (
	rareClass     = 0.2       // share of the rarest of two classes
	aboveChance   = 0.05      // of that share, for neighbours to be a guess
	sameClass     = 0.5       // share of edges inside a class
	manyVertices  = 1_000_000 // from which on mini-batches are worth trying first
	farFromNormal = 100       // largest feature
	mostNamed     = 5         // columns
)

// advice is what to do about what was found, and why.
func (i *Info) advice(d *graph.Dataset, columns []column, repeated int64) (list []remark) {
	add := func(what, why string, args ...any) { list = append(list, remark{what, fmt.Sprintf(why, args...)}) }
	for _, w := range i.Warnings {
		add("Look at this", "%s", w)
	}
	if n := count(columns, func(c *column) bool { return c.why != "" }); n > 0 {
		add("Leave out suspicious columns", "%s below would give the answer away, or tell nothing",
			event.Counted(n, "column"))
	}
	if missing := count(columns, func(c *column) bool { return c.missing > 0 }); missing > 0 {
		add("Fill missing values", "%s have some; import with --missing mean", event.Counted(missing, "column"))
	}
	if x := float64(i.Reciprocity); !i.Symmetric && !d.Typed() && x < 0.9 {
		add("Try import with --symmetrize", "messages go along edges only, and %s of them have their reverse; a "+
			"vertex "+
			"that is only a source, as %s of all are, sees nothing. Leave it where the direction means something",
			share(x),
			share(float64(i.Isolated)/float64(max(i.Vertices, 1))))
	}
	i.adviseScale(d, columns, add)
	adviseBalance(i.Task, i.ClassSizes, add)
	for k := range i.Types {
		adviseBalance(i.Types[k].Task, i.Types[k].ClassSizes, add)
	}
	if repeated > 0 && d.Graph.EdgeTimes == nil && d.Graph.EdgeDim == 0 && d.Graph.Weights == nil {
		add("Drop or weigh repeated edges", "%d edges are there more than once, and count more than once", repeated)
	}
	i.adviseModel(d, add)
	return list
}

func count(columns []column, is func(c *column) bool) (n int) {
	for k := range columns {
		if is(&columns[k]) {
			n++
		}
	}
	return n
}

// adviseScale is about columns with large numbers.
func (i *Info) adviseScale(d *graph.Dataset, columns []column, add func(what, why string, args ...any)) {
	var far []string
	for k := range columns {
		if c := &columns[k]; math.Abs(c.max) > farFromNormal || math.Abs(c.min) > farFromNormal {
			far = append(far, c.name)
		}
	}
	const why = "; models learn best where columns have a mean of 0 and a deviation of 1"
	switch {
	case i.Standardized || far == nil:
	case d.Typed():
		more := ""
		if n := len(far) - mostNamed; n > 0 {
			far, more = far[:mostNamed], " and "+event.Counted(n, "column")+" more"
		}
		add("Write standardize: true in the schema", "numbers are large in %s%s"+why, strings.Join(far, ", "), more)
	default:
		add("Import with --standardize", "features go from %s"+why, i.FeatureRange)
	}
}

// adviseBalance is about classes of which one is rare.
func adviseBalance(task string, sizes []int64, add func(what, why string, args ...any)) {
	all, least, most := int64(0), int64(math.MaxInt64), int64(0)
	for _, n := range sizes {
		all += n
		if n > 0 {
			least, most = min(least, n), max(most, n)
		}
	}
	if all == 0 || task != string(graph.SingleLabel) ||
		float64(least) >= rareClass*float64(all)/float64(len(sizes))*2 {
		return
	}
	add("Do not trust the accuracy", "always answering the commonest class is right for %s; the rarest has %s (%d "+
		"vertices). Weigh classes, and compare models by average precision or macro-F1",
		share(float64(most)/float64(all)),
		share(float64(least)/float64(all)), least)
}

// adviseModel says what to train first.
func (i *Info) adviseModel(d *graph.Dataset, add func(what, why string, args ...any)) {
	mini := ""
	if i.Vertices >= manyVertices {
		mini = " --mode mini"
	}
	h := float64(i.Homophily)
	switch {
	case d.Typed():
		add("Train --model rgcn"+mini, "the graph has types: relations have weights of their own")
		return
	case d.Times != nil:
		model := "sage"
		if i.EdgeDim > 0 {
			model = "gin --edge-features"
		}
		add("Train --mode mini --model "+model+" --temporal uniform",
			"vertices have times, and a vertex should see what "+
				"was before its own")
	case i.EdgeDim > 0:
		add("Train --model gin --edge-features"+mini, "edges have features (%d), and gin or gat look at them",
			i.EdgeDim)
	case h >= sameClass && h >= i.chance()+aboveChance:
		add("Train --model gcn"+mini, "%s of the edges join vertices of one class: neighbours are a good guess",
			share(h))
	case !math.IsNaN(h):
		add("Train --model sage"+mini, "%s of the edges join vertices of one class, and %s would by chance: the "+
			"model "+
			"should tell a vertex from its neighbours. Compare with --model mlp, which looks at no edge", share(h),
			share(i.chance()))
	}
	if d.Features == nil && !d.Typed() {
		add("Train with --learn-embeddings", "vertices have no features, so a row for each is to be learnt")
	}
}

// chance is the share of edges that would join vertices of one class if classes were drawn anew.
func (i *Info) chance() (sum float64) {
	all := int64(0)
	for _, n := range i.ClassSizes {
		all += n
	}
	for _, n := range i.ClassSizes {
		sum += float64(n) / float64(max(all, 1)) * float64(n) / float64(max(all, 1))
	}
	return sum
}
