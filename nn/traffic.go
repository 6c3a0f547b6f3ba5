package nn

// Traffic is what one layer sends between workers for every row that a vertex's
// neighbours elsewhere need. Strategies plan with it before the first epoch.
type Traffic struct {
	Layer int
	// Edgewise: rows are transformed before they are sent, whatever their width.
	Edgewise bool
	// Forward and Backward are for every training pass; measuring passes go forward only.
	Forward, Backward Width
	// Once is the width of constant features that are sent a single time.
	Once int
	// Chained: it sums what the layer before has summed, with nothing between (see Propagator).
	Chained bool
}

// Width is numbers per row: Rows in the type of activations, Scores in the device's.
type Width struct{ Rows, Scores int }

// FirstSum is what an aggregator does about the sum over constant features.
type FirstSum uint8

const (
	// Computed in every pass.
	Computed FirstSum = iota
	// Kept is computed once, but in every training pass where dropout is drawn on the features.
	Kept
	// Redrawn is Kept, and an aggregator with copies of all features that it sums over draws dropout on them itself
	// (Redrawer), so that rows of the first layer travel once.
	Redrawn
)

// Traffic lists the model's message-passing layers. sparse says that the features are.
func (m *Model) Traffic(sparse bool, first FirstSum, training bool) (out []Traffic) {
	constant := first == Redrawn || first == Kept && !(training && m.dropsInput())
	for i, mod := range m.modules {
		if t, ok := moduleTraffic(mod, sparse && i == 0, constant && i == 0, i > 0); ok {
			if _, ok := mod.(*propagation); ok {
				w := Width{Rows: m.Config.Out}
				_, follows := m.modules[i-1].(*propagation)
				t.Forward, t.Backward, t.Chained = w, w, follows
			}
			out = append(out, t)
		}
	}
	return out
}

// moduleTraffic is the traffic of the convolution in a module, if there is one.
func moduleTraffic(mod Module, sparse, constant, wantDX bool) (Traffic, bool) {
	switch c := mod.(type) {
	case *sumConv:
		return c.traffic(sparse, constant, wantDX), true
	case *gin:
		return c.sum.traffic(sparse, constant, wantDX), true
	case *gat:
		w := Width{Rows: c.w.Value.Cols, Scores: c.heads}
		return Traffic{Layer: c.layer, Edgewise: true, Forward: w, Backward: w}, true
	case *gine:
		w := Width{Rows: c.sum.Width()}
		return Traffic{Layer: c.sum.layer, Edgewise: true, Forward: w, Backward: w}, true
	case EdgeOperator:
		w := Width{Rows: c.Width()}
		return Traffic{Layer: c.Layer(), Edgewise: true, Forward: w, Backward: w}, true
	case *propagation:
		return Traffic{Layer: c.layer}, true
	case *residual:
		return moduleTraffic(c.conv, false, false, true)
	}
	return Traffic{}, false
}

// NormSums lists the batch norms' widths: each adds up two rows of sums of that
// many float64 forwards, in training, and two more backwards.
func (m *Model) NormSums() (widths []int) {
	for _, mod := range m.modules {
		if r, ok := mod.(*residual); ok {
			mod = r.norm
		}
		if n, ok := mod.(*batchNorm); ok {
			widths = append(widths, n.gamma.Value.Cols)
		}
	}
	return widths
}

// OnlySums reports whether the model reads nothing of features that are dense and constant but their sum over
// neighbours, which an aggregator may keep.
func (m *Model) OnlySums() bool {
	c, ok := m.modules[0].(*sumConv)
	return ok && c.r == nil && c.eps == nil && !m.dropsInput()
}

func (m *Model) dropsInput() bool { return m.Config.DropsInput() }

// DropsInput reports whether training passes draw dropout on the features.
func (c *Config) DropsInput() bool { return c.InputDropout && c.Dropout > 0 }
