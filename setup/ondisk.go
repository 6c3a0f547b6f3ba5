package setup

import (
	"errors"
	"path/filepath"
	"slices"

	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/spec"
	"starling/tensor"
	"starling/train"
)

// PlaceFeatures settles --features-on auto on a CPU: features that do not fit the memory that is free, with the
// rest of the mapped files, are read from disk ahead of batches. Where they fit, pages stay in memory after they
// were read once, and mapping them is as fast.
func PlaceFeatures(s *spec.Spec, mapped, features int64, list []*graph.Features, events event.Listener) error {
	m := &s.Machine
	switch {
	case m.FeaturesOn == "disk":
		return NotOnDisk(s, list)
	case m.FeaturesOn != "auto" || m.Device != "cpu" || s.Mode != "mini" || NotOnDisk(s, list) != nil:
		return nil
	}
	if free := tensor.MemoryFree(); free == 0 || mapped <= free/10*9 {
		return nil
	}
	m.FeaturesOn = "disk"
	events.On(event.Note{Text: "features do not fit the memory that is free: their " + event.Bytes(features) +
		" are read from disk ahead of batches (--features-on disk)"})
	return nil
}

// NotOnDisk is why features are not read from disk ahead of batches.
func NotOnDisk(s *spec.Spec, list []*graph.Features) error {
	const flag = "--features-on disk"
	switch {
	case s.Training.RowNormalize:
		return graph.Apart(flag, "--row-normalize", "all features are normalized before training",
			"leave one of them out")
	case s.Embeddings.Dim > 0:
		return graph.Apart(flag, "--learn-embeddings", "learnt rows change, and are in memory",
			"leave one of them out")
	case len(list) == 0 || slices.Contains(list, nil):
		return graph.Apart(flag, "a typed graph", "rows of its types are of several files", "use --features-on host")
	}
	for _, f := range list {
		stored := map[graph.FeatureKind]tensor.DType{graph.Dense: tensor.F32, graph.BFloat16: tensor.BF16}
		switch t, dense := stored[f.Kind()]; {
		case !dense:
			return graph.Apart(flag, "sparse features", "their rows are not of one width", "use --features-on host")
		case t != s.Machine.RowType():
			return graph.Apart(flag, "--dtype "+s.Machine.DType+" and "+string(f.Kind())+" features",
				"rows are used as they are stored, and measuring would convert all of them", "use --dtype "+dtypeOf(t))
		}
	}
	return nil
}

func dtypeOf(t tensor.DType) string {
	if t == tensor.BF16 {
		return "bf16"
	}
	return "f32"
}

// leastFeatureMemory is what --feature-memory auto takes at least.
const leastFeatureMemory = 64 << 20

// DiskOptions say how a run reads features from disk; nil: it does not. workers share this host, and need some memory
// beside.
func DiskOptions(s *spec.Spec, list []*graph.Features, workers int, need int64) (*train.DiskOptions, error) {
	m := &s.Machine
	if m.FeaturesOn != "disk" {
		return nil, nil
	}
	if err := NotOnDisk(s, list); err != nil {
		return nil, err
	}
	o := &train.DiskOptions{Scratch: m.FeatureScratch, Memory: FeatureMemory(s)}
	bytes := int64(0)
	for _, f := range list {
		bytes += 4*int64(len(f.F32)) + 2*int64(len(f.BF16))
	}
	if o.Grow = o.Memory == 0; o.Grow {
		free := (tensor.MemoryFree() - need) / 2 / int64(max(workers, 1))
		o.Memory = min(max(free, leastFeatureMemory), bytes+bytes/4+leastFeatureMemory)
	}
	dir := o.Scratch
	if files := graph.FilesOf(list[0]); dir == "" && len(files) > 0 {
		dir = filepath.Dir(files[0].Path)
	}
	// Two windows are packed at a time.
	o.Packed = bytes
	if free, known := graph.DiskFree(dir); known {
		o.Packed = min(o.Packed, free/8/int64(max(workers, 1)))
	}
	return o, nil
}

// FeatureMemory is --feature-memory; 0: auto.
func FeatureMemory(s *spec.Spec) int64 {
	n, _ := parseFeatureMemory(s)
	return n
}

func parseFeatureMemory(s *spec.Spec) (int64, error) {
	if s.Machine.FeatureMemory == spec.AutoText {
		return 0, nil
	}
	n, err := exchange.ParseBytes("--feature-memory", s.Machine.FeatureMemory)
	if err == nil && n == 0 {
		err = errors.New("--feature-memory has no amount: for example 4GiB, or auto")
	}
	return n, err
}

// checkFeatureMemory refuses what is no amount of memory, and a folder for packed rows that is not there.
func checkFeatureMemory(s *spec.Spec) error {
	if _, err := parseFeatureMemory(s); err != nil {
		return err
	}
	dir := s.Machine.FeatureScratch
	if dir != "" && existing(dir) != filepath.Clean(dir) {
		return spec.Mistake("--feature-scratch", dir, "a folder that is there", "make it, or leave the flag out")
	}
	return nil
}
