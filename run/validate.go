package run

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"starling/cluster"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/tensor/simd"
	"starling/train"
)

// complete fills in what follows from other settings.
func (s *Spec) complete() {
	if s.Norm == "auto" {
		s.Norm = "none"
		if strings.HasPrefix(s.Model, "res") {
			s.Norm = "layer"
		}
	}
	if s.Workers == 0 {
		s.Workers = 1
	}
	if s.Strategy == "auto" {
		s.Strategy = "none"
		if s.Workers > 1 {
			s.Strategy = "halo"
		}
	}
	s.completePairs()
}

// distributed tells whether the run is of workers that send each other something,
// be it a single one; processes whether they are processes.
func (s *Spec) distributed() bool { return s.Strategy != "none" }
func (s *Spec) inProcess() bool   { return s.InProcess || s.Transport == "inprocess" }
func (s *Spec) processes() bool   { return s.distributed() && !s.inProcess() }

// uses tells whether the run's strategy is one of those named.
func (s *Spec) uses(names ...string) bool { return slices.Contains(names, s.strategyName()) }

// strategyName is the strategy without what follows a colon.
func (s *Spec) strategyName() string {
	name, _, _ := strings.Cut(s.Strategy, ":")
	return name
}

// mistake is a setting that cannot be.
func mistake(flag, found, want, fix string) error {
	return &graph.InputError{Field: flag, Found: found, Want: want, Fix: fix}
}

// Validate names the first setting that makes no sense, or contradicts another.
func (s *Spec) Validate() error {
	for _, check := range []func() error{s.checkNames, s.checkTask, s.checkMini, s.checkNumbers, s.checkPairs, s.checkUnused, s.checkFiles} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Spec) checkNames() error {
	for _, f := range []struct {
		flag, value string
		known       []string
	}{
		{"--model", s.Model, nn.Models},
		{"--decoder", s.Decoder, nn.Decoders},
		{"--norm", s.Norm, []string{"auto", "none", "batch", "layer"}},
		{"--aggregator", s.Aggregator, []string{"mean", "gcn"}},
		{"--optimizer", s.Optimizer, nn.Optimisers},
		{"--dtype", s.DType, []string{"f32", "bf16", "f64"}},
		{"--cache-first", s.CacheFirst, []string{"auto", "on", "off"}},
		{"--simd", s.SIMD, []string{"auto", "generic", "avx2", "avx512", "amx", "amx-fp16"}},
		{"--g3-pipeline", s.G3Pipeline, []string{"none", "inter", "intra", "both"}},
		{"--wire-dtype", s.WireDType, []string{"none", "bf16", "int8"}},
		{"--transport", s.Transport, []string{"auto", "tcp", "shm", "inprocess", "mpi"}},
		{"--partitioner", s.Partitioner, partition.Names()},
		{"--on-failure", s.OnFailure, []string{"restart", "wait", "stop"}},
		{"--launcher", s.Launcher, append([]string{"auto", "none"}, cluster.Launchers...)},
	} {
		if !slices.Contains(f.known, f.value) {
			return mistake(f.flag, fmt.Sprintf("%q", f.value), "one of "+strings.Join(f.known, ", "), suggest(f.value, f.known))
		}
	}
	switch {
	case s.Strategy == "none" && s.Workers > 1:
		return mistake("--strategy", "none", "halo for several workers", "leave out --strategy, or use --workers 1")
	}
	if _, err := s.choice(); err != nil {
		return err
	}
	if level, err := simd.ParseLevel(s.SIMD); err == nil && level > simd.Supported() {
		return mistake("--simd", s.SIMD, "at most "+simd.Supported().String()+" on this processor", "use --simd auto")
	}
	_, err := nn.ParseSchedule(s.Schedule)
	if err != nil {
		return mistake("--schedule", fmt.Sprintf("%q", s.Schedule), "none, step:EPOCHS,FACTOR or cosine:EPOCHS[,MIN]", "for example step:100,0.5")
	}
	return nil
}

