package spec

import (
	"runtime"
	"slices"
	"strconv"
	"strings"

	"starling/graph"
	"starling/tensor"
)

// Machine is what a worker computes with.
type Machine struct {
	Device     string `json:"device" resume:"free"`
	DType      string `json:"dtype" values:"f32,bf16,f64"`
	FeaturesOn string `json:"features_on" values:"auto,card,host,disk" resume:"free"`
	// FeatureMemory and FeatureScratch are for features on disk.
	FeatureMemory  string `json:"feature_memory" resume:"free"`
	FeatureScratch string `json:"feature_scratch" resume:"free"`
	DrawOn         string `json:"draw_on" values:"auto,card,host" resume:"free"`
	CacheFirst     string `json:"cache_first" values:"auto,on,off"`
	SIMD           string `json:"simd"`
	MatMul         string `json:"matmul" values:"split,f32,tf32"`
	Threads        int    `json:"threads" auto:"zero" range:"1,4096" resume:"free"`
	MemoryCheck    bool   `json:"memory_check" resume:"free"`
}

func defaultMachine() Machine {
	return Machine{Device: "cpu", DType: "f32", FeaturesOn: "auto", FeatureMemory: AutoText, DrawOn: "auto",
		CacheFirst: "auto", SIMD: "auto", MatMul: "split", MemoryCheck: true}
}

// AutoText is what a setting has that the program chooses.
const AutoText = "auto"

// SIMDNames are the values of --simd, after auto each set of instructions with those before it.
var SIMDNames = []string{"auto", "generic", "avx2", "avx512", "amx", "amx-fp16"}

// DeviceNames are the values of --device; cuda may be followed by the number of a GPU.
var DeviceNames = []string{"cpu", "cuda", "auto"}

// CheckThreads checks --threads of commands that are not a training run.
func CheckThreads(n int) error {
	m := defaultMachine()
	m.Threads = n
	return checkFields(&m)
}

func (m *Machine) Validate() error {
	if err := checkFields(m); err != nil {
		return err
	}
	switch {
	case m.OnGPU() && m.DType == "f64":
		return graph.Apart("--device "+m.Device, "--dtype f64", "GPU kernels are of f32 and bf16",
			"use --dtype f32 or bf16, or --device cpu, whose reference device has f64")
	case m.Device == "cpu" && m.MatMul == "tf32":
		return graph.Apart("--matmul tf32", "--device cpu", "only GPUs have tf32",
			"use --device cuda, or --matmul split")
	}
	return nil
}

// CheckSIMD refuses instructions that this processor lacks, supported being its best.
func (m *Machine) CheckSIMD(supported string) error {
	if slices.Index(SIMDNames, m.SIMD) > slices.Index(SIMDNames, supported) {
		return Mistake("--simd", m.SIMD, "at most "+supported+" on this processor", "use --simd auto")
	}
	return nil
}

const forDisk = "it is for features that are read from disk: --mode mini and --features-on disk, or auto"

// mayRead reports whether features may be read from disk ahead of batches.
func (m *Machine) mayRead() bool {
	return m.Device == "cpu" && (m.FeaturesOn == "disk" || m.FeaturesOn == "auto")
}

// machineEffects are the settings that only some devices have.
func (s *Spec) machineEffects() []effect {
	m, d := &s.Machine, defaultMachine()
	return []effect{
		{"--threads", m.Threads > 1, m.DType != "f64", "the reference device of --dtype f64 uses one core"},
		{"--features-on", m.FeaturesOn == "disk", m.Device == "cpu" && s.Mode == "mini",
			"features are read from disk ahead of the batches of --mode mini, with --device cpu"},
		{"--features-on", m.FeaturesOn == "card", m.Device != "cpu" && s.Mode == "mini",
			"it is for --device cuda and --mode mini"},
		{"--features-on", m.FeaturesOn == "host", s.Mode == "mini", "it is for --mode mini"},
		{"--draw-on", m.DrawOn == "card", m.Device != "cpu" && s.drawsOnGPU(),
			"a GPU draws for --device cuda, --mode mini and --sampler neighbour, without --weighted, for one worker"},
		{"--draw-on", m.DrawOn == "host", m.Device != "cpu" && s.Mode == "mini",
			"it is for --device cuda and --mode mini"},
		{"--feature-memory", m.FeatureMemory != d.FeatureMemory, m.mayRead() && s.Mode == "mini", forDisk},
		{"--feature-scratch", m.FeatureScratch != d.FeatureScratch, m.mayRead() && s.Mode == "mini", forDisk},
		{"--matmul", m.MatMul != d.MatMul, m.DType != "f64",
			"the reference device of --dtype f64 has float64 products"},
		{"--simd", m.SIMD != d.SIMD, m.DType != "f64", "the reference device of --dtype f64 uses none"},
	}
}

// drawsOnGPU reports whether a GPU can draw the batches, as far as the settings say.
func (s *Spec) drawsOnGPU() bool {
	b := &s.Batches
	return s.Mode == "mini" && b.Sampler == "neighbour" && !b.Weighted && b.Temporal == "none" && !s.Distributed() &&
		!s.LearnsPairs() && s.Embeddings.Dim == 0
}

// deviceKind is a device without the number of its GPU. What is no number stays, and is refused.
func deviceKind(name string) string {
	kind, number, _ := strings.Cut(name, ":")
	if _, err := strconv.ParseUint(number, 10, 16); kind == "cuda" && err == nil {
		return kind
	}
	return name
}

// GPU is the number of the GPU that --device names; -1: none, each worker has its own.
func (m *Machine) GPU() int {
	if n, err := strconv.Atoi(strings.TrimPrefix(m.Device, "cuda:")); err == nil {
		return n
	}
	return -1
}

// OnGPU reports whether --device is a GPU.
func (m *Machine) OnGPU() bool { return deviceKind(m.Device) == "cuda" }

// RowType is the storage type of features and activations.
func (m *Machine) RowType() tensor.DType {
	switch m.DType {
	case "bf16":
		return tensor.BF16
	case "f64":
		return tensor.F64
	}
	return tensor.F32
}

// processors is how many this process may use when it starts; a worker may limit itself
// to fewer later.
var processors = runtime.GOMAXPROCS(0)

// Cores is how many the run computes on.
func (m *Machine) Cores() int {
	switch {
	case m.DType == "f64":
		return 1
	case m.Threads > 0:
		return m.Threads
	}
	return processors
}

// CoresOf is the cores of each of several workers on one host.
func (m *Machine) CoresOf(workers int) int {
	if m.Threads > 0 || m.DType == "f64" {
		return m.Cores()
	}
	return max(m.Cores()/workers, 1)
}

// ForData sets what auto means for this dataset on this machine, level being its best
// instruction set. It looks at the machine's total memory, not at what is free now, so
// that the same run gives the same numbers tomorrow.
func (s *Spec) ForData(data *graph.Meta, level string) {
	m := &s.Machine
	if m.SIMD == "auto" && m.DType != "f64" { // which uses none
		m.SIMD = level
	}
	if m.CacheFirst != "auto" {
		return
	}
	m.CacheFirst = "off"
	f := data.Features
	if s.Embeddings.Dim > 0 || f == nil { // the first layer's sum changes
		return
	}
	if c, err := s.Choice(); err == nil && c.Descriptor != nil && c.Descriptor.FeaturesAnew() {
		return
	}
	more := data.Nodes * int64(f.Dim) * int64(m.RowType().Size())
	if total := tensor.MemoryTotal(); f.Kind != graph.Sparse && (total == 0 || more < total/4) {
		m.CacheFirst = "on"
	}
}
