package partition

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"starling/event"
	"starling/graph"
)

// checkRanges checks one part by itself: what a reader would access memory by always; contents that take longer
// if they are small or all is set.
func (p *Part) checkRanges(all bool) error {
	m := &p.Meta
	for _, a := range []struct {
		name  string
		ptr   []int64
		total int64
	}{{"indptr", p.In.Indptr, m.Edges}, {"halo_indptr", p.HaloPtr, m.Halo}, {"send_indptr", p.SendPtr, m.Sent}} {
		if err := checkOffsets(a.name, a.ptr, a.total); err != nil {
			return err
		}
	}
	if i := slices.IndexFunc(p.Send, func(v uint32) bool { return int64(v) >= m.Core }); i >= 0 {
		return badBook("send", p.Send[i], fmt.Sprintf("core vertices below %d", m.Core))
	}
	if err := p.checkHalo(); err != nil {
		return err
	}
	checks := []func(all bool) error{p.checkNumbers, p.checkRows, p.checkData}
	if p.Book.Schema != nil {
		checks = append(checks, p.checkTypes)
	}
	for _, check := range checks {
		if err := check(all); err != nil {
			return err
		}
	}
	return nil
}

func checkOffsets(name string, ptr []int64, total int64) error {
	if ptr[0] != 0 || ptr[len(ptr)-1] != total {
		return badBook(name, fmt.Sprintf("%d to %d", ptr[0], ptr[len(ptr)-1]), fmt.Sprintf("0 to %d", total))
	}
	for i := 1; i < len(ptr); i++ {
		if ptr[i] < ptr[i-1] {
			return badBook(name, fmt.Sprintf("%d after %d", ptr[i], ptr[i-1]), "offsets that never fall")
		}
	}
	return nil
}

// checkHalo checks that each owner's range of the halo is its own, ascending.
func (p *Part) checkHalo() error {
	b := p.Book
	if p.HaloPtr[p.Meta.Part] != p.HaloPtr[p.Meta.Part+1] || p.SendPtr[p.Meta.Part] != p.SendPtr[p.Meta.Part+1] {
		return badBook("halo", "vertices of the part itself", "vertices of others")
	}
	for q := range b.Parts {
		last := b.Offsets[q] - 1
		for _, v := range p.HaloOf(q) {
			if int64(v) <= last || int64(v) >= b.Offsets[q+1] {
				return badBook("halo", v,
					fmt.Sprintf("ascending numbers of part %d, %d to %d", q, b.Offsets[q], b.Offsets[q+1]-1))
			}
			last = int64(v)
		}
	}
	return nil
}

// checkTypes checks that rows are in the order of relations, then of neighbours, and that the ends of every edge are of the
// types of its relation.
func (p *Part) checkTypes(bool) error {
	s := p.Book.Schema
	typeOf := make([]int32, len(p.IDs))
	for _, run := range p.Types {
		for i := run.Lo; i < run.Hi; i++ {
			typeOf[i] = int32(run.Type)
		}
	}
	for i, v := range p.Halo {
		if t := typeOf[p.Core()+i]; int(t) != p.Book.TypeOf(v) {
			return badBook("ids", fmt.Sprintf("vertex %d of the halo, of type %d", v, t), "the type that type_runs says")
		}
	}
	for v := range p.Core() {
		for e := p.In.Indptr[v]; e < p.In.Indptr[v+1]; e++ {
			r, u := int(p.In.Relations[e]), p.In.Indices[e]
			switch {
			case r >= len(s.Relations) || int(u) >= len(typeOf) || s.Relations[r].Target != int(typeOf[v]) ||
				s.Relations[r].Source != int(typeOf[u]):
				return badBook("relations", fmt.Sprintf("relation %d at position %d", r, e), "one of the types of the edge's ends")
			case e > p.In.Indptr[v] && (p.In.Relations[e-1] > p.In.Relations[e] ||
				p.In.Relations[e-1] == p.In.Relations[e] && p.In.Indices[e-1] > u):
				return badBook("indices", fmt.Sprintf("the row of vertex %d out of order", v), "neighbours by relation, then ascending")
			}
		}
	}
	return nil
}

