package generate

import (
	"fmt"
	"math"
	"math/big"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"starling/dataset"
	"starling/event"
	"starling/graph"
	"starling/rng"
)

// Typed graphs in which types matter. Vertices of the target type have a class; those of other types have a group,
// which is two classes. Classes come in cycles of four, c → next(c): groups are the opposite classes of a cycle.
//
//	target to target  an edge leads, with probability Homophily, from class c to next(c), else anywhere
//	others            an edge joins a class and its group, or two equal groups, as often
//
// In-edges of c come from the class before it, out-edges lead to the one after. Who looks at the neighbours of c and
// not at the relation sees both, as of the opposite class; groups tell as little. So a model blind to relations has to
// tell opposite classes by a vertex's own features. The last classes, if their number is no multiple of four, stay
// among themselves.
//
// A class or group is a function of the id: edges are drawn without tables, in chunks, on all cores.

// TypedKind is the kind of these graphs, beside Kinds.
const TypedKind = "typed"

// typedShape is the published shape of a typed dataset.
type typedShape struct {
	name             string
	types            []typeShape
	relations        []relationShape
	target           int
	features         int
	classes          int
	train, val, test float64
	signal           float64
	note             string
	scale            float64 // of what was asked for
}

type typeShape struct {
	name     string
	count    int64
	features bool
}

type relationShape struct {
	source, name, target string
	edges                int64
}

var typedShapes = []typedShape{
	{name: "small", types: []typeShape{{"paper", 4000, true}, {"author", 3000, false}, {"field", 200, false}},
		relations: []relationShape{{"paper", "cites", "paper", 24_000}, {"author", "writes", "paper", 12_000},
			{"paper", "has_topic", "field", 12_000}},
		features: 64, classes: 8, train: 0.3, val: 0.2, test: 0.5, signal: 1.5},
	{name: "store", types: []typeShape{{"item", 1000, true}, {"user", 3000, false}, {"brand", 40, false}},
		relations: []relationShape{{"user", "buys", "item", 30_000}, {"user", "views", "item", 30_000},
			{"item", "made_by", "brand", 1000}},
		features: 32, classes: 16, train: 0.6, val: 0.2, test: 0.2, signal: 2},
	{name: "ogbn-mag", types: []typeShape{{"paper", 736_389, true}, {"author", 1_134_649, false},
		{"institution", 8_740, false}, {"field_of_study", 59_965, false}},
		relations: []relationShape{{"author", "affiliated_with", "institution", 1_043_998},
			{"author", "writes", "paper", 7_145_660}, {"paper", "cites", "paper", 5_416_271},
			{"paper", "has_topic", "field_of_study", 7_505_078}},
		features: 128, classes: 349, signal: 4,
		train: 629_571. / 736_389, val: 64_879. / 736_389, test: 41_939. / 736_389},
	{name: "igbh", types: []typeShape{{"paper", 269_346_174, true}, {"author", 277_220_883, true},
		{"institute", 26_918, true}, {"fos", 712_960, true}, {"journal", 49_052, true}, {"conference", 4_547, true}},
		relations: []relationShape{{"paper", "cites", "paper", 3_996_442_004}, {"paper", "written_by", "author",
			716_761_549},
			{"author", "affiliated_to", "institute", 48_521_486}, {"paper", "topic", "fos", 1_050_280_600},
			{"paper", "published", "journal", 134_673_087}, {"paper", "venue", "conference", 13_467_308}},
		features: 1024, classes: 2983, train: 0.6, val: 0.2, test: 0.2, signal: 6,
		note: "edges of published and venue are assumed: half and a twentieth of the papers"},
}

// TypedNames lists what LikeTyped knows.
func TypedNames() (names []string) {
	for i := range typedShapes {
		names = append(names, typedShapes[i].name)
	}
	return names
}

// LikeTyped gives the parameters of a typed graph of a known shape, vertices and edges times scale.
func LikeTyped(name string, scale float64) (Params, error) {
	at := slices.IndexFunc(typedShapes, func(s typedShape) bool { return s.name == name })
	if at < 0 {
		return Params{}, badParam("like", fmt.Sprintf("%q", name), strings.Join(TypedNames(), ", "))
	}
	if !(scale > 0 && scale <= 100) {
		return Params{}, badParam("scale", fmt.Sprint(scale), "above 0, up to 100")
	}
	s := typedShapes[at]
	s.scale, s.types, s.relations = scale, slices.Clone(s.types), slices.Clone(s.relations)
	p := DefaultParams()
	for i := range s.types {
		t := &s.types[i]
		t.count = max(int64(math.Round(float64(t.count)*scale)), 4)
		if i == s.target {
			t.count = max(t.count, int64(2*s.classes))
		}
	}
	for i := range s.relations {
		s.relations[i].edges = max(int64(math.Round(float64(s.relations[i].edges)*scale)), 1)
	}
	p.typed, p.Name, p.Features, p.Classes, p.Signal = &s, name+"-like", s.features, s.classes, s.signal
	p.Train, p.Val, p.Test, p.Homophily = s.train, s.val, s.test, 0.8
	p.Notes = append(p.Notes,
		fmt.Sprintf("generated with the shape of %s at scale %g; no vertex, edge or feature of an original is in it",
			name, scale))
	if s.note != "" {
		p.Notes = append(p.Notes, s.note)
	}
	return p, nil
}

