package worker

import (
	"fmt"

	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/resume"
	"starling/sample"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/watch"
)

// Task is what every worker of a run gets, beside its rank.
type Task struct {
	Spec  spec.Spec           `json:"spec"`
	Data  graph.Meta          `json:"data"`
	Parts string              `json:"parts"` // the partition's folder
	ID    string              `json:"id"`    // and its id
	From  *resume.StateHeader `json:"from,omitempty"`
	Infer *Inference          `json:"infer,omitempty"` // nil: it trains
	// Shards is the folder that workers write what they keep for themselves to, if they see it; "": they send it.
	Shards string `json:"shards,omitempty"`
	// Rows is the folder for the learnt rows of the trained model; "": workers send these.
	Rows string `json:"rows,omitempty"`

	Watch *watch.Reporter `json:"-"` // of this worker
	here  int             // workers on this host, each a process; 0: all in this one
}

// OpenPart maps the part of a rank: in the run's partition or, if dir is given, in a partition
// there, a folder of some parts, or the folder of the part itself.
func (t *Task) OpenPart(rank int, dir string) (part *partition.Part, err error) {
	if dir == "" {
		dir = t.Parts
	}
	if part, err = partition.OpenPart(dir, rank); err != nil && !partition.IsPartition(dir) {
		part, err = partition.OpenPartFolder(dir, partition.OpenOptions{})
	}
	if err != nil {
		return nil, err
	}
	if part.Book.ID != t.ID || part.Meta.Part != rank {
		defer part.Close()
		return nil, &graph.InputError{File: part.Dir,
			Found: fmt.Sprintf("part %d of partition %s", part.Meta.Part, part.Book.ID),
			Want:  fmt.Sprintf("part %d of %s", rank, t.ID),
			Fix:   "copy the right part to this host, or name its folder with --part-dir"}
	}
	setup.Regroup(&t.Spec, part)
	return part, nil
}

// Inference is a prediction over parts, as every worker gets it. A worker computes the rows of its own
// vertices layer by layer and writes them, in the order of its part, to a file of the folder.
type Inference struct {
	Model        nn.Config    `json:"model"`
	RowNormalize bool         `json:"row_normalize"`
	Scale        *graph.Scale `json:"scale,omitempty"` // of the features that the model was trained on
	// TypeScales are the same by type, of a typed graph.
	TypeScales []*graph.Scale `json:"type_scales,omitempty"`
	LeftOut    int            `json:"left_out"` // stages at the end
	Rows       tensor.DType   `json:"rows"`     // as which they are stored
	Folder     string         `json:"folder"`
	// Temporal: each vertex is seen as of its time; nil: over the whole graph.
	Temporal *sample.AsOf `json:"temporal,omitempty"`
}
