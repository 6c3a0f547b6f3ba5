package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"starling/disk"
	"starling/event"
	"starling/graph"
	"starling/partition"
	"starling/tensor"
	"starling/tensor/simd"
)

// PartitionSpec is what starling partition can be told.
type PartitionSpec struct {
	Parts, Servers, Workers int
	Method, Objective       string
	Balance                 string
	BestEffort              bool
	Seed                    uint64
	Tries                   int
	Threads, Passes, Hops   int
	Out, PartDir            string
	Overwrite, Verify       bool
	HTML                    string
	Model                   string
	Layers, Hidden, Heads   int
	BatchSize               int
	Fanout                  []int
	JSON                    string
	Quiet                   bool
}

// DefaultPartition is the spec when nothing is said.
func DefaultPartition() PartitionSpec {
	return PartitionSpec{Method: "multilevel", Objective: "cut", Seed: 1, Tries: 1, Servers: 1, Model: "sage", Layers: 3, Hidden: 256, Heads: 4, BatchSize: 1024, Fanout: []int{15, 10, 5}}
}

// PartitionMethods lists the methods, each with a line on what it does.
func PartitionMethods() (names, about []string) {
	for _, name := range partition.Names() {
		names, about = append(names, name), append(about, partition.About(name))
	}
	return names, about
}

// PartitionReport is what came of it.
type PartitionReport struct{ *partition.Report }

// IsPartition tells whether dir is a partition rather than a dataset.
func IsPartition(dir string) bool { return partition.IsPartition(dir) }

// VerifyPartition checks every invariant of the partition in dir.
func VerifyPartition(ctx context.Context, dir string) error {
	_, err := untilInterrupted(ctx, "", func() (any, error) { return nil, partition.Verify(dir) })
	return err
}

// Partition cuts the dataset in dir as s says.
func Partition(ctx context.Context, dir string, s PartitionSpec, events event.Listener) (*PartitionReport, error) {
	opt, err := s.options()
	if err != nil {
		return nil, err
	}
	if err := s.checkPlaces(opt.PartDirs); err != nil {
		return nil, err
	}
	opt.Progress = progress(events)
	r, err := partition.Run(ctx, dir, opt)
	if errors.Is(err, context.Canceled) {
		return nil, ErrInterrupted
	}
	if err != nil {
		return nil, partitionMistake(err)
	}
	r.PeakRSSBytes = tensor.PeakRSS()
	if r.Out != "" {
		s.rehearse(ctx, r)
	}
	if s.HTML != "" {
		if err := disk.Write(s.HTML, func(w io.Writer) error {
			_, err := w.Write(r.HTML())
			return err
		}); err != nil {
			return nil, err
		}
	}
	return &PartitionReport{r}, nil
}

// rehearse replaces the estimated memory of workers by what a rehearsal of training on the
// parts says. Where they cannot be trained on, the estimate stays.
func (s *PartitionSpec) rehearse(ctx context.Context, r *partition.Report) {
	t := Default()
	t.Dataset, t.Model, t.Layers, t.Hidden, t.Heads = r.Out, s.Model, s.Layers, s.Hidden, s.Heads
	if t.settleWorkers() != nil || t.Validate() != nil {
		return
	}
	found, err := t.findParts(ctx, event.All())
	if err != nil || t.settleTask(&found.meta) != nil {
		return
	}
	t.resolve(&found.meta, simd.Best().String())
	c := &clusterRun{spec: t, parts: found}
	p, err := c.plan(event.All())
	if err == nil {
		r.Plan.Memory = p.Each
	}
}

// checkPlaces makes sure before the graph is cut that what comes of it can be written.
func (s *PartitionSpec) checkPlaces(parts []string) error {
	if err := cmp.Or(checkNotDash("--out", s.Out), CheckFile("--json", s.JSON), CheckFile("--html", s.HTML)); err != nil {
		return err
	}
	if s.Out != "" {
		if err := checkWritable("--out", filepath.Dir(filepath.Clean(s.Out))); err != nil {
			return err
		}
	}
	for _, dir := range parts {
		if err := checkWritable("--part-dir", filepath.Dir(filepath.Clean(dir))); err != nil {
			return err
		}
	}
	return nil
}

// CheckUnused refuses settings that the method has no use for. It is for whoever cuts by
// one method: a comparison gives all of them the same settings.
func (s *PartitionSpec) CheckUnused() error {
	for _, f := range []struct {
		flag    string
		given   bool
		methods []string
	}{
		{"--passes", s.Passes != 0, []string{"ldg", "fennel", "bytegnn"}},
		{"--hops", s.Hops != 0, []string{"bytegnn"}},
		{"--objective", s.Objective == "volume", []string{"multilevel", "g3", "metis"}},
	} {
		if f.given && !slices.Contains(f.methods, s.Method) {
			return mistake(f.flag, "a setting without effect", "", "only for --method "+strings.Join(f.methods, ", "))
		}
	}
	return nil
}