// RelationSize is the size of a relation: the vertices of the types at its ends, and its edges.
type RelationSize struct{ Sources, Targets, Edges int64 }

// Relations are the sizes of a typed graph's relations, reverse ones included.
func (p Params) Relations() (list []RelationSize) {
	count := map[string]int64{}
	for _, t := range p.typed.types {
		count[t.name] = t.count
	}
	for _, r := range p.typed.relations {
		list = append(list, RelationSize{count[r.source], count[r.target], r.edges})
		if !p.Directed {
			list = append(list, RelationSize{count[r.target], count[r.source], r.edges})
		}
	}
	return list
}

// Sizes are the vertices of a typed graph, those of its target type, and those without features.
func (p Params) Sizes() (vertices, target, bare int64) {
	for i, t := range p.typed.types {
		vertices += t.count
		if i == p.typed.target {
			target = t.count
		}
		if !t.features {
			bare += t.count
		}
	}
	return vertices, target, bare
}

func (p Params) validateTyped() error {
	var nodes, edges int64
	for _, t := range p.typed.types {
		nodes += t.count
	}
	for _, r := range p.typed.relations {
		edges += r.edges
	}
	if !p.Directed {
		edges *= 2
	}
	switch {
	case nodes > graph.MaxNodes || edges > graph.MaxEdges:
		return badParam("scale", fmt.Sprintf("%s and %s", event.Tally(nodes, "vertex"), event.Tally(edges, "edge")),
			"fewer: a smaller scale")
	case p.Features < 1 || p.Features > 1<<20:
		return badParam("features", fmt.Sprint(p.Features), "1 to 2^20")
	case p.Classes < 4 || p.Classes > 1<<16 || int64(p.Classes) > p.typed.types[p.typed.target].count:
		return badParam("classes", fmt.Sprint(p.Classes), "4 to 65536, and no more than vertices of the target type")
	case !(p.Signal >= 0 && p.Signal <= 1e6):
		return badParam("signal", fmt.Sprint(p.Signal), "0 to a million")
	case !(p.Homophily >= 0 && p.Homophily <= 1):
		return badParam("homophily", fmt.Sprint(p.Homophily), "a share from 0 to 1")
	}
	return dataset.CheckFractions(p.Train, p.Val, p.Test)
}

// typedBytes is about the size on disk; each is the bytes of a feature.
func (p Params) typedBytes(each int64) (n int64) {
	for _, t := range p.typed.types {
		n += 8 * t.count
		if t.features {
			n += t.count * int64(p.Features) * each
		}
	}
	n += 4 * p.typed.types[p.typed.target].count
	for _, r := range p.typed.relations {
		if n += 6 * r.edges; !p.Directed {
			n += 6 * r.edges
		}
	}
	return n
}

// typedModel draws one graph.
type typedModel struct {
	p      Params
	schema *graph.Schema
	ranges []scramble
}

// scramble is a permutation of 0 to n-1: x → a·x + b mod n. Class or group of a vertex is its place modulo their
// number.
type scramble struct{ n, a, inverse, b uint64 }

func newScramble(n int64, k rng.Key) scramble {
	s := scramble{n: uint64(n), b: k.Uint64(0) % uint64(n)}
	for i := uint64(1); ; i++ {
		s.a = k.Uint64(i)%s.n | 1
		if x := new(big.Int).ModInverse(new(big.Int).SetUint64(s.a%s.n), new(big.Int).SetUint64(s.n)); x != nil ||
			s.n == 1 {
			if x != nil {
				s.inverse = x.Uint64()
			}
			return s
		}
	}
}

// place is where a vertex is in the scrambled order, at the vertex there. Both fit 64 bits, as n is below 2^32.
func (s scramble) place(v uint64) uint64 { return (s.a%s.n*v + s.b) % s.n }
func (s scramble) at(place uint64) uint64 {
	return (place + s.n - s.b) % s.n * s.inverse % s.n
}

func (m *typedModel) target() int { return m.p.typed.target }

// groups is how many groups there are: two per cycle, and the classes that are left over.
func (m *typedModel) groups() int { return m.p.Classes/4*2 + m.p.Classes%4 }

