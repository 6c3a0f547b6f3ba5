package nn

import "starling/tensor"

// A model's stages are its modules in order, for those who need the rows between
// them: embeddings, and the inference server, which keeps them.

// Stages is how many there are.
func (m *Model) Stages() int { return len(m.modules) }

// Gathers reports whether stage i looks at neighbours; else each row goes its own way.
func (m *Model) Gathers(i int) bool {
	switch m.modules[i].(type) {
	case *linear, *batchNorm, *layerNorm, *unitRows:
		return false
	}
	return true
}

// Stage runs stage i alone, to measure or predict: p.Train must not be set. The
// caller frees what it returns.
func (m *Model) Stage(p *Pass, i int, x Input) tensor.Matrix {
	y := m.modules[i].Forward(p, x)
	if m.targets != nil && i == len(m.modules)-1 {
		return m.targets.undo(p.Dev, y)
	}
	return y
}
