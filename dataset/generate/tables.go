package generate

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"starling/dataset"
	"starling/graph"
)

// Tables draws the graph of Dataset and writes it to the folder out as a user has it who has no dataset yet:
//
//	edges.csv     source,target                of edges that are there both ways, one of the two
//	vertices.csv  id,label,split               ids are v0, v1, …, labels c0, c1, …
//	vectors.npy   a row of features per vertex  in the order of vertices.csv
func Tables(kind string, p Params, out string) (dataset.Summary, error) {
	if kind == TypedKind {
		return dataset.Summary{}, badParam("tables", "it with typed", "sbm, rmat or er, which are two tables")
	}
	if p.Task != "" && p.Task != "classify" || p.BFloat16 || p.EdgeFeatures > 0 || p.Overwrite {
		return dataset.Summary{}, badParam("tables", "it with --task, --bf16, --edge-feature-width or --overwrite", "none of these")
	}
	folder, err := graph.NewFolder(out)
	if err != nil {
		return dataset.Summary{}, err
	}
	defer folder.Abort()
	if _, err := os.Lstat(out); err == nil {
		return dataset.Summary{}, &graph.InputError{File: out, Found: "something that is there", Want: "a new folder",
			Fix: "choose another name"}
	}
	whole := filepath.Join(folder.Tmp, "dataset")
	sum, err := Dataset(kind, p, whole)
	if err != nil {
		return sum, err
	}
	d, err := graph.Open(whole)
	if err != nil {
		return sum, err
	}
	err = writeTables(folder.Tmp, d)
	vectors := d.Meta.Features != nil
	if err := errors.Join(err, d.Close(), os.RemoveAll(whole)); err != nil {
		return sum, err
	}
	sum.Dir, sum.Notes = out, []string{"tables: edges.csv and vertices.csv"}
	if vectors {
		sum.Notes = []string{"tables: edges.csv, vertices.csv and vectors.npy"}
	}
	return sum, folder.Commit()
}

func writeTables(dir string, d *graph.Dataset) error {
	err := writeText(filepath.Join(dir, "edges.csv"), func(b *bufio.Writer) {
		fmt.Fprintln(b, "source,target")
		for v := range uint32(d.Graph.Nodes()) {
			for _, u := range d.Graph.Neighbors(v) {
				if !d.Meta.Symmetric || u <= v {
					fmt.Fprintf(b, "v%d,v%d\n", u, v)
				}
			}
		}
	})
	if err == nil {
		err = writeText(filepath.Join(dir, "vertices.csv"), func(b *bufio.Writer) { writeVertices(b, d) })
	}
	if err != nil || d.Features == nil {
		return err
	}
	w := graph.NewFolderWriter(dir)
	return graph.PutArray(w, "vectors.npy", d.Features.F32, int64(d.Features.Rows), int64(d.Features.Cols))
}

// writeText writes a file; the folder that it is in appears when all are whole.
func writeText(path string, write func(b *bufio.Writer)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<20)
	write(b)
	return errors.Join(b.Flush(), f.Sync(), f.Close())
}

func writeVertices(b *bufio.Writer, d *graph.Dataset) {
	split := make([]string, d.Graph.Nodes())
	for name, list := range map[string][]uint32{"train": d.Splits.Train, "val": d.Splits.Val, "test": d.Splits.Test} {
		for _, v := range list {
			split[v] = name
		}
	}
	fmt.Fprintln(b, "id,label,split")
	for v := range split {
		label := ""
		if d.Labels != nil && d.Labels.Has(v) {
			label = "c" + strconv.Itoa(int(d.Labels.Class[v]))
		}
		fmt.Fprintf(b, "v%d,%s,%s\n", v, label, split[v])
	}
}