// kinds is how many classes or groups a type has.
func (m *typedModel) kinds(t int) int {
	if t == m.target() {
		return m.p.Classes
	}
	return m.groups()
}

func (m *typedModel) kindOf(t int, v uint64) int {
	return int(m.ranges[t].place(v) % uint64(m.kinds(t)))
}

// next is the class after c.
func (m *typedModel) next(c int) int {
	if c >= m.p.Classes/4*4 {
		return c
	}
	return c&^3 | (c+1)&3
}

// group is the group of a class; classOf one of the two classes of a group.
func (m *typedModel) group(c int) int {
	if whole := m.p.Classes / 4 * 4; c >= whole {
		return whole/2 + c - whole
	}
	return c/4*2 + c&1
}

func (m *typedModel) classOf(group, which int) int {
	if whole := m.p.Classes / 4 * 4; group >= whole/2 {
		return whole + group - whole/2
	}
	return group/2*4 + group&1 + 2*which
}

// member draws a vertex of a type and kind; the first in the scrambled order are drawn most often.
func (m *typedModel) member(t, kind int, u float64) uint64 {
	s := m.ranges[t]
	kinds := uint64(m.kinds(t))
	count := (s.n + kinds - 1 - uint64(kind)) / kinds
	if uint64(kind) >= s.n { // a small type has not all
		return m.anyone(t, u)
	}
	return s.at(uint64(kind) + kinds*min(uint64(u*u*float64(count)), count-1))
}

// anyone draws a vertex of a type.
func (m *typedModel) anyone(t int, u float64) uint64 {
	s := m.ranges[t]
	return s.at(min(uint64(u*u*float64(s.n)), s.n-1))
}

// edge draws edge i of a relation, as vertices within their types.
func (m *typedModel) edge(r *graph.Relation, k rng.Key, i uint64) (src, dst uint64) {
	k = k.Fold(i)
	src = uint64(k.IntN(0, int(m.ranges[r.Source].n)))
	if k.Float64(1) >= m.p.Homophily {
		return src, m.anyone(r.Target, k.Float64(2))
	}
	kind := m.kindOf(r.Source, src)
	switch paper := m.target(); {
	case r.Source == paper && r.Target == paper:
		kind = m.next(kind)
	case r.Source == paper:
		kind = m.group(kind)
	case r.Target == paper:
		kind = m.classOf(kind, k.IntN(3, 2))
	}
	return src, m.member(r.Target, kind, k.Float64(2))
}

// typedDataset draws a typed graph and writes it to the folder out.
func (p Params) typedDataset(out string) (dataset.Summary, error) {
	if err := p.validate(); err != nil {
		return dataset.Summary{}, err
	}
	w, err := graph.Create(out, graph.WriterOptions{Overwrite: p.Overwrite})
	if err != nil {
		return dataset.Summary{}, err
	}
	defer w.Abort()
	w.Meta.Source, w.Meta.Notes = p.describeTyped(), p.Notes
	if p.Name != "" {
		w.Meta.Name = p.Name
	}
	m := newTypedModel(p)
	w.Meta.Schema = m.schema
	for t := range p.typed.types {
		if err := m.writeType(w, t); err != nil {
			return dataset.Summary{}, err
		}
	}
	if err := m.writeEdges(w); err != nil {
		return dataset.Summary{}, err
	}
	return dataset.Commit(w, graph.Splits{})
}

func (p Params) describeTyped() string {
	s := fmt.Sprintf("generate typed --like %s --scale %g --features %d --classes %d --signal %g "+
		"--homophily %g --seed %d --train %g --val %g --test %g",
		p.typed.name, p.typed.scale, p.Features, p.Classes, p.Signal, p.Homophily, p.Seed, p.Train, p.Val, p.Test)
	if p.Directed {
		s += " --directed"
	}
	return s
}

func newTypedModel(p Params) *typedModel {
	m := &typedModel{p: p, schema: &graph.Schema{}}
	var first int64
	for t, shape := range p.typed.types {
		m.schema.Types = append(m.schema.Types, graph.VertexType{Name: shape.name, First: first, Count: shape.count})
		m.ranges = append(m.ranges, newScramble(shape.count, rng.New(p.Seed).Fold(scrambleStream).Fold(uint64(t))))
		first += shape.count
	}
	for _, r := range p.typed.relations {
		rel := graph.Relation{Source: m.schema.Type(r.source), Name: r.name, Target: m.schema.Type(r.target),
			Edges: r.edges}
		if p.Directed {
			m.schema.Relations = append(m.schema.Relations, rel)
			continue
		}
		rel.Reverse = "rev_" + r.name
		back := graph.Relation{Source: rel.Target, Name: rel.Reverse, Target: rel.Source, Reverse: r.name,
			Edges: r.edges}
		m.schema.Relations = append(m.schema.Relations, rel, back)
	}
	m.schema.SortRelations()
	return m
}

