// Package embeddings decorates mini-batches with rows of vertices that are learnt: --learn-embeddings.
package embeddings

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/store"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// embeddings are learnt rows of vertices, which stand beside the features of a batch's vertices:
// the input of a vertex is [features | embedding]. A step pulls the rows of its vertices, and
// after the backward pass pushes their gradients: see store.Embeddings.
type embeddings struct {
	*store.Embeddings
	p      *batch.Pipeline
	async  bool
	puller *store.Puller
	best   []byte // this worker's rows at the best epoch
	pushed chan error
	first  int64 // batch that the run begins with, where rows come ahead

	// Of the batch at hand; memory is reused.
	rows, joined, gradients []byte
	held                    batch.HeldGradients
}

// Names of what a worker keeps of its rows in a checkpoint, and of the table in a model.
const (
	keptRows   = "embeddings.rows"
	keptFirst  = "embeddings.first_moment"
	keptSecond = "embeddings.second_moment"
	keptSteps  = "embeddings.steps"
	keptBest   = "embeddings.best"
	keptIDs    = "embeddings.ids" // vertices of the rows
	Table      = "embeddings.weight"
)

// New is the decoration of a run that learns embeddings; nil: it does not. The input of its model changes, and
// a graph may have no other features.
func New(s *train.Site) batch.Decoration {
	if s.Opt.Embeddings == nil {
		return nil
	}
	s.Opt.CacheFirst = false
	if s.Part.Features == nil {
		part := *s.Part
		part.Features = &graph.Features{Rows: part.Core(), F32: []float32{}} // of no columns
		s.Part = &part
	}
	return &embeddings{async: s.Opt.Embeddings.Async}
}

// Check refuses features that learnt rows cannot stand beside.
func Check(o *train.Options, _ *batch.Options, f train.Facts) error {
	switch {
	case o.Embeddings == nil:
	case f.Features == graph.Sparse:
		return graph.Apart("--learn-embeddings", "sparse features", "learnt rows stand beside dense ones",
			"import the features as dense ones, or leave them out")
	case o.Model.InputDropout:
		return graph.Apart("--learn-embeddings", "--input-dropout", "learnt rows are not dropped",
			"leave one of them out")
	}
	return nil
}

// Join makes the table, or takes it from a checkpoint.
func (e *embeddings) Join(p *batch.Pipeline) (err error) {
	s := p.Site
	o := s.Opt.Embeddings
	e.p, e.puller = p, p.Store.Puller()
	if e.Embeddings, err = p.Store.AddEmbeddings(o.Dim, s.Dev.Type().Size(), o.Adagrad, s.Opt.Seed); err != nil {
		return err
	}
	e.Threads = p.Options.ThreadCount()
	if o.Async && s.End.Rank() == 0 {
		s.Events.On(event.Note{Text: "--async-embeddings: rows are updated in the order in which gradients arrive, " +
			"so this run is not repeatable"})
	}
	if s.Opt.Resume == nil {
		return nil
	}
	return e.restore(s.Opt.Resume.Caches)
}

// Prepare has rows come ahead where batches do.
func (e *embeddings) Prepare(p *batch.Pipeline) error {
	if e.async || !p.NotesRows() {
		return nil
	}
	return e.LookAhead()
}

// Begin counts the batches of the run.
func (e *embeddings) Begin(f *train.Loop) {
	e.first = int64(f.State.Epoch*e.p.Steps() + f.State.Batch)
	e.Embeddings.Begin(int64(f.Opt.Epochs*e.p.Steps()) - e.first)
}

// Drawn tells owners what a batch needs, the number of which is of all batches of the run.
func (e *embeddings) Drawn(ctx context.Context, b *batch.Batch, number int) (err error) {
	b.Noted, err = e.Note(ctx, b.Pulls(), int64(number)-e.first+1, b.Vertices, b.Empty)
	return err
}

func (e *embeddings) Stepped(int, int) {}

// End tells how many rows came ahead.
func (e *embeddings) End() {
	if rows, pending := e.Ahead(); rows > 0 && e.p.Site.End.Rank() == 0 {
		text := fmt.Sprintf("other workers own %s of embeddings that worker 0's batches needed; %.1f%% came ahead of "+
			"their step, the others with the update before it", event.Counted(rows, "row"),
			100*float64(rows-pending)/float64(rows))
		e.p.Site.Events.On(event.Note{Minor: true, Text: text})
	}
}

// ids are the vertices of this worker's rows.
func (e *embeddings) ids() []uint32 { part := e.p.Site.Part; return part.IDs[:part.Core()] }