// options checks the spec and completes it.
func (s *PartitionSpec) options() (opt partition.Options, err error) {
	parts := s.Parts
	if s.Workers > 0 {
		if parts = s.Workers * max(s.Servers, 1); s.Parts != 0 && s.Parts != parts {
			return opt, mistake("--parts", fmt.Sprint(s.Parts), fmt.Sprintf("%d, the servers times the workers of each", parts), "leave --parts or --workers out")
		}
	}
	if parts < 1 {
		return opt, mistake("--parts", fmt.Sprint(parts), "at least 1", "give --parts K, or --servers S --workers W")
	}
	if s.Servers < 1 || s.Servers > parts {
		return opt, mistake("--servers", fmt.Sprint(s.Servers), fmt.Sprintf("1 to %d, the parts", parts), "")
	}
	if s.Tries < 1 {
		return opt, mistake("--tries", fmt.Sprint(s.Tries), "at least 1", "cut once, or several times to keep the best")
	}
	objective, err := partition.ParseObjective(s.Objective)
	if err != nil {
		return opt, partitionMistake(err)
	}
	if names, _ := PartitionMethods(); s.Method != "" && !slices.Contains(names, s.Method) {
		return opt, mistake("--method", fmt.Sprintf("%q", s.Method), "one of "+strings.Join(names, ", "), suggest(s.Method, names))
	}
	if err := checkThreads(s.Threads); err != nil {
		return opt, err
	}
	opt = partition.Options{Parts: parts, Servers: s.Servers, Method: s.Method, Objective: objective, Balance: s.Balance, BestEffort: s.BestEffort,
		Seed: s.Seed, Tries: s.Tries, Threads: s.Threads, Passes: s.Passes, Hops: s.Hops, Out: s.Out, Overwrite: s.Overwrite, Verify: s.Verify, Compare: s.HTML != "",
		Model: partition.Model{Name: s.Model, Layers: s.Layers, Hidden: s.Hidden, Heads: s.Heads, BatchSize: s.BatchSize, Fanout: s.Fanout}}
	if s.PartDir != "" {
		if !strings.Contains(s.PartDir, "{}") && parts > 1 {
			return opt, mistake("--part-dir", s.PartDir, "a name with {} in it, for the number of the part", "for example /disk{}/graph")
		}
		for k := range parts {
			opt.PartDirs = append(opt.PartDirs, strings.ReplaceAll(s.PartDir, "{}", strconv.Itoa(k)))
		}
	}
	return opt, nil
}

// partitionMistake names the flag where the library names the option.
func partitionMistake(err error) error {
	var in *graph.InputError
	if !errors.As(err, &in) || in.File != "" {
		return err
	}
	switch in.Field {
	case "parts", "method", "servers", "workers", "tries", "balance", "objective", "part-dir", "model", "out":
		named := *in
		named.Field = "--" + in.Field
		return &named
	}
	return err
}

// Write puts the report as one line of JSON into a file, or with "-" onto stdout.
func (r *PartitionReport) Write(path string, stdout io.Writer) error {
	return writeJSON(r.Report, path, stdout)
}

// String is the report for people.
func (r *PartitionReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s by %s in %s\n", r.Dataset, event.Counted(r.Parts, "part"), r.Method, event.Duration(time.Duration(r.Seconds*float64(time.Second))))
	if r.Tries > 1 {
		fmt.Fprintf(&b, "  best of %d tries       that of seed %d\n", r.Tries, r.KeptSeed)
	}
	fmt.Fprintf(&b, "  edge cut              %s of edges (%s)\n", percent(r.EdgeCutShare), event.Count(r.EdgeCut))
	fmt.Fprintf(&b, "  communication volume  %s; most over fewest remote %.3f\n", event.Counted(r.CommVolume, "row"), r.RemoteMaxOverMin)
	if r.Servers > 1 {
		fmt.Fprintf(&b, "  between servers       %s\n", event.Counted(r.BetweenServers, "row"))
	}
	fmt.Fprintf(&b, "  balance               ")
	sep := ""
	for _, name := range partition.ConstraintNames {
		if x, ok := r.Balance[name]; ok {
			fmt.Fprintf(&b, "%s%s %.3f", sep, name, x)
			sep = ", "
		}
	}
	fmt.Fprintf(&b, "\n  full-graph epoch      %s sent (%d-layer %s), %s of features once\n", event.Bytes(r.Plan.EpochBytes), len(r.Plan.Layers), r.Plan.Model, event.Bytes(r.Plan.FeatureBytes))
	if s := r.Plan.Sampled; s != nil {
		fmt.Fprintf(&b, "  sampled epoch         about %s pulled (%s of rows remote)\n", event.Bytes(s.EpochBytes), percent(s.RemoteShare))
	}
	var most int64
	for _, m := range r.Plan.Memory {
		most = max(most, m)
	}
	fmt.Fprintf(&b, "  memory a worker       about %s\n", event.Bytes(most))
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	if r.Out != "" {
		state := "written"
		if r.Verified {
			state = "written and verified"
		}
		fmt.Fprintf(&b, "%s: %s in %s\n", r.Out, state, event.Duration(time.Duration(r.WriteSeconds*float64(time.Second))))
	}
	return b.String()
}

func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }
