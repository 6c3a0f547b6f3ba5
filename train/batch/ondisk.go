package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"unsafe"

	"starling/disk/rows"
	"starling/event"
	"starling/graph"
	"starling/sample"
	"starling/tensor"
	"starling/train"
)

// Features that are larger than memory (--features-on disk): since every draw is a pure function, batches are drawn
// twice. The first draw, a window of batches ahead, says which rows of the file they need (disk/rows); the second
// makes the batch, which finds its rows in memory. They are the bytes of the file, so that a run is the same to the
// bit.

// onDisk is a run's rows of features, read ahead of its batches.
type onDisk struct {
	feed  *rows.Feed
	err   error // why there is none
	cols  int
	bf16  bool
	first int // the run's first batch
	each  int // batches of an epoch
}

// heldOnDisk is the number of batches that have their rows: one is trained on, and one is next.
const heldOnDisk = 2

// diskFiles are the files of features that are mapped, of vertices in their order.
func diskFiles(list ...*graph.Features) (files []rows.File, err error) {
	first := 0
	for _, f := range list {
		list := graph.FilesOf(f)
		if list == nil {
			return nil, errors.New("--features-on disk: the features are not those of a file")
		}
		for _, x := range list {
			files = append(files, rows.File{Path: x.Path, Offset: x.Offset, First: uint32(first), Rows: x.Rows})
			first += x.Rows
		}
	}
	return files, nil
}

// newOnDisk begins to read ahead. drawer makes what draws a batch's vertices.
func newOnDisk(d *train.DiskOptions, features []*graph.Features, each, first int, batches int64, threads int,
	drawer func() func(epoch, number int) ([]uint32, error), events event.Listener) *onDisk {
	one := features[0]
	r := &onDisk{cols: one.Cols, bf16: one.Kind() == graph.BFloat16, first: first, each: each}
	var files []rows.File
	if files, r.err = diskFiles(features...); r.err != nil {
		return r
	}
	r.feed, r.err = rows.New(rows.Options{Width: r.width(), Files: files, Memory: d.Memory, Grow: d.Grow,
		Scratch: cmp.Or(d.Scratch, filepath.Dir(files[0].Path)), Packed: d.Packed, Batches: batches, Held: heldOnDisk,
		Threads: threads, Note: func(text string) { events.On(event.Note{Text: text}) },
		Draw: func() func(int64) ([]uint32, error) {
			draw := drawer()
			return func(k int64) ([]uint32, error) { return draw((first+int(k))/each, (first+int(k))%each) }
		}})
	r.err = onDiskError(r.err)
	return r
}

// onDiskError names what failed.
func onDiskError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("--features-on disk: %w", err)
}

// diskOf begins to read the rows of batches of a method, from where a run is to its end.
func diskOf(f *train.Loop, method sample.Method, features *graph.Features, threads int) *onDisk {
	each, at := method.Batches(), f.State
	first := at.Epoch*each + at.Batch
	return newOnDisk(f.Opt.Disk, []*graph.Features{features}, each, first, int64(max(f.Opt.Epochs*each-first, 0)),
		threads, methodDrawer(method), f.Events)
}

// width is the bytes of a row.
func (r *onDisk) width() int {
	if r.bf16 {
		return 2 * r.cols
	}
	return 4 * r.cols
}

// methodDrawer draws vertices by a method.
func methodDrawer(method sample.Method) func() func(epoch, number int) ([]uint32, error) {
	return func() func(epoch, number int) ([]uint32, error) {
		s, b := method.Sampler(), sample.Batch{}
		return func(epoch, number int) ([]uint32, error) {
			s.Sample(&b, epoch, number)
			return slices.Clone(b.Vertices), nil
		}
	}
}

// fill gives a batch its rows.
func (r *onDisk) fill(ctx context.Context, b *Batch, epoch, number int) error {
	if r.err != nil {
		return r.err
	}
	bytes, err := r.feed.Fill(ctx, r.number(epoch, number), b.Vertices)
	b.rows = bytes
	return onDiskError(err)
}

// number is a batch's from the first that is read for.
func (r *onDisk) number(epoch, number int) int64 { return int64(epoch*r.each + number - r.first) }

// release takes a batch's rows back.
func (r *onDisk) release(b *Batch) {
	if b.rows != nil {
		r.feed.Return(b.rows)
		b.rows = nil
	}
}

// matrix is a batch's rows as they were read.
func (r *onDisk) matrix(dev tensor.Device, b *Batch) tensor.Matrix {
	n := len(b.Vertices)
	if r.bf16 {
		return dev.FromHost(n, r.cols, numbersAt[uint16](b.rows))
	}
	return dev.FromHost(n, r.cols, numbersAt[float32](b.rows))
}

// numbersAt is memory as numbers.
func numbersAt[T uint16 | float32](b []byte) []T {
	if len(b) == 0 {
		return []T{}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(*new(T))))
}

// stop ends reading, and all waits for rows.
func (r *onDisk) stop(events event.Listener) {
	if r == nil || r.feed == nil {
		return
	}
	r.feed.Stop()
	s := &r.feed.Stats
	kept := 100 * (1 - float64(s.Missed.Load())/max(float64(s.Rows.Load()), 1))
	events.On(event.Note{Minor: true, Text: fmt.Sprintf("rows of features: %s needed, %.0f%% of them in memory; %s "+
		"read in %s, %s packed", event.Count(s.Rows.Load()), kept, event.Bytes(s.Read.Load()),
		event.Tally(s.Reads.Load(), "piece"), event.Bytes(s.Packed.Load()))})
}

// close frees what rows took. No batch may have any.
func (r *onDisk) close() {
	if r != nil && r.feed != nil {
		_ = r.feed.Close()
	}
}

// diskDrawer draws from a graph that is all here and gives batches their rows.
type diskDrawer struct {
	localDrawer
	of *onDisk
}

func (d diskDrawer) Draw(b *Batch, epoch, number int) error {
	if err := d.localDrawer.Draw(b, epoch, number); err != nil {
		return err
	}
	return d.of.fill(context.Background(), b, epoch, number)
}