func (p *Part) checkData(all bool) error {
	n := int(p.Meta.Core)
	if p.Features != nil {
		if err := p.Features.Validate(); err != nil {
			return err
		}
		if all || 4*int64(p.Features.Rows)*int64(p.Features.Cols) <= graph.SmallArray {
			if err := p.Features.CheckFinite(); err != nil {
				return err
			}
		}
	}
	if p.Labels != nil {
		if err := p.Labels.Validate(n); err != nil {
			return err
		}
	}
	return p.checkSplits(n)
}

// checkSplits checks that splits name labelled core vertices, each once and in one split.
func (p *Part) checkSplits(n int) error {
	seen := newBits(n)
	for _, s := range []struct {
		name string
		ids  []uint32
	}{{"train", p.Splits.Train}, {"val", p.Splits.Val}, {"test", p.Splits.Test}} {
		for i, v := range s.ids {
			if int(v) >= n || i > 0 && s.ids[i-1] >= v {
				return badBook(s.name, v, fmt.Sprintf("ascending core vertices below %d", n))
			}
			if !seen.set(v) {
				return badBook(s.name, fmt.Sprintf("vertex %d, which is also in another split", v),
					"splits without common vertices")
			}
			if p.Labels != nil && !p.Labels.Has(int(v)) {
				return badBook(s.name, fmt.Sprintf("vertex %d, which has no label", v), "labelled vertices")
			}
		}
	}
	return nil
}

// Verify reads the whole partition in dir and checks every invariant of the
// package comment: checksums; each vertex in exactly one part; the halo of a part
// exactly the remote in-neighbours of its core; send lists the mirror of receive
// lists; numbers, degrees and splits that agree between parts.
func Verify(dir string) error { return VerifyAgainst(dir, nil) }

// VerifyAgainst is Verify, and compares with the dataset if it is not nil: edges
// with their weights and features, features, labels and splits, all by original number.
func VerifyAgainst(dir string, d *graph.Dataset) error {
	book, err := OpenBook(dir)
	if err != nil {
		return err
	}
	v := &verifier{dir: dir, book: book, seen: newBits(int(book.Nodes))}
	defer v.close()
	for k := range book.Parts {
		if err := v.open(k); err != nil {
			return err
		}
	}
	for _, p := range v.parts {
		if err := errors.Join(v.part(p), v.against(p, d)); err != nil {
			return inFile(p.Dir, err)
		}
	}
	return inFile(dir, v.totals())
}

type verifier struct {
	dir       string
	book      *Book
	parts     []*Part
	seen      bitset
	asymmetry uint64 // zero if every edge so far has its reverse
}

func (v *verifier) close() {
	for _, p := range v.parts {
		p.Close()
	}
}

func (v *verifier) open(k int) error {
	p, err := OpenPartFolder(v.book.PartDir(v.dir, k), OpenOptions{Verify: true})
	if err != nil {
		return err
	}
	v.parts = append(v.parts, p)
	if p.Meta.Part != k || p.Book.ID != v.book.ID || !slices.Equal(p.Book.Offsets, v.book.Offsets) {
		return inFile(p.Dir, badBook("part", fmt.Sprintf("part %d of partition %s", p.Meta.Part, p.Book.ID),
			fmt.Sprintf("part %d of %s", k, v.book.ID)))
	}
	return nil
}

// part checks one part against itself and its peers.
func (v *verifier) part(p *Part) error {
	for _, check := range []func(*Part) error{v.ids, v.rows, v.peers} {
		if err := check(p); err != nil {
			return err
		}
	}
	return nil
}

// ids checks that the part's vertices are in no other part.
func (v *verifier) ids(p *Part) error {
	for _, id := range p.IDs[:p.Core()] {
		if !v.seen.set(id) {
			return badBook("ids", id, "each vertex of the dataset in one part")
		}
	}
	return nil
}

