package predict

import (
	"fmt"

	"starling/partition"
	"starling/report"
	"starling/serve"
	"starling/setup"
	"starling/spec"
)

// Options say what to predict, and where to.
type Options struct {
	Run, Dataset string
	What         string // one of serve.Whats
	Out          string // a .csv, .parquet or .npy file; empty: WHAT.npy here
	Pairs        string // a file of them, for scores
	Candidates   string // a file of pairs that are ranked among candidates, for scores
	// Edges is a table, and Features files of a row per vertex: Dataset is a table of vertices then, and all become a
	// dataset exactly as that of the run was made.
	Edges     string
	Features  []string
	Graph     string // a typed dataset that gets the vertices and edges of Dataset, a schema; empty: they are one
	Type      string // of a typed graph: the type whose embeddings are asked for; empty: the model's target
	Threads   int
	Device    string // cpu, cuda or cuda:N; empty: cpu
	Overwrite bool   // replace an existing file
	Report    string // a file for the report by class, - for the terminal; empty: none
	// Top, for scores, is how many of the likeliest partners of each of Vertices are found; 0: none. Known partners are
	// left out unless Known is set. Relation names which edges a pair is, where the model knows several relations.
	Top      int
	Vertices []string
	Known    bool
	Relation string
	// Of a partition: one worker per part, each a process unless InProcess is set.
	Workers   int
	InProcess bool
	Shards    bool // a file for each part, beside one of its vertices, instead of one file of all
	Timeout   int  // seconds that a worker may not respond; 0: as in training
}

// shortestTimeout is a second of silence for each start of workers, and time to start them.
const shortestTimeout = 6

// checkTimeout refuses a timeout without workers that could be late.
func checkTimeout(seconds int, dataset string) error {
	switch {
	case seconds != 0 && seconds < shortestTimeout:
		return spec.Mistake("--timeout", fmt.Sprint(seconds), fmt.Sprintf("%d seconds or more, or 0", shortestTimeout), "")
	case seconds > 0 && !partition.IsPartition(dataset):
		return spec.Mistake("--timeout", "it with a dataset that is no partition", "a partition, whose workers may be late",
			"leave it out")
	}
	return nil
}

// onDevice is a spec with the device of a prediction.
func (o *Options) onDevice() spec.Spec {
	s := spec.Default()
	s.Machine.Threads = o.Threads
	if o.Device != "" {
		s.Machine.Device = o.Device
	}
	return s
}

// checkReport refuses a report of what has no classes, and a file that it cannot be written to.
func (o *Options) checkReport() error {
	switch {
	case o.Report == "":
		return nil
	case o.What != serve.Labels:
		return spec.Mistake("--report", "it with --what "+o.What, "--what labels, which are compared with the dataset's", "")
	case o.Report != "-":
		if err := report.CheckEvaluationFile("--report", o.Report); err != nil {
			return err
		}
		if err := spec.CheckFile("--report", o.Report); err != nil {
			return err
		}
		return setup.Overwriteable(o.Report, "this file", o.Overwrite)
	}
	return nil
}

// checkOut makes sure that the file can be written, and replaces none without --overwrite.
func (o *Options) checkOut() error {
	if err := spec.CheckFile("--out", o.Out); err != nil {
		return err
	}
	return setup.Overwriteable(o.Out, "this file", o.Overwrite)
}
