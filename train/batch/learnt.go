package batch

import (
	"context"
	"slices"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/store"
	"starling/tensor"
	"starling/train"
)

// learnt are the rows of types without features. Each owner keeps those of its vertices and updates what batches need
// of them (store.Embeddings); on one worker they are all here. The loop's parameters of such rows, which are measured
// and saved, are brought up to date before that.
type learnt struct {
	rows   *store.TypeRows
	table  *store.Embeddings
	puller *store.Puller // nil: the table is all here
	steps  func() int    // batches of an epoch
	first  int64         // batch that the run begins with, where rows come ahead
	site   *train.Site
	loop   *train.Loop
	runs   []graph.Run // of the rows that this worker keeps

	// Of the batch at hand: its rows by type, their numbers, and all gradients so far.
	params  []*nn.Param
	numbers [][]uint32
	all     []uint32 // of all types
	host    []byte   // the rows
	// Their gradients.
	gradients []byte
	held      HeldGradients
}

// Names of what a worker keeps of its rows beside them.
const (
	learntFirst  = "learnt.sparse.first_moment"
	learntSecond = "learnt.sparse.second_moment"
	learntSteps  = "learnt.sparse.steps"
	learntRows   = "learnt.sparse.ids" // vertices of the moments
)

// learntOn are the learnt rows of a run on several workers; nil: all types have features.
func learntOn(s *train.Site) *learnt {
	schema := s.Part.Book.Schema
	if schema == nil || s.Opt.Model.Typed == nil || !slices.ContainsFunc(schema.Types, featureless) {
		return nil
	}
	return &learnt{site: s, runs: s.Part.CoreTypes(),
		rows: store.NewTypeRows(schema, s.Part.Book.TypeRuns, s.Part.Book.Nodes)}
}

// learntAlone are the learnt rows of a graph that is all here, updated by some threads.
func learntAlone(f *train.Loop, threads int) *learnt {
	if !slices.ContainsFunc(f.Schema.Types, featureless) {
		return nil
	}
	var runs []partition.TypeRun
	for _, run := range f.Schema.AllRuns() {
		runs = append(runs, partition.TypeRun{Type: run.Type, First: int64(run.Lo)})
	}
	l := &learnt{runs: f.Schema.AllRuns(), rows: store.NewTypeRows(f.Schema, runs, f.Vertices)}
	l.table = store.NewEmbeddings(l.rows, f.Opt.Model.Hidden, f.Dev.Type().Size())
	l.table.Threads = threads
	l.Begin(f)
	return l
}

func featureless(t graph.VertexType) bool { return t.Features == nil }

// Join adds the table.
func (l *learnt) Join(p *Pipeline) (err error) {
	if err := checkLearnt(l.site.Opt.Resume); err != nil {
		return err
	}
	l.puller = p.Store.Puller()
	if l.table, err = p.Store.AddTypeRows(l.rows, l.site.Opt.Model.Hidden, l.site.Dev.Type().Size()); err != nil {
		return err
	}
	l.table.Threads, l.steps = p.Options.ThreadCount(), p.Steps
	return nil
}

// Prepare has rows come ahead where batches do.
func (l *learnt) Prepare(p *Pipeline) error {
	if !p.NotesRows() {
		return nil
	}
	return l.table.LookAhead()
}

// Drawn tells owners what a batch needs.
func (l *learnt) Drawn(ctx context.Context, b *Batch, number int) (err error) {
	if !l.table.LooksAhead() {
		return nil
	}
	numbers := slices.Concat(l.locate(nil, b, b.types())...)
	b.Noted, err = l.table.Note(ctx, b.Pulls(), int64(number)-l.first+1, numbers, b.Empty)
	return err
}

// checkLearnt refuses a checkpoint that lacks what learnt rows go on from; nil: there is none.
func checkLearnt(s *train.State) error {
	kept := func(t nn.Tensor) bool { return t.Name == learntSteps }
	if s == nil || len(s.Optim) == 0 || slices.ContainsFunc(s.Caches, kept) {
		return nil
	}
	return train.Mistake("the checkpoint has no learnt rows of mini-batches: a run on a typed graph goes on with the " +
		"same --mode")
}