// restore takes what Kept has, of this worker or of all.
func (e *embeddings) restore(list []nn.Tensor) error {
	at, err := train.RowsAt(list, keptIDs, e.ids())
	if err != nil {
		return train.Mistake("the checkpoint's embeddings are of other vertices: %v", err)
	}
	kept := map[string][]float64{}
	for _, t := range list {
		switch t.Name {
		case keptRows, keptFirst, keptSecond, keptBest:
			if at != nil {
				t = train.PickRows(t, at)
			}
			fallthrough
		case keptSteps:
			kept[t.Name] = t.Numbers()
		}
	}
	if len(kept[keptSteps]) == 0 {
		return train.Mistake("the checkpoint has no embeddings of this worker: one of an earlier version goes on " +
			"with the same partition and workers")
	}
	if best, ok := kept[keptBest]; ok {
		e.best = e.Bytes(best)
	}
	return e.Restore(kept[keptRows], [2][]float64{kept[keptFirst], kept[keptSecond]}, int(kept[keptSteps][0]))
}

// Kept is what a checkpoint has of this worker.
func (e *embeddings) Kept() ([]nn.Tensor, error) {
	rows, moments := e.Own()
	tensor := func(name string, b []byte) nn.Tensor {
		return nn.Tensor{Name: name, Shape: []int{len(b) / e.Size / e.Dim, e.Dim}, F64: e.Size == 8, Data: e.Numbers(b)}
	}
	out := []nn.Tensor{tensor(keptRows, rows), tensor(keptFirst, moments[0]), tensor(keptSecond, moments[1]),
		{Name: keptSteps, Shape: []int{1}, F64: true, Data: []float64{float64(e.Steps)}},
		train.IDsTensor(keptIDs, e.ids())}
	if e.best != nil {
		out = append(out, tensor(keptBest, e.best))
	}
	return out, nil
}

// Rows are the rows of a batch, features and embeddings, on the device. Without features they are pulled to where the
// device has them.
func (e *embeddings) Rows(b *batch.Batch, all nn.Input) (nn.Input, error) {
	dev, n := e.p.Site.Dev, len(b.Vertices)
	x, alone := dev.Scratch(all.Type(), n, all.Cols), all.Cols == e.Dim
	to := batch.RowMemory(dev, x)
	direct := alone && to != nil
	if !direct {
		e.rows = slices.Grow(e.rows[:0], n*e.Dim*e.Size)[:n*e.Dim*e.Size]
		to = e.rows
	}
	if err := e.p.Site.Waiting("embeddings", func() error {
		if b.Noted != nil {
			return e.Fill(e.p.Site.Ctx, b.Noted, to)
		}
		return e.Pull(e.p.Site.Ctx, e.puller, b.Pulls(), to, b.Vertices)
	}); err != nil {
		return nn.Input{}, err
	}
	if !direct {
		e.put(x, b.Pulled.Rows(), 0, e.rows)
	}
	return nn.Input{Matrix: x}, nil
}

// FirstColumn is the first column of the input that is learnt.
func (e *embeddings) FirstColumn() int { return e.p.Site.Part.Features.Cols }

// put fills x with features from a row on and the embeddings in b.
func (e *embeddings) put(x tensor.Matrix, features *graph.Features, from int, b []byte) {
	if x.Rows == 0 {
		return
	}
	if features.Cols == 0 {
		batch.PutRows(e.p.Site.Dev, x, e.Embeddings, b)
		return
	}
	if to := batch.RowMemory(e.p.Site.Dev, x); to != nil && features.F32 != nil && e.Size == 4 {
		joinRows(to, features.F32[from*features.Cols:], features.Cols, b, e.Dim)
		return
	}
	e.joined = e.joined[:0]
	row, each := make([]float32, features.Cols), e.Dim*e.Size
	for i := range x.Rows {
		features.CopyRow(row, uint32(from+i))
		for _, f := range row {
			e.joined = batch.AppendNumber(e.joined, float64(f), e.Size)
		}
		e.joined = append(e.joined, b[i*each:(i+1)*each]...)
	}
	batch.PutRows(e.p.Site.Dev, x, e.Embeddings, e.joined)
}

// joinRows fills rows with those of features, and beside each the dim numbers of its embedding.
func joinRows(to []byte, features []float32, cols int, embeddings []byte, dim int) {
	left, right := 4*cols, 4*dim
	from := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(features))), 4*len(features))
	for len(to) > 0 {
		copy(to, from[:left])
		copy(to[left:], embeddings[:right])
		to, from, embeddings = to[left+right:], from[left:], embeddings[right:]
	}
}

// measured fills the rows that are measured on, of all vertices of this worker.
func (e *embeddings) measured(x tensor.Matrix, b []byte) error {
	if err := e.flush(); err != nil {
		return err
	}
	if b == nil {
		b = e.OwnRows()
	}
	f, each := e.p.Site.Part.Features, e.Dim*e.Size
	if e.p.Site.Opt.RowNormalize {
		f = f.RowNormalize()
	}
	const piece = 1 << 14
	for lo := 0; lo < x.Rows; lo += piece {
		hi := min(lo+piece, x.Rows)
		e.put(x.Slice(lo, hi), f, lo, b[lo*each:hi*each])
	}
	return nil
}