// choice is the strategy of several workers; the zero one for a single.
func (s *Spec) choice() (train.Choice, error) {
	if s.Strategy == "none" || s.Strategy == "auto" {
		return train.Choice{}, nil
	}
	c := train.DefaultChoice("")
	c.Staleness, c.Clip, c.Smooth, c.Pipeline, c.Preload, c.Sample = s.Staleness, s.Clip, s.Smooth, s.G3Pipeline, s.Preload, s.EAS
	c.Relay, c.Means, c.SparseRows = s.Relay, s.Means, s.SparseRows
	if s.WireDType != "none" {
		c.WireRows = s.WireDType
	}
	var err error
	if c.Budget, err = parseBytes("--memory-budget", s.MemoryBudget); err != nil {
		return c, err
	}
	if c, err = c.Parse(s.Strategy); err != nil {
		name := s.strategyName()
		if known := train.Strategies(); !slices.Contains(known, name) {
			return c, mistake("--strategy", fmt.Sprintf("%q", name), "one of "+strings.Join(known, ", "), suggest(name, known))
		}
		return c, mistake("--strategy", fmt.Sprintf("%q", s.Strategy), "", err.Error())
	}
	return c, nil
}

// parseBytes reads an amount of memory; nothing is 0.
func parseBytes(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	number := strings.TrimRight(text, "KMGTiBkb ")
	unit, ok := map[string]float64{"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}[strings.ToUpper(strings.TrimSpace(text[len(number):]))]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(v > 0 && v*unit < 1<<60) {
		return 0, mistake(flag, fmt.Sprintf("%q", text), "an amount of memory", "for example 4GiB")
	}
	return int64(v * unit), nil
}

func (s *Spec) checkNumbers() error {
	for _, f := range []struct {
		flag     string
		value    int
		min, max int
	}{
		{"--layers", s.Layers, 1, 1000},
		{"--hidden", s.Hidden, 1, 1 << 16},
		{"--heads", s.Heads, 1, 1 << 16},
		{"--out-heads", s.OutHeads, 1, 1 << 16},
		{"--batch-size", s.BatchSize, 1, 1 << 30},
		{"--clusters", s.Clusters, 0, 1 << 30},
		{"--walk-length", s.WalkLength, 0, 1 << 20},
		{"--epochs", s.Epochs, 1, 1e8},
		{"--eval-every", s.EvalEvery, 0, 1e8},
		{"--patience", s.Patience, 0, 1e8},
		{"--threads", s.Threads, 0, mostThreads},
		{"--checkpoint-every", s.CheckpointEvery, 0, 1e8},
		{"--keep-checkpoints", s.KeepCheckpoints, 1, 1e6},
		{"--workers", s.Workers, 0, 1 << 15},
		{"--servers", s.Servers, 0, 1 << 15},
		{"--timeout", s.Timeout, 1, 1e6},
		{"--heartbeat", s.Heartbeat, 1, 1e6},
	} {
		if f.value < f.min || f.value > f.max {
			return mistake(f.flag, fmt.Sprint(f.value), fmt.Sprintf("%d to %d", f.min, f.max), "")
		}
	}
	for _, f := range []struct {
		flag  string
		value float64
	}{{"--dropout", s.Dropout}, {"--attention-dropout", s.AttentionDropout}, {"--momentum", s.Momentum}} {
		if !(f.value >= 0 && f.value < 1) {
			return mistake(f.flag, fmt.Sprint(f.value), "at least 0 and below 1", "")
		}
	}
	switch {
	case !(s.LR > 0 && s.LR <= 1e6):
		return mistake("--lr", fmt.Sprint(s.LR), "above 0, and at most a million", "")
	case !(s.WeightDecay >= 0 && s.WeightDecay <= 1e6):
		return mistake("--weight-decay", fmt.Sprint(s.WeightDecay), "0 to a million", "")
	}
	return nil
}

