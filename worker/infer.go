package worker

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"unsafe"

	"starling/disk"
	"starling/graph"
	"starling/partition"
	"starling/setup"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// InferredFile is the file of a worker's rows.
func InferredFile(folder string, rank int) string {
	return filepath.Join(folder, fmt.Sprintf("rows-%d", rank))
}

// infer is a worker's share of a prediction.
func (t *Task) infer(ctx context.Context, part *partition.Part, end wire.Endpoint, threads int, from *train.State) (
	*Share, error) {
	s := t.Spec
	s.Machine.Threads = threads
	rescaled, err := t.Infer.rescaled(part)
	if err != nil {
		return nil, graph.InFile(part.Dir, err)
	}
	dev, err := setup.NewDevice(&s, end.Rank())
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	opt := train.Options{Model: t.Infer.Model, RowNormalize: t.Infer.RowNormalize, Rows: t.Infer.Rows, Resume: from}
	if opt.Strategy, err = s.Choice(); err != nil {
		return nil, err
	}
	var list []float32
	if t.Infer.Temporal != nil {
		list, err = batch.InferAsOf(ctx, dev, rescaled, end, opt, from.Model, t.Infer.LeftOut, t.Infer.Temporal)
	} else if rows, failed := train.Infer(ctx, dev, rescaled, end, opt, from.Model, t.Infer.LeftOut); failed != nil {
		err = failed
	} else {
		list = make([]float32, rows.Rows*rows.Cols)
		dev.Download(list, rows)
		err = dev.Err()
	}
	if err != nil {
		return nil, err
	}
	return &Share{}, disk.Write(InferredFile(t.Infer.Folder, end.Rank()), func(w io.Writer) error {
		for block := range slices.Chunk(list, 1<<18) { // each is copied into bytes
			if err := binary.Write(w, binary.LittleEndian, block); err != nil {
				return err
			}
		}
		return nil
	})
}

// InferredRows are the rows that one worker has written.
func InferredRows(folder string, rank int) ([]float32, error) {
	b, err := disk.Map(InferredFile(folder, rank))
	if err != nil {
		return nil, err
	}
	defer disk.Unmap(b)
	return slices.Clone(floats(b)), nil
}

// Inferred are the rows that workers have written of their vertices, put where these are among all, in memory that a
// temporary file backs.
type Inferred struct {
	Width  int
	Values []float32
	memory []byte
}

// Add adds the rows of one worker's vertices, of all.
func (r *Inferred) Add(folder string, rank int, ids []uint32, all int) error {
	b, err := disk.Map(InferredFile(folder, rank))
	if err != nil || len(b) == 0 {
		return err
	}
	defer disk.Unmap(b)
	rows := floats(b)
	if r.memory == nil {
		r.Width = len(rows) / len(ids)
		if r.memory, err = disk.Scratch(folder, "rows", 4*int64(all)*int64(r.Width)); err != nil {
			return err
		}
		r.Values = floats(r.memory)
	}
	for i, v := range ids {
		copy(r.Values[int(v)*r.Width:], rows[i*r.Width:(i+1)*r.Width])
	}
	return nil
}

// Close ends the use of the rows.
func (r *Inferred) Close() {
	disk.Unmap(r.memory)
	r.memory, r.Values = nil, nil
}

// floats are the numbers of mapped memory.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// rescaled is a part with features by the scales of the data that the model was trained on.
func (i *Inference) rescaled(part *partition.Part) (*partition.Part, error) {
	out := *part
	var err error
	if part.Book.Schema == nil {
		out.Features, err = part.Features.Rescaled(part.Book.Features.Scale, i.Scale)
		return &out, err
	}
	out.TypeFeatures = slices.Clone(part.TypeFeatures)
	for k, f := range part.TypeFeatures {
		if f == nil {
			continue
		}
		if out.TypeFeatures[k], err = f.Rescaled(part.Book.Schema.Types[k].Features.Scale, i.TypeScales[k]); err != nil {
			return nil, err
		}
	}
	return &out, nil
}
