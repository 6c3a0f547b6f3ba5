package partition

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"starling/event"
	"starling/graph"
)

// Options are the options of Run.
type Options struct {
	Parts     int
	Method    string
	Servers   int // above 1: between servers first, then inside; divides Parts
	Objective Objective
	// Balance lists constraints as ParseConstraints reads them. They are met, or Run
	// returns an error; if it is empty, the method uses its default constraints and reports
	// the balance reached.
	Balance string
	// BestEffort writes the best partition found if Balance cannot be met.
	BestEffort bool
	Seed       uint64
	Tries      int // partitions to keep the best of; 0: one
	Threads    int
	Passes     int
	Refine     int // passes that refine what a streaming method has found; 0: none
	Hops       int

	Out       string   // the partition folder; empty: only the report
	PartDirs  []string // folders of the parts, if not in Out
	Overwrite bool
	Verify    bool // read everything back and compare with the dataset

	// Target is the type of a typed graph whose labels and splits the parts have; "": the only one that has any.
	Target string

	Model   Model // for the expected traffic; In, Out and the rest come from the dataset
	Compare bool  // also run the cheap methods, for the table of the page

	Shared Shared // by several processes, none of which holds the graph

	Progress func(stage string, done, total int64)
}

// Report is the result of a partitioning, as JSON.
type Report struct {
	Dataset          string             `json:"dataset"`
	Vertices         int64              `json:"vertices"`
	Edges            int64              `json:"edges"`
	Method           string             `json:"method"`
	Objective        string             `json:"objective"`
	Seed             uint64             `json:"seed"`
	Tries            int                `json:"tries"`
	KeptSeed         uint64             `json:"kept_seed"` // alone, it gives this partition again, unless tries are combined
	Parts            int                `json:"parts"`
	Servers          int                `json:"servers"`
	EdgeCut          int64              `json:"edge_cut"`
	EdgeCutShare     float64            `json:"edge_cut_share"` // of all edges
	CommVolume       int64              `json:"comm_volume"`
	Balance          map[string]float64 `json:"balance"`
	Limits           *Limits            `json:"limits,omitempty"` // of methods that keep any
	Target           string             `json:"target,omitempty"` // of a typed graph
	RemoteMax        int64              `json:"remote_max"`
	RemoteMin        int64              `json:"remote_min"`
	RemoteMaxOverMin float64            `json:"remote_max_over_min"`
	HaloBytes        int64              `json:"halo_bytes"` // one copy of all halos' feature rows
	Seconds          float64            `json:"seconds"`    // to find the partition
	WriteSeconds     float64            `json:"write_seconds"`
	PeakRSSBytes     int64              `json:"peak_rss_bytes"`
	Core             []int64            `json:"core"`
	CoreEdges        []int64            `json:"core_edges"`
	Remote           []int64            `json:"remote"`
	Traffic          [][]int64          `json:"traffic"` // traffic[p][q]: rows p needs from q
	BetweenServers   int64              `json:"between_servers"`
	Plan             *Plan              `json:"plan,omitempty"`
	constraints      []string           // names in Balance, in order
	Compared         []Compared         `json:"compared,omitempty"`
	Out              string             `json:"out,omitempty"`
	Verified         bool               `json:"verified"`
	Notes            []string           `json:"notes,omitempty"`
}

// Compared is the result of another method on the same graph.
type Compared struct {
	Method           string             `json:"method"`
	EdgeCut          int64              `json:"edge_cut"`
	CommVolume       int64              `json:"comm_volume"`
	Balance          map[string]float64 `json:"balance"`
	RemoteMaxOverMin float64            `json:"remote_max_over_min"`
	Seconds          float64            `json:"seconds"`
	EpochBytes       int64              `json:"epoch_bytes"`
}

