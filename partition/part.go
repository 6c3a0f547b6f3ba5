package partition

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"starling/graph"
)

// PartMeta is the meta.json of a part.
type PartMeta struct {
	Format string `json:"format"`
	Part   int    `json:"part"`
	Core   int64  `json:"core"`
	Halo   int64  `json:"halo"`
	Edges  int64  `json:"edges"` // in-edges of the core
	Remote int64  `json:"remote_edges"`
	Sent   int64  `json:"sent"` // rows peers need, summed over peers
	Train  int64  `json:"train"`
	Val    int64  `json:"val"`
	Test   int64  `json:"test"`
	Book   Book   `json:"book"`

	Checksum string                     `json:"checksum"`
	Arrays   map[string]graph.ArrayMeta `json:"arrays"`
	CRC32C   string                     `json:"crc32c,omitempty"`
}

// Part is what one worker holds, mapped. Numbers are local: the core first, then
// the halo. Nothing may be written to, and nothing used after Close.
type Part struct {
	Dir  string
	Meta PartMeta
	Book *Book

	In         *graph.CSR // in-edges of the core; neighbours below Core+Halo
	Halo       []uint32   // global numbers, ascending
	HaloPtr    []int64    // where each owner's begin
	Send       []uint32   // core vertices, by peer
	SendPtr    []int64
	Degrees    []uint32  // in-edges in the whole graph, of core and halo
	GCNDegrees []float64 // nil: the same as Degrees
	IDs        []uint32  // numbers in the dataset, of core and halo
	Features   *graph.Features
	// TypeFeatures are the features of each type of a typed graph, nil where it has none: a row for each of its core
	// vertices, in their order. Types says of which types core and halo are.
	TypeFeatures []*graph.Features
	Types        []graph.Run
	Labels       *graph.Labels
	Splits       graph.Splits

	// SeenFrom is when In's edges can be seen: their time, or that of their source's row where it is later. Times
	// are of
	// core vertices. nil: the dataset has no times, or none of vertices.
	SeenFrom, Times []int64

	// DatasetOrder is the order of In's rows in the dataset; nil: the folder is of a version
	// that did not keep it.
	DatasetOrder *graph.RowOrder

	folder *graph.Folder
}

// Files of times, both int64.
const timesOfEdges, timesOfVertices = "seen_from.npy", "times.npy"

// orderFile has DatasetOrder, in bytes or wider.
const orderFile = "dataset_order.npy"

// OpenOptions says how much of a part is checked.
type OpenOptions struct {
	Verify bool // all checksums and contents, whatever the size
}

// OpenPart maps part k of the partition in dir. Without a book in dir, dir/partK
// may stand alone, as on a host that got only its own part.
func OpenPart(dir string, k int) (*Part, error) {
	if !IsPartition(dir) {
		return OpenPartFolder(filepath.Join(dir, fmt.Sprintf("part%d", k)), OpenOptions{})
	}
	book, err := OpenBook(dir)
	if err != nil {
		return nil, err
	}
	if k < 0 || k >= book.Parts {
		return nil, &graph.InputError{File: dir, Field: "part", Found: fmt.Sprint(k),
			Want: fmt.Sprintf("0 to %d", book.Parts-1), Fix: "start as many workers as there are parts"}
	}
	p, err := OpenPartFolder(book.PartDir(dir, k), OpenOptions{})
	if err != nil {
		return nil, err
	}
	if err := p.Book.agrees(book); err != nil {
		p.Close()
		return nil, inFile(filepath.Join(p.Dir, partFile), err)
	}
	return p, nil
}

// OpenPartFolder maps the part in exactly this folder, wherever it was copied to.
func OpenPartFolder(dir string, opt OpenOptions) (*Part, error) {
	p := &Part{Dir: dir}
	path := filepath.Join(dir, partFile)
	if err := readSealed(path, &p.Meta, &p.Meta.CRC32C); err != nil {
		return nil, err
	}
	p.Book = &p.Meta.Book
	if err := p.Meta.validate(); err != nil {
		return nil, inFile(path, err)
	}
	var err error
	if p.folder, err = graph.OpenFolder(dir, p.Meta.Arrays); err != nil {
		return nil, err
	}
	verify := opt.Verify || os.Getenv(graph.VerifyEnv) != ""
	if err := p.load(verify); err != nil {
		p.Close()
		return nil, inFile(dir, err)
	}
	return p, nil
}

func (m *PartMeta) validate() error {
	if err := m.Book.validate(partFormat, m.Format); err != nil {
		return err
	}
	switch b := &m.Book; {
	case m.Part < 0 || m.Part >= b.Parts:
		return badBook("part", m.Part, fmt.Sprintf("0 to %d", b.Parts-1))
	case m.Core != b.Size(m.Part):
		return badBook("core", m.Core, fmt.Sprintf("%d, as the book says", b.Size(m.Part)))
	case m.Halo < 0 || m.Halo > b.Nodes-m.Core:
		return badBook("halo", m.Halo, fmt.Sprintf("0 to %d", b.Nodes-m.Core))
	case m.Edges < 0 || m.Edges > b.Edges:
		return badBook("edges", m.Edges, fmt.Sprintf("0 to %d", b.Edges))
	case min(m.Sent, m.Train, m.Val, m.Test, m.Remote) < 0:
		return badBook("sent, train, val, test, remote_edges", fmt.Sprint(m.Sent, m.Train, m.Val, m.Test, m.Remote),
			"counts from 0")
	}
	return nil
}

// load maps every array and checks the offsets that readers rely on.
func (p *Part) load(verify bool) error {
	for _, f := range []func() error{p.loadGraph, p.loadLists, p.loadFeatures, p.loadTypes, p.loadTargets} {
		if err := f(); err != nil {
			return err
		}
	}
	limit := int64(graph.SmallArray)
	if verify {
		limit = 1 << 62
	}
	if err := p.folder.Verify(limit); err != nil {
		return err
	}
	return p.checkRanges(verify)
}

func (p *Part) loadGraph() (err error) {
	m := &p.Meta
	p.In = &graph.CSR{}
	if p.In.Indptr, err = graph.MapArray[int64](p.folder, "indptr.npy", m.Core+1); err != nil {
		return err
	}
	if p.In.Indices, err = graph.MapArray[uint32](p.folder, "indices.npy", m.Edges); err != nil {
		return err
	}
	if m.Book.Schema != nil {
		if p.In.Relations, err = graph.MapArray[uint16](p.folder, "relations.npy", m.Edges); err != nil {
			return err
		}
	}
	if m.Book.Weighted {
		if p.In.Weights, err = graph.MapArray[float32](p.folder, "weights.npy", m.Edges); err != nil {
			return err
		}
	}
	if p.In.EdgeDim = m.Book.EdgeDim; p.In.EdgeDim > 0 {
		p.In.EdgeFeatures, err = graph.MapArray[float32](p.folder, "edge_features.npy", m.Edges, int64(p.In.EdgeDim))
		if err != nil {
			return err
		}
	}
	if err := p.loadTimes(); err != nil {
		return err
	}
	return p.loadOrder()
}

// loadTimes maps times, if there are any.
func (p *Part) loadTimes() (err error) {
	if p.folder.Has(timesOfVertices) {
		if p.Times, err = graph.MapArray[int64](p.folder, timesOfVertices, p.Meta.Core); err != nil {
			return err
		}
	}
	if p.folder.Has(timesOfEdges) {
		p.SeenFrom, err = graph.MapArray[int64](p.folder, timesOfEdges, p.Meta.Edges)
	}
	return err
}

func (p *Part) loadOrder() (err error) {
	if !p.folder.Has(orderFile) {
		return nil
	}
	o, n := &graph.RowOrder{}, p.Meta.Edges
	switch p.Meta.Arrays[orderFile].DType {
	case "|u1":
		o.U8, err = graph.MapArray[uint8](p.folder, orderFile, n)
	case "<u2":
		o.U16, err = graph.MapArray[uint16](p.folder, orderFile, n)
	default:
		o.U32, err = graph.MapArray[uint32](p.folder, orderFile, n)
	}
	p.DatasetOrder = o
	return err
}

func (p *Part) loadLists() (err error) {
	m, parts := &p.Meta, int64(p.Book.Parts)
	for _, a := range []struct {
		name string
		to   *[]uint32
		n    int64
	}{{"halo.npy", &p.Halo, m.Halo}, {"send.npy", &p.Send, m.Sent}, {"degrees.npy", &p.Degrees, m.Core +
		m.Halo}, {"ids.npy", &p.IDs, m.Core + m.Halo}} {
		if *a.to, err = graph.MapArray[uint32](p.folder, a.name, a.n); err != nil {
			return err
		}
	}
	if p.HaloPtr, err = graph.MapArray[int64](p.folder, "halo_indptr.npy", parts+1); err != nil {
		return err
	}
	if p.SendPtr, err = graph.MapArray[int64](p.folder, "send_indptr.npy", parts+1); err != nil {
		return err
	}
	if p.folder.Has("gcn_degrees.npy") {
		p.GCNDegrees, err = graph.MapArray[float64](p.folder, "gcn_degrees.npy", m.Core+m.Halo)
	}
	return err
}

func (p *Part) loadFeatures() (err error) {
	m := p.Book.Features
	if m == nil {
		return nil
	}
	f := &graph.Features{Rows: int(p.Meta.Core), Cols: m.Dim}
	p.Features = f
	switch m.Kind {
	case graph.Dense:
		f.F32, err = graph.MapArray[float32](p.folder, "features.npy", p.Meta.Core, int64(m.Dim))
	case graph.BFloat16:
		f.BF16, err = graph.MapArray[uint16](p.folder, "features.npy", p.Meta.Core, int64(m.Dim))
	case graph.Sparse:
		if f.Indptr, err = graph.MapArray[int64](p.folder, "features_indptr.npy", p.Meta.Core+1); err != nil {
			return err
		}
		if f.Indices, err = graph.MapArray[uint32](p.folder, "features_indices.npy", -1); err != nil {
			return err
		}
		f.Values, err = graph.MapArray[float32](p.folder, "features_values.npy", int64(len(f.Indices)))
	default:
		return badBook("features.kind", fmt.Sprintf("%q", m.Kind), "float32, bfloat16 or sparse")
	}
	return err
}

// loadTypes maps what is by type, and finds the runs of types.
func (p *Part) loadTypes() (err error) {
	s := p.Book.Schema
	if s == nil {
		return nil
	}
	if i := slices.IndexFunc(p.IDs, func(v uint32) bool { return int64(v) >= p.Book.Nodes }); i >= 0 {
		return badBook("ids", p.IDs[i], fmt.Sprintf("numbers below %d", p.Book.Nodes))
	}
	// The halo's first run is not joined with the core's last: own rows end there.
	core := p.Core()
	p.Types = s.Runs(p.IDs[:core])
	if !slices.Equal(p.Types, p.Book.CoreRuns(p.Meta.Part)) {
		return badBook("type_runs", fmt.Sprintf("other types than the vertices of part %d have", p.Meta.Part),
			"the types that ids.npy says")
	}
	for _, run := range s.Runs(p.IDs[core:]) {
		p.Types = append(p.Types, graph.Run{Type: run.Type, Lo: run.Lo + core, Hi: run.Hi + core})
	}
	count := make([]int64, len(s.Types))
	for _, run := range p.CoreTypes() {
		count[run.Type] += int64(run.Hi - run.Lo)
	}
	p.TypeFeatures = make([]*graph.Features, len(s.Types))
	for t := range s.Types {
		m := s.Types[t].Features
		if m == nil {
			continue
		}
		f := &graph.Features{Rows: int(count[t]), Cols: m.Dim}
		p.TypeFeatures[t] = f
		if name := fmt.Sprintf("features_%d.npy", t); m.Kind == graph.BFloat16 {
			f.BF16, err = graph.MapArray[uint16](p.folder, name, count[t], int64(m.Dim))
		} else {
			f.F32, err = graph.MapArray[float32](p.folder, name, count[t], int64(m.Dim))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CoreTypes are the runs of the core.
func (p *Part) CoreTypes() []graph.Run {
	n := 0
	for n < len(p.Types) && p.Types[n].Hi <= p.Core() {
		n++
	}
	return p.Types[:n]
}

func (p *Part) loadLabels() (err error) {
	const name = "labels.npy"
	l := &graph.Labels{Classes: p.Book.Classes}
	switch n, wide := p.Meta.Core, int64(l.Classes); p.Book.Task {
	case "":
		return nil
	case graph.MultiLabel:
		l.Multi, err = graph.MapArray[uint8](p.folder, name, n, wide)
	case graph.Regression:
		l.Values, err = graph.MapArray[float32](p.folder, name, n, wide)
	case graph.SingleLabel:
		l.Class, err = graph.MapArray[int32](p.folder, name, n)
	default:
		return badBook("task", fmt.Sprintf("%q", p.Book.Task),
			fmt.Sprintf("%q, %q or %q", graph.SingleLabel, graph.MultiLabel, graph.Regression))
	}
	p.Labels = l
	return err
}

func (p *Part) loadTargets() (err error) {
	if err := p.loadLabels(); err != nil {
		return err
	}
	for _, s := range []struct {
		name string
		to   *[]uint32
		all  int64
		n    int64
	}{{"train.npy", &p.Splits.Train, p.Book.Train, p.Meta.Train}, {"val.npy", &p.Splits.Val, p.Book.Val,
		p.Meta.Val}, {"test.npy", &p.Splits.Test, p.Book.Test, p.Meta.Test}} {
		if s.all == 0 {
			continue
		}
		if *s.to, err = graph.MapArray[uint32](p.folder, s.name, s.n); err != nil {
			return err
		}
	}
	return nil
}

// Core is the number of the part's own vertices.
func (p *Part) Core() int { return int(p.Meta.Core) }

// HaloOf are the global numbers of the vertices this part needs from q.
func (p *Part) HaloOf(q int) []uint32 { return p.Halo[p.HaloPtr[q]:p.HaloPtr[q+1]] }

// SendTo are the core vertices whose rows q needs, in the order of q's halo.
func (p *Part) SendTo(q int) []uint32 { return p.Send[p.SendPtr[q]:p.SendPtr[q+1]] }

// GCNDegree is the in-degree that GCN normalizes by: by weight, without self-loops.
func (p *Part) GCNDegree(local uint32) float64 {
	if p.GCNDegrees != nil {
		return p.GCNDegrees[local]
	}
	return float64(p.Degrees[local])
}

// Close unmaps the part.
func (p *Part) Close() error { return p.folder.Close() }
