package bench

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/sample"
	"starling/spec"
	"starling/train/batch"
)

// Samples is how fast mini-batches are drawn.
type Samples struct {
	Dataset          string  `json:"dataset"`
	Sampler          string  `json:"sampler"`
	Threads          int     `json:"threads"`
	Batches          int     `json:"batches"`
	BatchesPerSecond float64 `json:"batches_per_second"`
	EdgesPerBatch    float64 `json:"edges_per_batch"`
	VerticesPerBatch float64 `json:"vertices_per_batch"`
	EdgesPerSecond   float64 `json:"edges_per_second"`
}

// TimeSamples draws batches as s says, after one per thread to warm up, with all vertices
// relabelled, and trains on none.
func TimeSamples(ctx context.Context, s spec.Spec, batches int) (*Samples, error) {
	s.Mode = "mini"
	if err := s.Complete(); err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	data, err := graph.Open(s.Dataset)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	if err := data.Untyped("bench sample"); err != nil {
		return nil, err
	}
	if len(data.Splits.Train) == 0 {
		return nil, &graph.InputError{File: s.Dataset, Found: "no training split",
			Want: "training vertices to sample for"}
	}
	settings, err := s.BatchSettings(nil)
	if err != nil {
		return nil, err
	}
	opt := batch.Options(settings)
	method, err := opt.Method(ctx, data.Graph, data.Splits.Train, s.Model.Layers, false, s.Seed)
	if err != nil {
		return nil, err
	}
	b := &Samples{Dataset: data.Meta.Name, Sampler: s.Batches.Sampler, Threads: s.Machine.Cores(), Batches: batches}
	b.run(method)
	return b, nil
}

// run draws batches 0, 1, 2, ... of epochs 0, 1, 2, ... on all threads.
func (b *Samples) run(m sample.Method) {
	var next, edges, vertices atomic.Int64
	var warm, done sync.WaitGroup
	warm.Add(b.Threads)
	begin := make(chan struct{})
	for range b.Threads {
		done.Go(func() {
			s := m.Sampler()
			var batch sample.Batch
			s.Sample(&batch, 0, 0)
			warm.Done()
			<-begin
			for i := next.Add(1); i <= int64(b.Batches); i = next.Add(1) {
				s.Sample(&batch, int(i)/m.Batches(), int(i)%m.Batches())
				edges.Add(int64(batch.Edges()))
				vertices.Add(int64(len(batch.Vertices)))
			}
		})
	}
	warm.Wait()
	start := time.Now()
	close(begin)
	done.Wait()
	seconds, n := time.Since(start).Seconds(), float64(b.Batches)
	b.BatchesPerSecond, b.EdgesPerSecond = n/seconds, float64(edges.Load())/seconds
	b.EdgesPerBatch, b.VerticesPerBatch = float64(edges.Load())/n, float64(vertices.Load())/n
}

// JSON writes the figures as one object, to a file or for "-" to stdout.
func (b *Samples) JSON(path string, stdout io.Writer) error { return report.WriteJSON(b, path, stdout) }

// String is the figures as one line.
func (b *Samples) String() string {
	return fmt.Sprintf("%s on %s, %s: %.1f batches/s, %s edges/s; a batch has %s vertices and %s edges\n", b.Sampler,
		b.Dataset, event.Counted(b.Threads, "thread"), b.BatchesPerSecond, event.Count(int64(b.EdgesPerSecond)),
		event.Count(int64(b.VerticesPerBatch)), event.Count(int64(b.EdgesPerBatch)))
}