// Begin fills the table with the loop's rows, which are new or a checkpoint's, and takes the rest from there.
func (l *learnt) Begin(f *train.Loop) {
	l.loop = f
	kept := map[string][]float64{learntFirst: nil, learntSecond: nil, learntSteps: {0}}
	if s := f.Opt.Resume; s != nil {
		// nil: the checkpoint is of a version that kept those of this worker alone
		at, err := train.RowsAt(s.Caches, learntRows, l.vertices())
		for _, t := range s.Caches {
			switch {
			case t.Name == learntSteps:
				kept[t.Name] = t.Numbers()
			case err == nil && at != nil && (t.Name == learntFirst || t.Name == learntSecond):
				kept[t.Name] = train.PickRows(t, at).Data
			case t.Name == learntFirst, t.Name == learntSecond:
				kept[t.Name] = t.Numbers()
			}
		}
	}
	var rows []float64
	l.each(func(m tensor.Matrix) {
		values := make([]float64, m.Rows*m.Cols)
		f.Dev.Download(values, m)
		rows = append(rows, values...)
	})
	for _, name := range []string{learntFirst, learntSecond} {
		if len(kept[name]) != len(rows) {
			kept[name], kept[learntSteps] = make([]float64, len(rows)), []float64{0}
		}
	}
	if err := l.table.Restore(rows, [2][]float64{kept[learntFirst], kept[learntSecond]},
		int(kept[learntSteps][0])); err != nil {
		panic(err) // both have a row for each vertex of these types
	}
	if l.steps != nil {
		l.first = int64(f.State.Epoch*l.steps() + f.State.Batch)
		l.table.Begin(int64(f.Opt.Epochs*l.steps()) - l.first)
	}
}

func (l *learnt) Stepped(int, int) {}
func (l *learnt) End()             {}

// each calls f with the loop's rows, run by run, as the table has them.
func (l *learnt) each(f func(m tensor.Matrix)) {
	next := make([]int, len(l.loop.X.Typed.Learnt))
	for _, run := range l.runs {
		p, n := l.loop.X.Typed.Learnt[run.Type], run.Hi-run.Lo
		if p != nil {
			f(p.Value.Slice(next[run.Type], next[run.Type]+n))
		}
		next[run.Type] += n
	}
}

// vertices are the table's, row by row.
func (l *learnt) vertices() (list []uint32) {
	next := make([]int, len(l.loop.X.Typed.Learnt))
	for _, run := range l.runs {
		n := run.Hi - run.Lo
		if l.loop.X.Typed.Learnt[run.Type] != nil {
			list = append(list, l.loop.X.Typed.Vertices[run.Type][next[run.Type]:next[run.Type]+n]...)
		}
		next[run.Type] += n
	}
	return list
}

// refresh brings the loop's rows up to date.
func (l *learnt) refresh() {
	own, _ := l.table.Own()
	numbers := l.table.Numbers(own)
	l.each(func(m tensor.Matrix) {
		n := m.Rows * m.Cols
		l.loop.Dev.Upload(m, numbers[:n])
		numbers = numbers[n:]
	})
}

// Measure has a loop measure with the rows as they are.
func (l *learnt) Measure(f *train.Loop) {
	measure := f.Measure
	f.Measure = func(e *event.Epoch) error {
		l.refresh()
		return measure(e)
	}
}

// Kept is what a checkpoint has of this worker, beside the loop's rows, which it saves itself.
func (l *learnt) Kept() ([]nn.Tensor, error) {
	l.refresh()
	_, moments := l.table.Own()
	list := []nn.Tensor{{Name: learntSteps, Shape: []int{1}, F64: true, Data: []float64{float64(l.table.Steps)}},
		train.IDsTensor(learntRows, l.vertices())}
	for i, name := range []string{learntFirst, learntSecond} {
		rows := len(moments[i]) / l.table.Size / l.table.Dim
		list = append(list, nn.Tensor{Name: name, Shape: []int{rows, l.table.Dim}, F64: l.table.Size == 8,
			Data: l.table.Numbers(moments[i])})
	}
	return list, nil
}

// Rows are the rows of a batch, of types with features and without.
func (l *learnt) Rows(b *Batch, all nn.Input) (nn.Input, error) {
	dev := l.loop.Dev
	x := b.typedInput(dev, all.Typed)
	l.numbers = l.locate(l.numbers, b, x.Typed.Runs)
	l.all = l.all[:0]
	for _, list := range l.numbers {
		l.all = append(l.all, list...)
	}
	if err := l.pull(b, l.all); err != nil {
		return x, err
	}
	values, each := l.host, l.table.Dim*l.table.Size
	x.Typed.Learnt = make([]*nn.Param, len(l.numbers))
	for t, list := range l.numbers {
		if len(list) == 0 {
			continue
		}
		p := &nn.Param{Value: dev.Scratch(dev.Type(), len(list), l.table.Dim),
			Grad: dev.Scratch(dev.Type(), len(list), l.table.Dim)}
		dev.Zero(p.Grad)
		PutRows(dev, p.Value, l.table, values[:len(list)*each])
		values = values[len(list)*each:]
		x.Typed.Learnt[t] = p
	}
	l.params = x.Typed.Learnt
	return x, nil
}

// locate finds the rows of a batch's vertices, by type, in memory of others.
func (l *learnt) locate(numbers [][]uint32, b *Batch, runs []graph.Run) [][]uint32 {
	numbers = slices.Grow(numbers[:0], len(b.schema.Types))[:len(b.schema.Types)]
	for t := range numbers {
		numbers[t] = numbers[t][:0]
	}
	for _, run := range runs {
		if !l.rows.Has(run.Type) {
			continue
		}
		for _, v := range b.Vertices[run.Lo:run.Hi] {
			row, _ := l.rows.Of(v)
			numbers[run.Type] = append(numbers[run.Type], row)
		}
	}
	return numbers
}

