package llm

import (
	"fmt"
	"slices"
)

// Model is a transformer, with the degrees of parallelism that the paper trains it with (table 5.5).
type Model struct {
	Name          string
	Layers        int
	Hidden        int
	Heads, KV     int // attention heads, and those of keys and values
	Inner         int // the width inside a feed-forward block, or inside an expert
	Matrices      int // of a feed-forward block: 2, or 3 where it is gated
	Experts, Top  int // of a layer, and how many each token goes to; 0: dense
	Sequence      int
	Microbatch    int // sequences
	PP, TP, EP    int
	Testbed       bool // the paper has it on 32 GPUs, not in the simulator
	Microbatches  int  // per iteration and pipeline
	VirtualStages int  // chunks of layers per stage: 1, or more where 1F1B is interleaved
}

// Models returns the models of table 5.5. Layers, experts, degrees, sequence and microbatch are the
// table's, widths those that the models' authors published.
func Models() []Model {
	return []Model{
		{Name: "qwen-moe-12l", Layers: 12, Hidden: 2048, Heads: 16, KV: 16, Inner: 1408, Matrices: 3, Experts: 64,
			Top:      4,
			Sequence: 4096, Microbatch: 4, PP: 4, TP: 1, EP: 8, Testbed: true},
		{Name: "mixtral-8x7b", Layers: 32, Hidden: 4096, Heads: 32, KV: 8, Inner: 14336, Matrices: 3, Experts: 8,
			Top:      2,
			Sequence: 4096, Microbatch: 4, PP: 2, TP: 1, EP: 8, Testbed: true},
		{Name: "gpt3-13b", Layers: 40, Hidden: 5120, Heads: 40, KV: 40, Inner: 20480, Matrices: 2,
			Sequence: 2048, Microbatch: 4, PP: 4, TP: 4, EP: 1, Testbed: true},
		{Name: "qwen-moe-24l", Layers: 24, Hidden: 2048, Heads: 16, KV: 16, Inner: 1408, Matrices: 3, Experts: 64,
			Top:      4,
			Sequence: 4096, Microbatch: 8, PP: 8, TP: 8, EP: 32},
		{Name: "mixtral-8x22b", Layers: 32, Hidden: 6144, Heads: 48, KV: 8, Inner: 16384, Matrices: 3, Experts: 8,
			Top:      2,
			Sequence: 4096, Microbatch: 8, PP: 8, TP: 8, EP: 8},
		{Name: "gpt3-175b", Layers: 96, Hidden: 12288, Heads: 96, KV: 96, Inner: 49152, Matrices: 2,
			Sequence: 2048, Microbatch: 8, PP: 8, TP: 8, EP: 1},
	}
}

// Named is the model of a name.
func Named(name string) (Model, error) {
	var names []string
	for _, m := range Models() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Model{}, fmt.Errorf("model: found %q, want one of %v", name, names)
}

// validate reports what does not fit together.
func (m *Model) validate(gpus int) error {
	for _, x := range []struct {
		name  string
		value int
	}{{"layers", m.Layers}, {"hidden", m.Hidden}, {"sequence", m.Sequence}, {"microbatch", m.Microbatch},
		{"microbatches", m.Microbatches}, {"pp", m.PP}, {"tp", m.TP}, {"ep", m.EP}, {"virtual stages",
			m.VirtualStages}} {
		if x.value < 1 {
			return fmt.Errorf("%s: found %s of %d, want at least 1", m.Name, x.name, x.value)
		}
	}
	switch replicas := gpus / max(1, m.PP*m.TP); {
	case gpus < 1 || gpus%(m.PP*m.TP) != 0:
		return fmt.Errorf("%s: found %d GPUs, want a multiple of pp x tp = %d", m.Name, gpus, m.PP*m.TP)
	case m.Layers%(m.PP*m.VirtualStages) != 0:
		return fmt.Errorf("%s: found %d layers, want a multiple of %d stages of %d chunks", m.Name, m.Layers, m.PP,
			m.VirtualStages)
	case m.VirtualStages > 1 && m.Microbatches%m.PP != 0:
		return fmt.Errorf("%s: found %d microbatches, want a multiple of %d stages where they are interleaved", m.Name,
			m.Microbatches, m.PP)
	case m.EP > 1 && (m.Experts == 0 || m.Experts%m.EP != 0):
		return fmt.Errorf("%s: found ep=%d, want a divisor of its %d experts", m.Name, m.EP, m.Experts)
	case replicas%m.EP != 0:
		return fmt.Errorf("%s: found %d data-parallel replicas (%d GPUs over pp x tp), want a multiple of ep=%d",
			m.Name,
			replicas, gpus, m.EP)
	}
	return nil
}

// tokens of a microbatch.
func (m *Model) tokens() float64 { return float64(m.Microbatch * m.Sequence) }

// attention is the parameters of a layer's attention block, block those of one feed-forward block.
func (m *Model) attention() float64 {
	h := float64(m.Hidden)
	return 2*h*h + 2*h*h*float64(m.KV)/float64(m.Heads)
}

func (m *Model) block() float64 { return float64(m.Matrices) * float64(m.Hidden) * float64(m.Inner) }

// flops of a layer's forward pass for one microbatch: of attention, of which half of all pairs of
// positions are computed, and of the feed-forward block or the experts.
func (m *Model) flops() (attention, feedForward float64) {
	each := 2*m.attention() + 2*float64(m.Sequence)*float64(m.Hidden)
	return each * m.tokens(), 2 * float64(max(1, m.Top)) * m.block() * m.tokens()
}

// activations are the bytes of a microbatch between two layers, in 16 bits.
func (m *Model) activations() float64 { return 2 * m.tokens() * float64(m.Hidden) }

// Names are what --model takes.
func Names() (names []string) {
	for _, m := range Models() {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}
