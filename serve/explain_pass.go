package serve

import (
	"math"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// input puts rows on the device: those of a typed graph are encoded, as the model then takes them.
func (s *subject) input(values [][]float64) nn.Input {
	if s.encoders == nil {
		flat := make([]float64, 0, len(values)*len(values[0]))
		for _, row := range values {
			flat = append(flat, row...)
		}
		m := s.dev.New(s.dev.Type(), len(values), len(values[0]))
		s.dev.Upload(m, flat)
		return nn.Input{Matrix: m}
	}
	n, wide := len(s.encoders), s.t.Config.Model.Hidden
	x := &nn.TypedInput{Runs: s.runs, X: make([]tensor.Matrix, n), Learnt: make([]*nn.Param, n)}
	for _, run := range s.runs {
		flat := make([]float64, 0, (run.Hi-run.Lo)*wide)
		for _, row := range values[run.Lo:run.Hi] {
			flat = append(flat, s.encoders[run.Type].encode(row, wide)...)
		}
		p := &nn.Param{Value: s.dev.New(s.dev.Type(), run.Hi-run.Lo, wide),
			Grad: s.dev.New(s.dev.Type(), run.Hi-run.Lo, wide)}
		s.dev.Upload(p.Value, flat)
		x.Learnt[run.Type] = p // ids ascend, so that a type has one run
	}
	return nn.Input{Typed: x}
}

func (e *encoder) encode(row []float64, wide int) []float64 {
	if e == nil {
		return row
	}
	out := make([]float64, wide)
	for k := range out {
		out[k] = e.bias[k]
		for c, x := range row {
			out[k] += x * e.weight[k*len(row)+c]
		}
	}
	return out
}

// decode is the gradient of a row from that of its encoded row.
func (e *encoder) decode(dy []float64, in int) []float64 {
	if e == nil {
		return dy
	}
	out := make([]float64, in)
	for k, d := range dy {
		for c := range out {
			out[c] += d * e.weight[k*in+c]
		}
	}
	return out
}

func (s *subject) free(x nn.Input) {
	if x.Typed == nil {
		s.dev.Free(x.Matrix)
		return
	}
	for _, p := range x.Typed.Learnt {
		if p != nil {
			s.dev.Free(p.Value)
			s.dev.Free(p.Grad)
		}
	}
}

func (s *subject) pass(on *nn.Topology, learns bool) *nn.Pass {
	return &nn.Pass{Dev: s.dev, Agg: nn.NewLocal(on, false), Train: learns, Types: s.runs}
}

// predict is the prediction for the vertex: probabilities, or the numbers of a regression.
func (s *subject) predict(values [][]float64, on *nn.Topology) []float64 {
	x := s.input(values)
	defer s.free(x)
	logits := s.model.Forward(s.pass(on, false), x)
	all := make([]float64, logits.Rows*logits.Cols)
	s.dev.Download(all, logits)
	wide := logits.Cols
	s.dev.Free(logits)
	return nn.Predicted(all[s.at*wide:(s.at+1)*wide], s.kind())
}

// gradient returns the gradient of every row, where of gives the gradient of what is explained from the logits of the vertex.
func (s *subject) gradient(values [][]float64, of func(logits []float64) []float64) [][]float64 {
	x := s.input(values)
	defer s.free(x)
	p := s.pass(s.whole, true)
	s.model.ZeroGrad(s.dev)
	logits := s.model.Forward(p, x)
	all, wide := make([]float64, logits.Rows*logits.Cols), logits.Cols
	s.dev.Download(all, logits)
	d := of(all[s.at*wide : (s.at+1)*wide])
	clear(all)
	copy(all[s.at*wide:], d)
	s.dev.Upload(logits, all)
	out := make([][]float64, len(values))
	if s.encoders == nil {
		dx := s.model.BackwardInput(p, logits)
		flat := make([]float64, dx.Rows*dx.Cols)
		s.dev.Download(flat, dx)
		s.dev.Free(dx)
		for i := range out {
			out[i] = flat[i*len(values[i]) : (i+1)*len(values[i])]
		}
		return out
	}
	s.model.Backward(p, logits)
	for _, run := range s.runs {
		grad := x.Typed.Learnt[run.Type].Grad
		flat := make([]float64, grad.Rows*grad.Cols)
		s.dev.Download(flat, grad)
		for i := run.Lo; i < run.Hi; i++ {
			row := flat[(i-run.Lo)*grad.Cols : (i-run.Lo+1)*grad.Cols]
			out[i] = s.encoders[run.Type].decode(row, len(values[i]))
		}
	}
	return out
}

// explain scores the rows of the neighbourhood and the columns of features.
func (s *subject) explain(full []float64, o ExplainOptions) (rows []float64, columns []ExplainedColumn) {
	first, n := s.columnsOf()
	score := make([]float64, n)
	if o.Method == Gradients {
		rows = s.integrate(o.Epochs, first, score)
	} else {
		rows = s.mask(full, o.Epochs, first, score)
	}
	for k, at := range first {
		if at < 0 {
			continue
		}
		meta, typ := s.t.Config.Features, ""
		if s.encoders != nil {
			meta, typ = s.t.Config.TypeFeatures[k], s.d.Meta.Schema.Types[k].Name
		}
		for c := range s.width(k) {
			columns = append(columns, ExplainedColumn{columnName(meta, c), typ, score[at+c]})
		}
	}
	return rows, columns
}

// columnsOf are where the columns of each type begin among all; -1: its rows are learnt, or there are none.
func (s *subject) columnsOf() (first []int, n int) {
	first = []int{0}
	if s.encoders == nil {
		return first, len(s.values[0])
	}
	first = make([]int, len(s.encoders))
	for k := range first {
		first[k] = -1
		if wide := s.width(k); s.encoders[k] != nil && wide > 0 {
			first[k], n = n, n+wide
		}
	}
	return first, n
}

// width is how many features the rows of a type have.
func (s *subject) width(k int) int {
	for i, of := range s.types {
		if of == k {
			return len(s.values[i])
		}
	}
	return 0
}

func columnName(f *graph.FeatureMeta, c int) string {
	if f != nil && c < len(f.Columns) {
		return f.Columns[c]
	}
	return "column " + shortest(float32(c))
}

// integrate has integrated gradients from rows of zeros: x · mean of the gradients on the way to x. What is explained
// is the probability of the class, or the sum of the numbers, or of the probabilities of labels.
func (s *subject) integrate(steps int, first []int, columns []float64) []float64 {
	rows, part := make([]float64, len(s.values)), make([][]float64, len(s.values))
	for k := range steps {
		along := (float64(k) + 0.5) / float64(steps)
		for i, row := range s.values {
			part[i] = make([]float64, len(row))
			for c, x := range row {
				part[i][c] = along * x
			}
		}
		for i, g := range s.gradient(part, s.slope) {
			for c, d := range g {
				a := d * s.values[i][c] / float64(steps)
				rows[i] += a
				if at := first[s.types[i]]; at >= 0 {
					columns[at+c] += a
				}
			}
		}
	}
	return rows
}

// slope is the gradient of what integrated gradients explain.
func (s *subject) slope(logits []float64) []float64 {
	p := nn.Predicted(logits, s.kind())
	out := make([]float64, len(p))
	for j := range out {
		switch s.task {
		case nn.TaskRegression:
			if out[j] = 1; s.targets != nil {
				out[j] = s.targets.Deviation[j]
			}
		case nn.TaskMultiLabel:
			out[j] = p[j] * (1 - p[j])
		default:
			out[j] = -p[s.class] * p[j]
			if j == s.class {
				out[j] += p[j]
			}
		}
	}
	return out
}

// mask learns masks of rows and columns that keep the prediction, as GNNExplainer does: those that it does not need
// become small. The vertex itself has none. Numbers are compared as the model learnt them, so that what masks cost
// weighs as much whatever their unit.
func (s *subject) mask(full []float64, epochs int, first []int, columns []float64) []float64 {
	full = nn.Standardized(full, s.targets)
	cost := nn.MaskCost{Size: 0.5, Entropy: 0.1}
	near, wide := nn.NewMask(len(s.values), true, cost), nn.NewMask(len(columns), true, cost)
	near.Value[s.at] = 1
	of := func(i, c int) float64 {
		if at := first[s.types[i]]; at >= 0 {
			return wide.Value[at+c]
		}
		return 1
	}
	masked := make([][]float64, len(s.values))
	for epoch := range epochs {
		for i, row := range s.values {
			masked[i] = make([]float64, len(row))
			for c, x := range row {
				masked[i][c] = near.Value[i] * of(i, c) * x
			}
		}
		clear(near.Gradient)
		clear(wide.Gradient)
		for i, g := range s.gradient(masked, func(logits []float64) []float64 {
			_, d := nn.Divergence(full, logits, s.kind())
			return d
		}) {
			for c, d := range g {
				near.Gradient[i] += d * s.values[i][c] * of(i, c)
				if at := first[s.types[i]]; at >= 0 {
					wide.Gradient[at+c] += d * s.values[i][c] * near.Value[i]
				}
			}
		}
		near.Update(epoch + 1)
		wide.Update(epoch + 1)
		near.Value[s.at] = 1
	}
	for c, x := range wide.Value {
		columns[c] = math.Max(0, x)
	}
	return near.Value
}
