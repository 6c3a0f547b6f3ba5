package generate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"starling/dataset"
	"starling/graph"
	"starling/rng"
)

// The demonstration dataset: 1,500 papers of six subjects that cite each other, and the words
// in their abstracts. The papers are drawn, not written, so that the words alone give a
// subject less often than words and citations together, as in public citation graphs.
//
//	subjects    six, in unequal shares
//	citations   paper v cites some of the papers before it, more often those that are cited
//	            already, somewhat more than half of them of its own subject; stored both ways
//	words       of 209: a quarter are its subject's, the others any subject's or common ones
//	splits      20 papers per subject to train on, 300 to validate, 600 to test
const (
	demoPapers     = 1500
	demoCitations  = 3    // per paper, about
	demoHomophily  = 0.55 // citations inside the subject
	demoWords      = 11   // per paper, about
	demoOwnWords   = 0.27 // of the paper's subject
	demoOtherWords = 0.45 // of any subject; the rest are common
	demoSeed       = 1749
)

// demoSubjects are the classes in alphabetical order, with their words.
var demoSubjects = []struct {
	name, words string
	share       float64
}{
	{"astronomy", "accretion asteroid binary comet corona cosmic dwarf eclipse flare galaxy halo infrared luminosity lunar " +
		"nebula orbit parallax photometry planet pulsar quasar redshift spectra star stellar sunspot supernova telescope transit void", 0.14},
	{"biology", "allele antibody bacteria cell chromosome codon enzyme evolution fungus gene genome habitat hormone immune larva " +
		"membrane metabolism mitosis mutation neuron organism phenotype plankton pollen predator protein ribosome species tissue virus", 0.24},
	{"chemistry", "acid alkane alloy anion aromatic benzene bond carbon catalyst cation chloride colloid covalent crystal electrode " +
		"electrolyte ester halide ion isomer ligand molecule monomer oxide polymer reagent solvent synthesis titration valence", 0.18},
	{"economics", "auction bank bond budget capital consumer credit currency debt deficit demand elasticity equilibrium export firm " +
		"fiscal income inflation interest investment labour liquidity market monopoly poverty price subsidy tariff tax trade", 0.15},
	{"mathematics", "algebra axiom bijection bound category combinatorics conjecture convergence convex corollary eigenvalue embedding " +
		"field finite functor geometry group homology integer lattice lemma manifold matrix module polynomial prime proof ring theorem topology", 0.12},
	{"medicine", "anaesthesia artery biopsy blood cardiac chronic clinic cohort diagnosis disease dose fever hospital infection kidney " +
		"liver lung nurse patient placebo plasma prognosis relapse surgery symptom syndrome therapy trial tumour vaccine", 0.17},
}

const demoCommon = "analysis approach data effect evidence experiment figure framework large measure method model new novel " +
	"observation paper parameter prediction problem process propose rate result robust sample scale simulation study system theory"

// Demo writes the demonstration dataset. It is the same everywhere.
func Demo(out string, overwrite bool) (dataset.Summary, error) {
	w, err := graph.Create(out, graph.WriterOptions{Overwrite: overwrite})
	if err != nil {
		return dataset.Summary{}, err
	}
	defer w.Abort()
	d := newDemo()
	w.Meta.Name, w.Meta.Source = "demo", "get demo"
	w.Meta.Notes = []string{"papers that were drawn at random, not written: for a first run"}
	w.Meta.Features = &graph.FeatureMeta{Columns: d.vocabulary}
	g, err := d.graph()
	if err != nil {
		return dataset.Summary{}, err
	}
	splits, err := dataset.SplitPerClass(d.labels, 20, 300, 600, d.key.Fold(dataset.SplitStream))
	if err != nil {
		return dataset.Summary{}, err
	}
	for _, write := range []func() error{
		func() error { return w.Graph(g) },
		func() error { return w.Features(d.features()) },
		func() error { return w.Labels(d.labels) },
		func() error { return w.TextIDs(d.ids()) },
	} {
		if err := write(); err != nil {
			return dataset.Summary{}, err
		}
	}
	return dataset.Commit(w, splits)
}

// demo is the dataset in the making.
type demo struct {
	key        rng.Key
	labels     *graph.Labels
	vocabulary []string // subject by subject, then the common words; a word may be of two subjects
	starts     []int    // of each subject's words in the list of all, and of the common ones
	column     []int    // in the vocabulary, of each in the list of all
}