// Run partitions the dataset in dir, writes the folder if Out is set, and reports.
func Run(ctx context.Context, dir string, opt Options) (*Report, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	if opt.Shared.Processes > 0 {
		return runShared(ctx, dir, opt)
	}
	d, err := graph.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := setTarget(d, opt.Target); err != nil {
		return nil, err
	}
	j := &job{opt: opt, d: d}
	if err := j.prepare(); err != nil {
		return nil, err
	}
	if err := j.cut(ctx); err != nil {
		return nil, err
	}
	if err := j.write(ctx); err != nil {
		return nil, err
	}
	if opt.Compare {
		if err := j.compare(ctx); err != nil {
			return nil, err
		}
	}
	return j.r, nil
}

func (o *Options) validate() error {
	if err := o.checkTries(); err != nil {
		return err
	}
	if o.Servers > 1 && o.Parts%o.Servers != 0 {
		return &graph.InputError{Field: "servers", Found: fmt.Sprintf("%d for %s", o.Servers,
			event.Tally(o.Parts, "part")),
			Want: "a number that divides the parts", Fix: "give every server as many workers"}
	}
	if o.Out == "" && (o.Verify || len(o.PartDirs) > 0) {
		return &graph.InputError{Field: "out", Found: "none", Want: "a folder to write and verify",
			Fix: "name one with --out"}
	}
	if o.Out == "" {
		return nil
	}
	if o.Shared.Processes > 0 {
		return nil // which may go on with what is there
	}
	// Before the work, not after it.
	return free(o.Out, bookFile, o.Overwrite)
}

// job is one Run in progress.
type job struct {
	opt Options
	d   *graph.Dataset
	p   Problem
	// shared: several processes work, so edges are read window by window
	shared bool
	// all are the constraints whose balance is reported, requested or not.
	all   []Constraint
	model Model
	parts []uint32
	q     *Quality
	met   Limits
	r     *Report
}

func (j *job) prepare() (err error) {
	o := &j.opt
	j.p = Problem{Graph: j.d.Graph, Symmetric: j.d.Meta.Symmetric, Parts: o.Parts, Seed: o.Seed, Threads: o.Threads,
		Objective: o.Objective,
		Splits:    j.d.Splits, Passes: o.Passes, Refine: o.Refine, Hops: o.Hops, Progress: o.Progress}
	if err := j.p.check(); err != nil {
		return err
	}
	// Methods index arrays by the ends of edges, which opening a large graph does not check.
	// They, and training on the parts, also rely on the symmetric flag.
	if !j.shared { // else they are checked window by window
		if err := j.d.CheckEdges(); err != nil {
			return err
		}
		if err := j.d.CheckSymmetric(); err != nil {
			return err
		}
	}
	if j.p.Constraints, err = ParseConstraints(cmp.Or(o.Balance, j.usual(o.Method)), j.d); err != nil {
		return err
	}
	j.model = o.Model
	if j.shared {
		return j.fitModel()
	}
	if j.all, err = ParseConstraints(j.everything(), j.d); err != nil {
		return err
	}
	j.d.AdviseGraph(graph.WillNeed)
	return j.fitModel()
}

// usual is what a method balances by default.
func (j *job) usual(method string) string {
	e, _ := find(method)
	var have []string
	for item := range strings.SplitSeq(e.balance, ",") {
		name, _, _ := strings.Cut(item, ":")
		if j.has(name) {
			have = append(have, item)
		}
	}
	return strings.Join(append(have, j.usualOfTypes(e)...), ",")
}

func (j *job) everything() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(ConstraintNames),
		func(name string) bool { return !j.has(name) }), ",")
}

func (j *job) has(name string) bool {
	s := &j.d.Splits
	switch name {
	case "train":
		return len(s.Train) > 0
	case "val":
		return len(s.Val) > 0
	case "test":
		return len(s.Test) > 0
	case "types":
		return j.d.Typed()
	case "features":
		return j.d.Features != nil && j.d.Features.Kind() == graph.Sparse
	}
	return true
}

