package nn

import (
	"math"

	"starling/graph"
	"starling/tensor"
)

// Weighting says what the losses of labels count, for classes that are rare and labels that are hard.
//
//	one class     loss = w_y · (1-p_y)^γ · -log p_y                p = softmax of the logits, y the label
//	several       loss = Σ over classes c of u_c · (1-q_c)^γ · -log q_c / classes
//	              q_c = σ(x_c) and u_c = w_c where the vertex has class c, else q_c = 1-σ(x_c) and u_c = 1
//
// γ is the focus of focal loss (Lin, Goyal, Girshick, He and Dollár 2017, eq. 4 and 5); 0 is cross-entropy. The
// weights of single labels have a mean of one over the training vertices, so that the mean of the losses is the
// weighted mean (as torch's cross_entropy has it for a batch of all of them). Those of several labels are torch's
// pos_weight.
type Weighting struct {
	Class []float64 // by class; nil: all count one
	Gamma float64
}

// None reports whether all labels count alike.
func (w Weighting) None() bool { return w.Class == nil && w.Gamma == 0 }

// of is what a class counts.
func (w Weighting) of(class int) float64 {
	if w.Class == nil {
		return 1
	}
	return w.Class[class]
}

// BalancedWeights are weights by how often classes occur among n training vertices: N / (classes · n_c), as
// scikit-learn's class_weight="balanced" has them, over the classes that occur; for several labels per vertex
// (N - n_c) / n_c, so that the marks of a class weigh as much as their absence. A class that never occurs has one.
func BalancedWeights(kind string, counts []float64, n float64) []float64 {
	out, present := make([]float64, len(counts)), 0.0
	for _, x := range counts {
		if x > 0 {
			present++
		}
	}
	for c, x := range counts {
		switch {
		case x == 0 || kind == graph.MultiLabel && x == n:
			out[c] = 1
		case kind == graph.MultiLabel:
			out[c] = (n - x) / x
		default:
			out[c] = n / (present * x)
		}
	}
	return out
}

// Normalized are weights of single labels with a mean of one over training vertices.
func Normalized(weights, counts []float64) []float64 {
	sum, n := 0.0, 0.0
	for c, x := range counts {
		sum, n = sum+weights[c]*x, n+x
	}
	out := make([]float64, len(weights))
	for c, w := range weights {
		if out[c] = w; sum > 0 {
			out[c] = w * n / sum
		}
	}
	return out
}

// Of is a task with weighted losses, which are over some rows. class is the class of a row; has is whether it has
// one, where it may have several.
func (w Weighting) Of(task Task, rows []uint32, class func(row uint32) uint32,
	has func(row uint32, class int) bool) Task {
	if w.None() {
		return task
	}
	t := &Weighted{Task: task, Weighting: w, rows: rows, class: class, has: has}
	_, t.several = task.(MultiLabel)
	return t
}

// Weighted is a task whose losses are weighted. Loss is over the rows that it was made for.
type Weighted struct {
	Task
	Weighting
	rows []uint32 // of the logits
	// class is the class of a row; has is whether it has one, where it may have several.
	class func(row uint32) uint32
	has   func(row uint32, class int) bool

	several bool
	groups  []weightGroup
}

// weightGroup are rows of one weight.
type weightGroup struct {
	weight       float64
	rows, labels tensor.Index
}

// Loss is over the rows which the task was made for.
func (t *Weighted) Loss(dev tensor.Device, dlogits, logits tensor.Matrix, _ tensor.Index,
	scale float64) tensor.Matrix {
	if !t.several && t.Gamma == 0 {
		return t.byWeight(dev, dlogits, logits, scale)
	}
	return t.onHost(dev, dlogits, logits, scale)
}

// byWeight stays on the device: the rows of each weight are gathered, and their loss is scaled by it.
func (t *Weighted) byWeight(dev tensor.Device, dlogits, logits tensor.Matrix, scale float64) tensor.Matrix {
	if t.groups == nil {
		t.groups = t.group(dev)
	}
	sums, parts := dev.New(tensor.F64, max(1, len(t.groups)), 2), make([]tensor.Matrix, len(t.groups))
	for k, g := range t.groups {
		x := dev.Scratch(logits.Type(), g.rows.Len(), logits.Cols)
		dev.GatherRows(x, logits, g.rows)
		dev.Loss(sums.Slice(k, k+1), x, x, tensor.Loss{Kind: tensor.CrossEntropy, Labels: g.labels,
			Scale: scale * g.weight})
		parts[k] = x
	}
	if !dlogits.IsZero() {
		dev.Zero(dlogits)
	}
	for k, g := range t.groups {
		if !dlogits.IsZero() {
			dev.ScatterAdd(dlogits, parts[k], g.rows)
		}
		dev.Free(parts[k])
	}
	return sums
}

