package worker

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"slices"

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
