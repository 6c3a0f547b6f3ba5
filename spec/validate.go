package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"starling/graph"
	"starling/nn"
	"starling/train"
)

// Validate names the first setting that makes no sense, or contradicts another. What is still
// auto makes sense.
func (s *Spec) Validate() error {
	completed := *s
	completed.completeModel(dataset{})
	completed.completePairs()
	return completed.validate()
}

func (s *Spec) validate() error {
	for _, check := range []func() error{
		s.choices().check, s.checkStrategy, s.checkDevice, s.checkTask, s.checkBatches, s.checkNumbers, s.checkPairs,
		s.checkEmbeddings, s.checkTransport, s.checkUnused, s.checkTogether, s.checkComposition, s.checkFiles,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Spec) checkStrategy() error {
	if s.Strategy == "none" && s.Workers > 1 {
		return Mistake("--strategy", "none", s.defaultStrategy()+" for several workers",
			"leave out --strategy, or use --workers 1")
	}
	c, err := s.Choice()
	if err != nil || c.Descriptor == nil || string(c.Descriptor.Mode) == s.Mode {
		return err
	}
	return graph.Apart("--strategy "+c.Name(), "--mode "+s.Mode, "it is of the other mode", "use --mode "+
		string(c.Descriptor.Mode)+", or a strategy of this mode: "+
		strings.Join(train.NamesOf(train.Mode(s.Mode)), ", "))
}

// CheckSIMD refuses instructions that this processor lacks, supported being its best.
func (s *Spec) CheckSIMD(supported string) error {
	if slices.Index(SIMDNames, s.SIMD) > slices.Index(SIMDNames, supported) {
		return Mistake("--simd", s.SIMD, "at most "+supported+" on this processor", "use --simd auto")
	}
	return nil
}

// bound is the range of a whole number.
type bound struct {
	flag            string
	value, min, max int
}

func checkBounds(list []bound) error {
	for _, f := range list {
		if f.value < f.min || f.value > f.max {
			return Mistake(f.flag, fmt.Sprint(f.value), fmt.Sprintf("%d to %d", f.min, f.max), "")
		}
	}
	return nil
}

// bounds are the ranges of the settings that are whole numbers.
func (s *Spec) bounds() []bound {
	return []bound{
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
		{"--keep-checkpoints", s.KeepCheckpoints, 1, 1e6},
		{"--workers", s.Workers, 0, 1 << 15},
		{"--servers", s.Servers, 0, 1 << 15},
		{"--timeout", s.Timeout, 1, 1e6},
		{"--heartbeat", s.Heartbeat, 1, 1e6},
	}
}

func (s *Spec) checkNumbers() error {
	if err := checkBounds(s.bounds()); err != nil {
		return err
	}
	for _, f := range []struct {
		flag  string
		value float64
	}{{"--dropout", s.Dropout}, {"--attention-dropout", s.AttentionDropout}, {"--momentum", s.Momentum}} {
		if !(f.value >= 0 && f.value < 1) {
			return Mistake(f.flag, fmt.Sprint(f.value), "at least 0 and below 1", "")
		}
	}
	switch {
	case !(s.LR > 0 && s.LR <= 1e6):
		return Mistake("--lr", fmt.Sprint(s.LR), "above 0, and at most a million", "")
	case !(s.WeightDecay >= 0 && s.WeightDecay <= 1e6):
		return Mistake("--weight-decay", fmt.Sprint(s.WeightDecay), "0 to a million", "")
	}
	if _, err := nn.ParseSchedule(s.Schedule); err != nil {
		return Mistake("--schedule", fmt.Sprintf("%q", s.Schedule), "none, step:EPOCHS,FACTOR or cosine:EPOCHS[,MIN]",
			"for example step:100,0.5")
	}
	return nil
}

// mostThreads is more than any machine has cores.
const mostThreads = 4096

// CheckThreads checks --threads of commands that are not a training run.
func CheckThreads(n int) error { return checkBounds([]bound{{"--threads", n, 0, mostThreads}}) }

// checkTogether refuses settings that contradict each other.
func (s *Spec) checkTogether() error {
	switch {
	case s.Transport == "mpi" && !s.NoLaunch:
		return Mistake("--transport", "mpi in a process that was not started by MPI", "an MPI launcher",
			"start the run as mpirun -n 4 starling train ...; see docs/mpi.md")
	case s.Servers > 0 && s.Workers%s.Servers != 0:
		return Mistake("--servers", fmt.Sprintf("%d for %d workers", s.Servers, s.Workers), "a divisor of the workers",
			"")
	case nn.Attends(s.Model) && s.Layers > 1 && s.Hidden%s.Heads != 0:
		return Mistake("--hidden", fmt.Sprint(s.Hidden), fmt.Sprintf("a multiple of the %d heads", s.Heads),
			"hidden is the width of all heads together")
	}
	return nil
}

// checkFiles refuses two outputs in one place, and standard output for more than --json.
func (s *Spec) checkFiles() error {
	given := map[string]string{}
	for _, f := range []struct{ flag, path string }{
		{"--json", s.JSON}, {"--events", s.Events}, {"--trace", s.Trace}, {"--out", s.Out},
		{"--checkpoint-dir", s.CheckpointDir},
	} {
		if f.path == "" || f.path == "-" && f.flag == "--json" {
			continue
		}
		if f.path == "-" && (f.flag == "--events" || f.flag == "--trace") {
			return Mistake(f.flag, "-", "a file", "only --json goes to standard output; a file of that name is ./-")
		}
		if other, ok := given[f.path]; ok {
			return Mistake(f.flag, f.path+", as "+other, "a path of its own", "")
		}
		given[f.path] = f.flag
	}
	return cmp.Or(CheckNotStdout("--out", s.Out), CheckNotStdout("--checkpoint-dir", s.CheckpointDir))
}
