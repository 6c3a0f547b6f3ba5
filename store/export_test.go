package store

// DrawnHere is how many vertices of a part have drawn here since the last batch began.
func (m *Sampler) DrawnHere(part int) int { return m.draws.parts[part].Dst }

// Forget makes that none.
func (m *Sampler) Forget(part int) { m.draws.parts[part].Dst = 0 }