// rows adds up what shows whether the graph is symmetric; opening has checked each row.
func (v *verifier) rows(p *Part) error {
	for i := range uint32(p.Core()) {
		v.addAsymmetry(p, i)
	}
	return nil
}

// addAsymmetry adds the signed hashes of the in-edges of a vertex, by the dataset's numbers.
func (v *verifier) addAsymmetry(p *Part, to uint32) {
	for e := p.In.Indptr[to]; e < p.In.Indptr[to+1]; e++ {
		var weight float32
		if p.In.Weights != nil {
			weight = p.In.Weights[e]
		}
		v.asymmetry += graph.SignedHash(uint64(p.IDs[p.In.Indices[e]]), uint64(p.IDs[to]), weight)
	}
}

// peers checks send lists, and what the part knows of other parts' vertices.
func (v *verifier) peers(p *Part) error {
	k := p.Meta.Part
	for q, peer := range v.parts {
		sent, wanted := p.SendTo(q), peer.HaloOf(k)
		if !slices.EqualFunc(sent, wanted, func(a, b uint32) bool { return int64(a)+v.book.Offsets[k] == int64(b) }) {
			return badBook("send", fmt.Sprintf("%s for part %d", event.Tally(len(sent), "row"), q),
				fmt.Sprintf("the %s of its halo", event.Tally(len(wanted), "row")))
		}
		for i, global := range p.HaloOf(q) {
			here, there := uint32(p.Meta.Core)+uint32(p.HaloPtr[q])+uint32(i), global-uint32(v.book.Offsets[q])
			if p.IDs[here] != peer.IDs[there] || p.Degrees[here] != peer.Degrees[there] ||
				math.Float64bits(p.GCNDegree(here)) != math.Float64bits(peer.GCNDegree(there)) {
				return badBook("halo", fmt.Sprintf("vertex %d unlike in part %d", global, q),
					"the id and degrees its owner has")
			}
		}
	}
	return nil
}

// totals checks sums over parts.
func (v *verifier) totals() error {
	var edges, train, val, test, volume int64
	for _, p := range v.parts {
		m := &p.Meta
		edges, train, val, test, volume = edges+m.Edges, train+m.Train, val+m.Val, test+m.Test, volume+m.Halo
	}
	b := v.book
	if got, want := [5]int64{edges, train, val, test, volume}, [5]int64{b.Edges, b.Train, b.Val, b.Test,
		b.CommVolume}; got != want {
		return badBook("edges, train, val, test, comm_volume", got, fmt.Sprint(want))
	}
	if b.Symmetric && v.asymmetry != 0 {
		return badBook("symmetric", true, "false, as some edges have no reverse")
	}
	return nil
}

// sameLabel compares vertex i of one with vertex j of the other.
func sameLabel(a, b *graph.Labels, i, j int) bool {
	switch {
	case b == nil || a.Kind() != b.Kind() || a.Classes != b.Classes:
		return false
	case a.Multi != nil:
		return slices.Equal(a.Row(i), b.Row(j))
	case a.Values != nil:
		return !a.Has(i) && !b.Has(j) || slices.Equal(a.Numbers(i), b.Numbers(j))
	}
	return a.Class[i] == b.Class[j]
}

// against compares a part with its dataset.
func (v *verifier) against(p *Part, d *graph.Dataset) error {
	if d == nil {
		return nil
	}
	var ours, theirs []neighbour
	for i, id := range p.IDs[:p.Core()] {
		ours, theirs = neighbours(ours[:0], p.In, uint32(i)), neighbours(theirs[:0], d.Graph, id)
		for j := range ours {
			ours[j].id = p.IDs[ours[j].id]
		}
		sortNeighbours(ours)
		sortNeighbours(theirs)
		if !slices.Equal(ours, theirs) {
			return badBook("indices", fmt.Sprintf("other in-edges of vertex %d", id), "those of the dataset")
		}
		if p.Labels != nil && !sameLabel(p.Labels, d.Labels, i, int(id)) {
			return badBook("labels", fmt.Sprintf("others for vertex %d", id), "those of the dataset")
		}
	}
	if err := errors.Join(sameEdgeFeatures(p, d), sameTimes(p, d), sameFeatures(p, d)); err != nil {
		return err
	}
	for name, s := range map[string][2][]uint32{"train": {p.Splits.Train, d.Splits.Train},
		"val": {p.Splits.Val, d.Splits.Val}, "test": {p.Splits.Test, d.Splits.Test}} {
		for _, local := range s[0] {
			if _, ok := slices.BinarySearch(s[1], p.IDs[local]); !ok {
				return badBook(name, p.IDs[local], "a vertex of the dataset's split")
			}
		}
	}
	return nil
}