// group divides the rows by weight, in the order of their first rows.
func (t *Weighted) group(dev tensor.Device) []weightGroup {
	at := map[float64]int{}
	var weights []float64
	var rows, labels [][]uint32
	for _, row := range t.rows {
		class := t.class(row)
		w := t.of(int(class))
		k, ok := at[w]
		if !ok {
			k = len(weights)
			at[w], weights = k, append(weights, w)
			rows, labels = append(rows, nil), append(labels, nil)
		}
		rows[k], labels[k] = append(rows[k], row), append(labels[k], class)
	}
	groups := make([]weightGroup, len(weights))
	for k, w := range weights {
		groups[k] = weightGroup{w, tensor.Indices(dev, rows[k]), tensor.Indices(dev, labels[k])}
	}
	return groups
}

// hostChunk is how many rows' losses are added up before they are added to the others.
const hostChunk = 256

// onHost computes losses and gradients of the gathered rows on the host: their factors depend on the probabilities.
func (t *Weighted) onHost(dev tensor.Device, dlogits, logits tensor.Matrix, scale float64) tensor.Matrix {
	n, cols := len(t.rows), logits.Cols
	rows := tensor.Indices(dev, t.rows)
	x := dev.Scratch(logits.Type(), n, cols)
	defer dev.Free(x)
	dev.GatherRows(x, logits, rows)
	host := make([]float64, n*cols)
	dev.Download(host, x)
	losses := make([]float64, (n+hostChunk-1)/hostChunk)
	graph.Parallel(int64(n), hostChunk, func(lo, hi int64) {
		for i := lo; i < hi; i++ { // of several chunks where one goroutine has all
			losses[i/hostChunk] += t.row(host[i*int64(cols):(i+1)*int64(cols)], t.rows[i], scale)
		}
	})
	loss := 0.0
	for _, l := range losses {
		loss += l
	}
	if !dlogits.IsZero() {
		dev.Upload(x, host)
		dev.Zero(dlogits)
		dev.ScatterAdd(dlogits, x, rows)
	}
	sums := dev.Scratch(tensor.F64, 1, 2)
	dev.Upload(sums, []float64{loss, 0})
	return sums
}

// row is scale times the loss of a row of logits, whose place its gradient takes.
func (t *Weighted) row(x []float64, row uint32, scale float64) (loss float64) {
	if !t.several {
		class := int(t.class(row))
		return focalSoftmax(x, class, scale*t.of(class), t.Gamma)
	}
	scale /= float64(len(x))
	for c := range x {
		weight, sign := scale, -1.0
		if t.has(row, c) {
			weight, sign = scale*t.of(c), 1
		}
		// s is the logit of what is true: loss = -(1-q)^γ log q with q = σ(s).
		s := sign * x[c]
		logQ, rest := -softplus(-s), 1/(1+math.Exp(s))
		l, slope := focal(logQ, rest, t.Gamma)
		loss += weight * l
		x[c] = weight * sign * slope * rest
	}
	return loss
}

// focalSoftmax is a weighted focal loss of one class, whose gradient takes the place of the logits.
func focalSoftmax(x []float64, class int, weight, gamma float64) (loss float64) {
	most := math.Inf(-1)
	for _, v := range x {
		most = max(most, v)
	}
	sum, others := 0.0, 0.0
	for j, v := range x {
		e := math.Exp(v - most)
		sum += e
		if j != class {
			others += e
		}
	}
	loss, slope := focal(x[class]-most-math.Log(sum), others/sum, gamma)
	for j, v := range x {
		if j == class {
			x[j] = weight * slope * others / sum
		} else {
			x[j] = -weight * slope * math.Exp(v-most) / sum
		}
	}
	return weight * loss
}

// focal is (1-p)^γ · -log p, and its derivative by log p, where rest is 1-p.
func focal(logP, rest, gamma float64) (loss, slope float64) {
	if gamma == 0 {
		return -logP, -1
	}
	power := math.Pow(rest, gamma)
	if rest > 0 {
		slope = gamma * math.Exp(logP) * logP * power / rest
	}
	return -power * logP, slope - power
}

// softplus is log(1 + exp(x)).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