// fitModel fills in the sizes of the dataset.
func (j *job) fitModel() error {
	m := &j.model
	if m.Name = cmp.Or(m.Name, "sage"); j.d.Typed() && j.opt.Model.Name == "" {
		m.Name = typedModels[0]
	}
	m.Layers, m.Hidden, m.BatchSize = cmp.Or(m.Layers, 3), cmp.Or(m.Hidden, 256), cmp.Or(m.BatchSize, 1024)
	m.Heads = max(m.Heads, 1)
	if m.Fanout == nil {
		m.Fanout = []int{15, 10, 5}
	}
	m.In, m.Out = m.Hidden, max(j.d.Meta.Classes, 1)
	m.FeatureLen = 4 * m.In
	if f := j.d.Features; f != nil {
		m.In, m.SparseIn, m.FeatureLen = f.Cols, f.Kind() == graph.Sparse, featureLen(f)
	}
	if err := m.fitTypes(j.d); err != nil {
		return err
	}
	return m.Validate()
}

// featureLen is the bytes of a feature row; of a sparse one, on average.
func featureLen(f *graph.Features) int {
	switch f.Kind() {
	case graph.BFloat16:
		return 2 * f.Cols
	case graph.Sparse:
		return 8 * len(f.Indices) / max(f.Rows, 1)
	}
	return 4 * f.Cols
}

// cut finds the partition; an Unbalanced error stops the run only
// if the user asked for balance.
func (j *job) cut(ctx context.Context) error {
	o := &j.opt
	best, seconds, err := j.bestTry(ctx)
	if err != nil {
		return err
	}
	if best.err != nil && o.Balance != "" && !o.BestEffort {
		return best.err
	}
	j.parts, j.q, j.p.Seed, j.met = best.parts, best.q, best.seed, best.met
	j.report(seconds)
	if best.err != nil {
		j.r.Notes = append(j.r.Notes, best.err.Error())
	}
	j.warnUneven()
	j.warnSmall()
	j.r.Plan = j.q.PlanFor(j.model)
	j.r.Plan.AddSampled(j.d.Graph, j.parts, j.d.Splits.Train, j.model, o.Parts, o.Seed)
	return nil
}

func (j *job) report(seconds float64) {
	o, q := &j.opt, j.q
	most, least := spread(q.Remote)
	edges := j.d.Graph.Edges()
	if j.d.Meta.Symmetric {
		edges /= 2
	}
	j.r = &Report{Dataset: j.d.Meta.Name, Vertices: int64(j.d.Graph.Nodes()), Edges: j.d.Graph.Edges(),
		Method: o.Method, Objective: o.Objective.String(),
		Seed: o.Seed, Tries: max(o.Tries, 1), KeptSeed: j.p.Seed, Parts: o.Parts, Servers: max(o.Servers, 1),
		EdgeCut: q.EdgeCut, EdgeCutShare: float64(q.EdgeCut) / float64(max(edges, 1)),
		CommVolume: q.CommVolume, Balance: q.Balance, Target: j.d.Target, RemoteMax: most, RemoteMin: least,
		RemoteMaxOverMin: q.RemoteMaxOverMin(),
		HaloBytes:        q.CommVolume * int64(j.model.FeatureLen), Seconds: seconds,
		Core: q.Core, CoreEdges: q.Edges, Remote: q.Remote, Traffic: q.Traffic}
	if !slices.Contains([]string{"random", "hash", "chunk"}, o.Method) { // which look at no limit
		j.r.Limits = &j.met
	}
	for _, c := range j.all {
		j.r.constraints = append(j.r.constraints, c.Name)
	}
	each := o.Parts / j.r.Servers
	for p, row := range q.Traffic {
		for from, rows := range row {
			if p/each != from/each {
				j.r.BetweenServers += rows
			}
		}
	}
}

// warnUneven names what was not requested to be balanced and is very uneven: a minimal
// cut of a power-law graph may put all hubs into one part.
func (j *job) warnUneven() {
	const uneven = 1.5
	for _, c := range j.all {
		asked := slices.ContainsFunc(j.p.Constraints, func(a Constraint) bool { return a.Name == c.Name })
		if x := j.q.Balance[c.Name]; !asked && x > uneven && j.opt.Parts > 1 {
			j.r.Notes = append(j.r.Notes,
				fmt.Sprintf("uneven: the heaviest part has %.1f times the mean of %s; add %s:0.2 to the balance asked for to keep it even", x, c.Name, c.asked()))
		}
	}
}