type neighbour struct {
	id     uint32
	weight float32
}

func neighbours(to []neighbour, g *graph.CSR, v uint32) []neighbour {
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		n := neighbour{id: g.Indices[e]}
		if g.Weights != nil {
			n.weight = g.Weights[e]
		}
		to = append(to, n)
	}
	return to
}

func sortNeighbours(s []neighbour) {
	slices.SortFunc(s, func(a, b neighbour) int {
		switch {
		case a.id != b.id && a.id < b.id, a.id == b.id && a.weight < b.weight:
			return -1
		case a == b:
			return 0
		}
		return 1
	})
}

// sameTypeFeatures compares the rows of every type.
func sameTypeFeatures(p *Part, d *graph.Dataset) error {
	for t, f := range p.TypeFeatures {
		if f == nil {
			continue
		}
		ours, theirs := make([]float32, f.Cols), make([]float32, f.Cols)
		at, first := uint32(0), uint32(d.Meta.Schema.Types[t].First)
		for _, id := range p.IDs[:p.Core()] {
			if d.Meta.Schema.TypeOf(id) != t {
				continue
			}
			f.CopyRow(ours, at)
			d.TypeFeatures[t].CopyRow(theirs, id-first)
			if at++; !slices.Equal(ours, theirs) {
				return badBook("features", fmt.Sprintf("another row for vertex %d", id), "that of the dataset")
			}
		}
	}
	return nil
}

func sameFeatures(p *Part, d *graph.Dataset) error {
	if p.Features == nil {
		return sameTypeFeatures(p, d)
	}
	ours, theirs := make([]float32, p.Features.Cols), make([]float32, p.Features.Cols)
	for i, id := range p.IDs[:p.Core()] {
		p.Features.CopyRow(ours, uint32(i))
		d.Features.CopyRow(theirs, id)
		if !slices.Equal(ours, theirs) {
			return badBook("features", fmt.Sprintf("another row for vertex %d", id), "that of the dataset")
		}
	}
	return nil
}

// sameEdgeFeatures compares the features of edges; repeated edges have theirs in the
// same order in both.
func sameEdgeFeatures(p *Part, d *graph.Dataset) error {
	if p.In.EdgeDim != d.Graph.EdgeDim {
		return badBook("edge_dim", p.In.EdgeDim, fmt.Sprintf("%d, as in the dataset", d.Graph.EdgeDim))
	}
	if p.In.EdgeDim == 0 {
		return nil
	}
	for i, id := range p.IDs[:p.Core()] {
		ours := edgesBySource(p.In, uint32(i), func(u uint32) uint32 { return p.IDs[u] })
		theirs := edgesBySource(d.Graph, id, func(u uint32) uint32 { return u })
		for k := range ours {
			if !slices.Equal(p.In.EdgeRows(ours[k], ours[k]+1), d.Graph.EdgeRows(theirs[k], theirs[k]+1)) {
				return badBook("edge_features", fmt.Sprintf("others for an in-edge of vertex %d", id),
					"those of the dataset")
			}
		}
	}
	return nil
}

// edgesBySource are the positions of the in-edges of v, by the ids of their sources.
func edgesBySource(g *graph.CSR, v uint32, id func(uint32) uint32) (at []int64) {
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		at = append(at, e)
	}
	slices.SortStableFunc(at, func(a, b int64) int { return cmp.Compare(id(g.Indices[a]), id(g.Indices[b])) })
	return at
}