// writeType writes features, and of the target type labels and splits.
func (m *typedModel) writeType(w *graph.Writer, t int) error {
	shape, p := &m.p.typed.types[t], m.p
	if shape.features {
		kind := graph.Dense
		if p.BFloat16 {
			kind = graph.BFloat16
		}
		a, err := w.TypeFeatureRows(t, kind, p.Features)
		if err != nil {
			return err
		}
		if err := p.writeRows(a, shape.count, m.rowDrawer(t)); err != nil {
			return err
		}
	}
	if t != m.target() {
		return nil
	}
	l := p.typedLabels(shape.count, m)
	s, err := dataset.SplitByFraction(int(shape.count), l, p.Train, p.Val, p.Test,
		rng.New(p.Seed).Fold(dataset.SplitStream))
	if err != nil {
		return err
	}
	for _, part := range [][]uint32{s.Train, s.Val, s.Test} {
		for i := range part {
			part[i] += uint32(m.schema.Types[t].First)
		}
	}
	return w.Type(t, nil, l, s)
}

func (p Params) typedLabels(n int64, m *typedModel) *graph.Labels {
	p.Nodes = n
	return p.labels(func(v uint64) int { return m.kindOf(m.target(), v) })
}

// rowDrawer draws features around the centre of a class, or around the middle of a group's two.
func (m *typedModel) rowDrawer(t int) func(row []float32, v uint64) {
	centres, k, table := m.p.centres(), rng.New(m.p.Seed).Fold(noiseStream).Fold(uint64(t)), normalTable()
	return func(row []float32, v uint64) {
		kind := m.kindOf(t, v)
		if t == m.target() {
			copy(row, centres[kind])
		} else {
			one, other := centres[m.classOf(kind, 0)], centres[m.classOf(kind, 1)]
			for i := range row {
				row[i] = (one[i] + other[i]) / 2
			}
		}
		addNormals(row, k.Fold(v), table)
	}
}

// drawnEdges is how many edges are drawn at a time.
const drawnEdges = 1 << 16

// writeEdges draws the relations in chunks and sorts them.
func (m *typedModel) writeEdges(w *graph.Writer) error {
	var total int64
	type chunk struct {
		relation, reverse int // -1: none
		lo, hi            int64
	}
	var chunks []chunk
	s := m.schema
	for r := range s.Relations {
		total += s.Relations[r].Edges
		back := slices.IndexFunc(s.Relations, func(o graph.Relation) bool {
			return o.Reverse == s.Relations[r].Name && o.Name == s.Relations[r].Reverse &&
				o.Source == s.Relations[r].Target
		})
		if strings.HasPrefix(s.Relations[r].Name, "rev_") {
			continue
		}
		for lo := int64(0); lo < s.Relations[r].Edges; lo += drawnEdges {
			chunks = append(chunks, chunk{r, back, lo, min(lo+drawnEdges, s.Relations[r].Edges)})
		}
	}
	last := s.Types[len(s.Types)-1]
	sorter := w.Sorter(int(last.End()), total, false, graph.BuildOptions{})
	defer sorter.Close()
	sorter.Typed()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				k := next.Add(1) - 1
				if k >= int64(len(chunks)) {
					return
				}
				c := chunks[k]
				src, dst := m.draw(c.relation, c.lo, c.hi)
				err := sorter.AddRelation(2*k, src, dst, c.relation)
				if err == nil && c.reverse >= 0 {
					err = sorter.AddRelation(2*k+1, dst, src, c.reverse)
				} else if err == nil {
					err = sorter.AddRelation(2*k+1, nil, nil, c.relation)
				}
				if err != nil {
					return // the sorter keeps it
				}
				m.p.report("draw edges", k+1, int64(len(chunks)))
			}
		})
	}
	wg.Wait()
	return sorter.Finish()
}

// draw draws edges lo to hi of a relation.
func (m *typedModel) draw(r int, lo, hi int64) (src, dst []uint32) {
	rel := &m.schema.Relations[r]
	k := rng.New(m.p.Seed).Fold(relationStream)
	for _, c := range []byte(rel.Name) {
		k = k.Fold(uint64(c))
	}
	src, dst = make([]uint32, hi-lo), make([]uint32, hi-lo)
	for i := range src {
		u, v := m.edge(rel, k, uint64(lo)+uint64(i))
		src[i] = uint32(u) + uint32(m.schema.Types[rel.Source].First)
		dst[i] = uint32(v) + uint32(m.schema.Types[rel.Target].First)
	}
	return src, dst
}