// mostThreads is more than any machine has cores.
const mostThreads = 4096

// checkThreads is for commands that are not a run.
func checkThreads(n int) error {
	if n < 0 || n > mostThreads {
		return mistake("--threads", fmt.Sprint(n), fmt.Sprintf("0 to %d", mostThreads), "")
	}
	return nil
}

func (s *Spec) checkFiles() error {
	given := map[string]string{}
	for _, f := range []struct{ flag, path string }{{"--json", s.JSON}, {"--events", s.Events}, {"--trace", s.Trace}, {"--out", s.Out}, {"--checkpoint-dir", s.CheckpointDir}} {
		if f.path == "" || f.path == "-" && f.flag == "--json" {
			continue
		}
		if f.path == "-" && (f.flag == "--events" || f.flag == "--trace") {
			return mistake(f.flag, "-", "a file", "only --json goes to standard output; a file of that name is ./-")
		}
		if other, ok := given[f.path]; ok {
			return mistake(f.flag, f.path+", as "+other, "a place of its own", "")
		}
		given[f.path] = f.flag
	}
	return cmp.Or(checkNotDash("--out", s.Out), checkNotDash("--checkpoint-dir", s.CheckpointDir))
}

// suggest names what was perhaps meant: the nearest, and of those one as long; or the
// shortest name that the word is a part of.
func suggest(word string, known []string) string {
	best, score := "", 3
	for _, k := range known {
		if d := distance(word, k); d < score || d == score && best != "" && len(best) != len(word) && len(k) == len(word) {
			best, score = k, d
		}
	}
	for _, k := range known {
		if score == 3 && len(word) >= 3 && strings.Contains(k, word) && (best == "" || len(k) < len(best)) {
			best = k
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// distance is Damerau's: the letters left out, added, changed, or swapped with the
// next, that turn a into b.
func distance(a, b string) int {
	d := make([][]int, len(a)+1) // d[i][j] of the first i and j letters
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			if i == 0 || j == 0 {
				d[i][j] = i + j
				continue
			}
			change := d[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			d[i][j] = min(change, d[i-1][j]+1, d[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

// modelConfig is the model that s describes for a dataset.
func (s *Spec) modelConfig(data *graph.Meta) nn.Config {
	edges := 0
	if s.EdgeFeatures {
		edges = data.EdgeDim
	}
	return nn.Config{EdgeDim: edges, Model: s.Model, Layers: s.Layers, Hidden: s.Hidden, Heads: s.Heads, OutHeads: s.OutHeads,
		Dropout: s.Dropout, InputDropout: s.InputDropout, AttentionDropout: s.AttentionDropout,
		Norm: s.Norm, Aggregator: s.Aggregator, TrainEps: s.TrainEps,
		Decoder: s.decoder(), In: data.Features.Dim, Out: s.outputs(data)}
}

// optimConfig is the optimiser that s describes.
func (s *Spec) optimConfig() nn.OptimConfig {
	c := nn.DefaultOptim()
	c.Name, c.LR, c.WeightDecay, c.DecayFirst = s.Optimizer, s.LR, s.WeightDecay, s.DecayFirst
	c.Momentum, c.Nesterov = s.Momentum, s.Nesterov
	return c
}

// rows is the storage type of activations.
func (s *Spec) rows() tensor.DType {
	switch s.DType {
	case "bf16":
		return tensor.BF16
	case "f64":
		return tensor.F64
	}
	return tensor.F32
}

// device is what the run computes with.
func (s *Spec) device() tensor.Device {
	if s.DType == "f64" {
		return tensor.NewRef()
	}
	if level, err := simd.ParseLevel(s.SIMD); err == nil {
		// Validate refuses what this host lacks, but a worker may be on another.
		return tensor.NewCPULevel(s.Threads, min(level, simd.Supported()))
	}
	return tensor.NewCPU(s.Threads)
}