func newDemo() *demo {
	d := &demo{key: rng.New(demoSeed), labels: &graph.Labels{Class: make([]int32, demoPapers)}}
	draw := d.key.Fold(classStream)
	for _, s := range demoSubjects {
		d.labels.Names = append(d.labels.Names, s.name)
		d.addWords(s.words)
	}
	d.addWords(demoCommon)
	d.labels.Classes = len(demoSubjects)
	for v := range d.labels.Class {
		at := draw.Float64(uint64(v))
		for c, s := range demoSubjects {
			if d.labels.Class[v] = int32(c); at < s.share {
				break
			}
			at -= s.share
		}
	}
	return d
}

func (d *demo) addWords(text string) {
	d.starts = append(d.starts, len(d.column))
	for _, word := range strings.Fields(text) {
		at := slices.Index(d.vocabulary, word)
		if at < 0 {
			at = len(d.vocabulary)
			d.vocabulary = append(d.vocabulary, word)
		}
		d.column = append(d.column, at)
	}
}

// ids look like a library catalogue's.
func (d *demo) ids() []string {
	ids, draw := make([]string, demoPapers), d.key.Fold(scrambleStream)
	for v := range ids {
		ids[v] = fmt.Sprintf("P%04d.%03d", 1990+v*30/demoPapers, v%1000)
		if draw.IntN(uint64(v), 10) == 0 {
			ids[v] += "v2"
		}
	}
	return ids
}

// graph draws citations in the order of the papers: a paper cites one of the subject's or of all
// papers, or, half of the time, one that such a paper cites, so that few have many.
func (d *demo) graph() (*graph.CSR, error) {
	var src, dst []uint32
	of := make([][]uint32, len(demoSubjects)) // papers so far
	var all []uint32
	cites := make([][]uint32, demoPapers)
	for v := range uint32(demoPapers) {
		draw := d.key.Fold(edgeStream).Fold(uint64(v))
		class := d.labels.Class[v]
		n := 1 + draw.IntN(0, 2*demoCitations)
		for i := range n {
			k := draw.Fold(uint64(i))
			from := all
			if k.Float64(0) < demoHomophily {
				from = of[class]
			}
			if len(from) == 0 {
				continue
			}
			u := from[k.IntN(1, len(from))]
			if next := cites[u]; len(next) > 0 && k.Float64(2) < 0.5 {
				if w := next[k.IntN(3, len(next))]; d.labels.Class[w] == class || k.Float64(4) > demoHomophily {
					u = w
				}
			}
			src, dst = append(src, u), append(dst, v)
			cites[v] = append(cites[v], u)
		}
		of[class], all = append(of[class], v), append(all, v)
	}
	return graph.FromEdges(demoPapers, src, dst, nil,
		graph.BuildOptions{Symmetrize: true, DropDuplicates: true, DropSelfLoops: true})
}

// features are bags of words: a one for every word a paper has.
func (d *demo) features() *graph.Features {
	f := &graph.Features{Rows: demoPapers, Cols: len(d.vocabulary), Indptr: make([]int64, 1, demoPapers+1)}
	for v := range demoPapers {
		draw := d.key.Fold(noiseStream).Fold(uint64(v))
		n := demoWords/2 + draw.IntN(0, demoWords)
		var words []uint32
		for i := range n {
			words = append(words, uint32(d.word(draw.Fold(uint64(i)), int(d.labels.Class[v]))))
		}
		slices.Sort(words)
		words = slices.Compact(words)
		f.Indices = append(f.Indices, words...)
		f.Indptr = append(f.Indptr, int64(len(f.Indices)))
	}
	f.Values = slices.Repeat([]float32{1}, len(f.Indices))
	return f
}

// word draws one; the first of a list are the most frequent.
func (d *demo) word(draw rng.Key, class int) int {
	list := len(demoSubjects) // common
	switch at := draw.Float64(0); {
	case at < demoOwnWords:
		list = class
	case at < demoOwnWords+demoOtherWords:
		list = draw.IntN(1, len(demoSubjects))
	}
	end := len(d.column)
	if list < len(demoSubjects) {
		end = d.starts[list+1]
	}
	x := draw.Float64(2)
	x *= math.Sqrt(x) // the same on every processor, unlike a power
	return d.column[d.starts[list]+int(float64(end-d.starts[list])*x)]
}
