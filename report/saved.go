package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"starling/disk"
	"starling/graph"
	"starling/spec"
	"starling/train"
)

const (
	maxBytes = 256 << 20 // of a result

	savedResult = "a file that starling train --json wrote"
)

// CompareSaved compares results that starling train --json wrote. Runs of the same strategy
// are rounds of one row.
func CompareSaved(files []string) (*Comparison, error) {
	var all []*Rounds
	var runs []*Run
	for _, path := range files {
		r, err := Read(path)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
		name := train.Label(r.Strategy, r.StrategySettings)
		at := slices.IndexFunc(all, func(o *Rounds) bool { return o.Strategy == name })
		if at < 0 {
			at = len(all)
			all = append(all, &Rounds{Strategy: name})
		}
		all[at].Runs = append(all[at].Runs, r)
	}
	c := Compare(all)
	c.Notes = differences(files, runs)
	return c, nil
}

// Read reads a result that starling train --json wrote.
func Read(path string) (*Run, error) {
	b, err := spec.ReadFile("--from", path, maxBytes, savedResult, "")
	if err != nil {
		return nil, err
	}
	r, err := parse(b)
	return r, graph.InFile(path, err)
}

func parse(b []byte) (*Run, error) {
	r := &Run{HiddenShare: Number(math.NaN()), WaitShare: Number(math.NaN())}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, spec.Mistake("--from", graph.Sentence(err.Error()), savedResult, "")
	}
	if r.Strategy == "" || r.Workers < 1 || len(r.Loss) == 0 || len(r.EpochSeconds) == 0 {
		return nil, spec.Mistake("--from", "no result of a training run", savedResult, "")
	}
	return r, nil
}

// differences names the settings in which runs differ from the first, so that they cannot be
// compared.
func differences(files []string, runs []*Run) (notes []string) {
	for i, r := range runs[1:] {
		if in := runs[0].differsIn(r); len(in) > 0 {
			notes = append(notes, fmt.Sprintf("%s is another run than %s: %s differ", files[i+1], files[0],
				strings.Join(in, ", ")))
		}
	}
	return notes
}

func (r *Run) differsIn(o *Run) (names []string) {
	for _, d := range []struct {
		what string
		cmp  int
	}{
		{"dataset", cmp.Or(cmp.Compare(o.Dataset, r.Dataset), cmp.Compare(o.Edges, r.Edges))},
		{"model", cmp.Compare(o.Model, r.Model)},
		{"parameters", cmp.Compare(o.Parameters, r.Parameters)},
		{"workers", cmp.Compare(o.Workers, r.Workers)},
		{"servers", cmp.Compare(o.Servers, r.Servers)},
		{"epochs", cmp.Compare(o.Epochs, r.Epochs)},
		{"seed", cmp.Compare(o.Seed, r.Seed)},
		{"dtype", cmp.Compare(o.DType, r.DType)},
		{"threads", cmp.Compare(o.Threads, r.Threads)},
	} {
		if d.cmp != 0 {
			names = append(names, d.what)
		}
	}
	return names
}

// WriteJSON writes v as one line of JSON to a file, whole or not at all, or for "-" to
// stdout.
func WriteJSON(v any, path string, stdout io.Writer) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if path == "-" {
		_, err := stdout.Write(b)
		return err
	}
	return writeFile(path, b)
}

func writeFile(path string, b []byte) error {
	return disk.Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}