// Push sends the gradients of a batch's rows, of which the last columns belong to embeddings, to their owners.
func (e *embeddings) Push(b *batch.Batch, dx tensor.Matrix, step int, lr float64) error {
	numbers, gradients := b.Vertices, []byte(nil)
	if dx.IsZero() {
		numbers, gradients = e.held.Take(e.Embeddings)
	} else {
		gradients = e.gradientsOf(dx)
	}
	ctx, id := e.p.Site.Ctx, b.Pulls()
	if !e.async {
		return e.p.Site.Waiting("gradients of embeddings", func() error {
			return e.Step(ctx, id, step, lr, numbers, gradients)
		})
	}
	if err := e.p.Site.Waiting("gradients of embeddings", e.flush); err != nil {
		return err
	}
	vertices, done := slices.Clone(numbers), make(chan error, 1)
	gradients = slices.Clone(gradients)
	e.pushed = done
	go func() { done <- e.Async(ctx, id, lr, vertices, gradients) }()
	return nil
}

// gradientsOf are the gradients of a batch's rows, as they travel.
func (e *embeddings) gradientsOf(dx tensor.Matrix) []byte {
	each := e.Dim * e.Size
	if from := batch.RowMemory(e.p.Site.Dev, dx); from != nil && dx.Rows > 0 {
		width := len(from) / dx.Rows
		e.gradients = slices.Grow(e.gradients[:0], dx.Rows*each)
		for lo := 0; lo < len(from); lo += width {
			e.gradients = append(e.gradients, from[lo+width-each:lo+width]...)
		}
		return e.gradients
	}
	e.gradients = batch.AppendRows(e.gradients[:0], e.p.Site.Dev, dx, e.Embeddings)
	gradients := e.gradients
	if features := (dx.Cols - e.Dim) * e.Size; features > 0 { // the last columns, moved together
		for i := range dx.Rows {
			copy(gradients[i*each:(i+1)*each], gradients[(i+1)*features+i*each:])
		}
		gradients = gradients[:dx.Rows*each]
	}
	return gradients
}

// Hold keeps the gradients of a batch's rows until they are pushed.
func (e *embeddings) Hold(b *batch.Batch, dx tensor.Matrix) {
	e.held.Add(b.Vertices, e.gradientsOf(dx))
	e.p.Site.Dev.Free(dx)
}

// flush waits for what was pushed.
func (e *embeddings) flush() error {
	if e.pushed == nil {
		return nil
	}
	err := <-e.pushed
	e.pushed = nil
	return err
}

// AddSteps adds what a step sends.
func (e *embeddings) AddSteps(t []store.Traffic, batches [][]uint32) {
	for _, vertices := range batches {
		if e.LooksAhead() {
			e.AddAhead(t, vertices)
		} else {
			e.AddPull(t, vertices)
		}
	}
	pushed := batches[0]
	if len(batches) > 1 {
		pushed = slices.Concat(batches...)
		slices.Sort(pushed)
		pushed = slices.Compact(pushed)
	}
	e.AddPush(t, pushed, e.async)
}

// Measure has a loop measure with embeddings in its input, and keeps the embeddings of the best epoch.
func (e *embeddings) Measure(f *train.Loop) {
	measure := f.Measure
	f.Measure = func(m *event.Epoch) error {
		err := e.flush()
		if err == nil && e.async { // others' gradients
			err = f.Peers.AllReduce(m.Epoch, 0, []float64{0})
		}
		if err == nil {
			err = e.measured(f.X.Matrix, nil)
		}
		if err == nil {
			err = measure(m)
		}
		if err == nil && m.Best {
			e.best = e.OwnRows()
		}
		return err
	}
}

// Plan adds what measuring waits for.
func (e *embeddings) Plan(p *wire.Plan, _ *nn.Model) {
	if e.async {
		batch.PlanSums(p.Measure, e.p.Site.End, 1) // all gradients have arrived
	}
}

// Rank has others rank with the rows of the best epoch, and adds these to the result.
func (e *embeddings) Rank(f *train.Loop, r *train.Result, inner func() error) error {
	mine := e.best
	if mine == nil {
		mine = e.OwnRows()
	}
	ids := e.ids()
	r.LearntRows = []nn.Tensor{{Name: Table, Shape: []int{len(ids), e.Dim}, F64: e.Size == 8, Data: e.Numbers(mine)},
		nn.PlacesOf(Table, ids)}
	if inner == nil {
		return nil
	}
	if err := e.measured(f.X.Matrix, e.best); err != nil {
		return err
	}
	return inner()
}