// pull brings rows by number to host memory.
func (l *learnt) pull(b *Batch, numbers []uint32) error {
	l.host = resize(l.host, len(numbers)*l.table.Dim*l.table.Size)
	if l.puller == nil {
		l.table.Read(l.host, numbers)
		return nil
	}
	return l.site.Waiting("learnt rows", func() error {
		if b.Noted != nil {
			return l.table.Fill(l.site.Ctx, b.Noted, l.host)
		}
		return l.table.Pull(l.site.Ctx, l.puller, b.Pulls(), l.host, numbers)
	})
}

// Push updates the rows of a batch.
func (l *learnt) Push(b *Batch, dx tensor.Matrix, step int, lr float64) error {
	l.Hold(b, dx)
	numbers, gradients := l.held.Take(l.table)
	if l.puller == nil {
		l.table.Update(lr, numbers, gradients)
		return nil
	}
	return l.site.Waiting("gradients of learnt rows", func() error {
		return l.table.Step(l.site.Ctx, b.Pulls(), step, lr, numbers, gradients)
	})
}

// Hold keeps the gradients of the batch at hand until they are pushed, and frees its rows.
func (l *learnt) Hold(*Batch, tensor.Matrix) {
	dev := l.loop.Dev
	var numbers []uint32
	l.gradients = l.gradients[:0]
	for t, p := range l.params {
		if p == nil {
			continue
		}
		numbers = append(numbers, l.numbers[t]...)
		l.gradients = AppendRows(l.gradients, dev, p.Grad, l.table)
		dev.Free(p.Value)
		dev.Free(p.Grad)
	}
	l.params = nil
	l.held.Add(numbers, l.gradients)
}

// HeldGradients are gradients of the rows of some batches, each of which has a row once.
type HeldGradients struct {
	batches   int
	numbers   []uint32
	gradients []byte
}

// Add holds the gradients of a batch's rows.
func (h *HeldGradients) Add(numbers []uint32, gradients []byte) {
	if len(numbers) > 0 {
		h.batches++
		h.numbers, h.gradients = append(h.numbers, numbers...), append(h.gradients, gradients...)
	}
}

// Take gives what was held, each row once, until the next batch is held.
func (h *HeldGradients) Take(of *store.Embeddings) (numbers []uint32, gradients []byte) {
	numbers, gradients = h.numbers, h.gradients
	if h.batches > 1 {
		numbers, gradients = addedUp(of, numbers, gradients)
	}
	h.batches, h.numbers, h.gradients = 0, h.numbers[:0], h.gradients[:0]
	return numbers, gradients
}

// addedUp adds the gradients of each row, in their order.
func addedUp(of *store.Embeddings, numbers []uint32, gradients []byte) (each []uint32, sums []byte) {
	at, values := map[uint32]int{}, of.Numbers(gradients)
	var total []float64
	for i, v := range numbers {
		row := values[i*of.Dim : (i+1)*of.Dim]
		to, ok := at[v]
		if !ok {
			at[v] = len(each)
			each, total = append(each, v), append(total, row...)
			continue
		}
		for c, x := range row {
			total[to*of.Dim+c] += x
		}
	}
	return each, of.Bytes(total)
}

// numbersOf are the rows of vertices that have one, each once.
func (l *learnt) numbersOf(vertices []uint32) (numbers []uint32) {
	seen := map[uint32]bool{}
	for _, v := range vertices {
		if row, ok := l.rows.Of(v); ok && !seen[row] {
			seen[row], numbers = true, append(numbers, row)
		}
	}
	return numbers
}

// AddSteps adds what a step sends.
func (l *learnt) AddSteps(t []store.Traffic, batches [][]uint32) {
	for _, vertices := range batches {
		if l.table.LooksAhead() {
			l.table.AddAhead(t, l.numbersOf(vertices))
		} else {
			l.table.AddPull(t, l.numbersOf(vertices))
		}
	}
	l.table.AddPush(t, l.numbersOf(slices.Concat(batches...)), false)
}

// AddSteps adds what a step sends that accumulates the gradients of several batches, whose vertices it is given, where
// rows are learnt.
func (p *Pipeline) AddSteps(t []store.Traffic, batches [][]uint32) {
	if p.input != nil {
		p.input.AddSteps(t, batches)
	}
}

// keeping is the strategy of one worker, with what its learnt rows keep.
type keeping struct {
	train.Strategy
	rows *learnt
}

func (k keeping) Caches() []nn.Tensor {
	kept, _ := k.rows.Kept()
	return append(k.Strategy.Caches(), kept...)
}
