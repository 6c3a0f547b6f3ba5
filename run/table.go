package run

import (
	"encoding/csv"
	"strings"

	"starling/dataset"
	"starling/dataset/schema"
	"starling/graph"
	"starling/serve"
)

// TableFormat is the format of a table of edges, and perhaps one of vertices.
const TableFormat = "table"

// TableColumns say what the columns of tables are.
type TableColumns = dataset.TableColumns

// tableSchema is the schema that flags describe.
func tableSchema(src string, opt ImportOptions) (*schema.Schema, error) {
	if opt.KeepDuplicates {
		return nil, &graph.InputError{Field: "--keep-duplicates", Found: "a setting without effect on table",
			Want: "--repeats keep"}
	}
	if err := opt.Check(TableFormat); err != nil {
		return nil, err
	}
	t := opt.Table
	c := &schema.Columns{Edges: src, Vertices: t.Vertices, Src: t.Src, Dst: t.Dst, Weight: t.Weight, Time: t.Time,
		EdgeFeatures: t.EdgeFeatures, ID: t.ID, Label: t.Label, Drop: t.Drop, OneHot: opt.OneHot, Split: t.Split,
		Shares:     [3]float64{opt.Split.Train, opt.Split.Val, opt.Split.Test},
		VertexTime: t.VertexTime, Task: opt.Task, Missing: opt.Missing, Standardize: opt.Standardize, Repeats: t.Repeats,
		Symmetrize: opt.Symmetrize, SelfLoops: opt.KeepSelfLoops, Negative: opt.NegativeWeights, Header: opt.Header}
	var err error
	if c.Features, err = listed(opt.Features); err != nil {
		return nil, err
	}
	if t.Like != "" {
		if c.Like, err = likeOf(opt); err != nil {
			return nil, err
		}
		c.LikeFeatures, c.Features = c.Features, nil
	}
	return c.Schema()
}

// listed are the names of a list, with commas between them; names with commas are in quotes.
func listed(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	out, err := csv.NewReader(strings.NewReader(list)).Read()
	if err != nil {
		return nil, &graph.InputError{Field: "--features", Found: graph.Sentence(err.Error()),
			Want: "names with commas between them", Fix: "put names with commas or quotes into quotes"}
	}
	return out, nil
}

// likeOf is the preparation that --like names. It says all of the columns.
func likeOf(opt ImportOptions) (*graph.Preparation, error) {
	t := opt.Table
	plain := TableColumns{Vertices: t.Vertices, Like: t.Like}
	same := t.Src == plain.Src && t.Dst == "" && t.Weight == "" && t.Time == "" && t.EdgeFeatures == nil && t.Repeats == "" &&
		t.ID == "" && t.Label == "" && t.Split == "" && t.VertexTime == "" && t.Drop == nil
	if !same || opt.OneHot != nil || opt.Missing != "" || opt.Standardize || opt.Symmetrize || opt.KeepSelfLoops || opt.Task != "" ||
		opt.NegativeWeights {
		return nil, &graph.InputError{Field: "--like", Found: "it with flags that say what columns become",
			Want: "it with --vertices and files of --features alone", Fix: "the preparation says all else"}
	}
	return preparationOf(t.Like)
}

// preparationOf is a run's, or a dataset's.
func preparationOf(dir string) (p *graph.Preparation, err error) {
	if graph.IsDataset(dir) {
		p, err = graph.ReadPreparation(dir)
	} else {
		p, err = serve.ReadPreparation(dir)
	}
	if err == nil && p == nil {
		err = &graph.InputError{File: dir, Found: "no preparation", Want: "a dataset of import table or import schema, or a run of one",
			Fix: "import the tables again, and train again"}
	}
	return p, err
}