// warnSmall names the parts whose workers would have next to nothing to do: of one vertex, or
// of less than a tenth of the mean of vertices or edges. Limits hold from above only, so such
// parts meet them.
func (j *job) warnSmall() {
	vertices, edges, parts := int64(j.d.Graph.Nodes()), j.d.Graph.Edges(), int64(j.opt.Parts)
	small, least := 0, 0
	for p, size := range j.q.Core {
		if size == 1 || 10*size*parts < vertices || 10*j.q.Edges[p]*parts < edges {
			small++
		}
		if j.q.Edges[p] < j.q.Edges[least] {
			least = p
		}
	}
	if small > 0 && parts > 1 {
		j.r.Notes = append(j.r.Notes, fmt.Sprintf("small parts: %d of %d have one vertex, or less than a tenth of the mean "+
			"of vertices (%d) or edges (%d); part %d has %d and %d; ask for fewer parts, or for another method",
			small, parts, vertices/parts, edges/parts, least, j.q.Core[least], j.q.Edges[least]))
	}
}

func (j *job) write(ctx context.Context) error {
	o := &j.opt
	if o.Out == "" {
		return nil
	}
	start := time.Now()
	if err := Write(ctx, j.d, j.parts, o.Parts, j.q,
		WriteOptions{Dir: o.Out, PartDirs: o.PartDirs, Overwrite: o.Overwrite,
			Servers: o.Servers, Threads: o.Threads, Method: o.Method, Seed: j.p.Seed, Progress: o.Progress}); err != nil {
		return err
	}
	j.r.Out, j.r.WriteSeconds = o.Out, time.Since(start).Seconds()
	if !o.Verify {
		return nil
	}
	j.p.report("verify", 0, 1)
	if err := VerifyAgainst(o.Out, j.d); err != nil {
		return fmt.Errorf("the partition was written but does not verify: %w", err)
	}
	j.r.Verified = true
	return nil
}

// compare runs the cheap methods on the same problem.
func (j *job) compare(ctx context.Context) error {
	for _, e := range entries() {
		if e.name == j.opt.Method {
			j.r.Compared = append(j.r.Compared, j.compared(e.name, j.q, j.r.Seconds))
			continue
		}
		if !e.cheap {
			continue
		}
		p := j.p
		var err error
		if p.Constraints, err = ParseConstraints(j.usual(e.name), j.d); err != nil {
			return err
		}
		start := time.Now()
		parts, err := By(ctx, e.name, &p)
		if parts == nil {
			return err
		}
		seconds := time.Since(start).Seconds()
		q := Measure(j.d.Graph, parts, p.Parts, j.all, j.d.Meta.Symmetric, p.Threads)
		j.r.Compared = append(j.r.Compared, j.compared(e.name, q, seconds))
	}
	return nil
}

func (j *job) compared(name string, q *Quality, seconds float64) Compared {
	return Compared{Method: name, EdgeCut: q.EdgeCut, CommVolume: q.CommVolume, Balance: q.Balance,
		RemoteMaxOverMin: q.RemoteMaxOverMin(), Seconds: seconds, EpochBytes: q.PlanFor(j.model).EpochBytes}
}

// String names the objective as the flag does.
func (o Objective) String() string {
	if o == Volume {
		return "volume"
	}
	return "cut"
}

// ParseObjective reads cut or volume.
func ParseObjective(s string) (Objective, error) {
	switch s {
	case "", "cut":
		return Cut, nil
	case "volume":
		return Volume, nil
	}
	return Cut, &graph.InputError{Field: "objective", Found: fmt.Sprintf("%q", s), Want: "cut or volume",
		Fix: "choose one"}
}
