package nn

import (
	"math"
	"slices"

	"starling/graph"
)

// What explainers share: predictions as distributions, how far apart they are, and masks that are learnt.

// Predicted is a distribution over classes, the probability of each label, or the numbers themselves.
func Predicted(logits []float64, labels string) []float64 {
	out := make([]float64, len(logits))
	switch labels {
	case graph.Regression:
		copy(out, logits)
	case graph.MultiLabel:
		for c, z := range logits {
			out[c] = sigmoid(z)
		}
	default:
		top, sum := slices.Max(logits), 0.0
		for c, z := range logits {
			out[c] = math.Exp(z - top)
			sum += out[c]
		}
		for c := range out {
			out[c] /= sum
		}
	}
	return out
}

// Divergence is how far a prediction is from the target, and its gradient by the logits: the
// Kullback-Leibler divergence of distributions, its sum over labels, or half the squared distance.
// The gradient is prediction less target in each case.
func Divergence(target, logits []float64, labels string) (loss float64, gradient []float64) {
	p := Predicted(logits, labels)
	gradient = make([]float64, len(p))
	for c, h := range target {
		gradient[c] = p[c] - h
		switch labels {
		case graph.Regression:
			loss += gradient[c] * gradient[c] / 2
		case graph.MultiLabel:
			loss += relative(h, p[c]) + relative(1-h, 1-p[c])
		default:
			loss += relative(h, p[c])
		}
	}
	return loss, gradient
}

// relative is h·ln(h/p).
func relative(h, p float64) float64 {
	if h <= 0 {
		return 0
	}
	return h * math.Log(h/math.Max(p, 1e-300))
}

// Mask is numbers θ, of which σ(θ) counts, under penalties of their size and of their mean entropy.
// Adam learns them.
type Mask struct {
	Value, Gradient []float64 // σ(θ), and the gradient of the loss by it

	theta, first, second []float64
	learnt               bool
	cost                 MaskCost
}

// MaskCost is what a mask is penalized by, and how it is learnt.
type MaskCost struct {
	Size, Entropy float64 // of the mean σ(θ), and of the mean entropy
	// Sum has Size of the sum of σ(θ), as GNNExplainer has it for edges.
	Sum bool
	// Each has Adam keep a second moment of every number, as published. With one for all, steps keep the order of
	// gradients, which its sign alone, which decides early steps otherwise, does not.
	Each bool
}

// NewMask is of n numbers that begin at one half; one that is not learnt is all ones.
func NewMask(n int, learnt bool, cost MaskCost) *Mask {
	m := &Mask{Value: make([]float64, n), Gradient: make([]float64, n), learnt: learnt, cost: cost}
	for i := range m.Value {
		m.Value[i] = 1
	}
	if learnt {
		m.theta, m.first, m.second = make([]float64, n), make([]float64, n), make([]float64, n)
		m.set()
	}
	return m
}

// MaskOf is a mask of numbers θ; one that is not learnt is all ones.
func MaskOf(theta []float64, learnt bool) *Mask {
	m := NewMask(len(theta), learnt, MaskCost{})
	m.Begin(theta)
	return m
}

// Begin has a learnt mask go on from numbers θ.
func (m *Mask) Begin(theta []float64) {
	copy(m.theta, theta)
	m.set()
}

// Theta are a learnt mask's numbers θ.
func (m *Mask) Theta() []float64 { return m.theta }

func (m *Mask) set() {
	for i, t := range m.theta {
		m.Value[i] = sigmoid(t)
	}
}

// Penalty is the sum of the mask's own.
func (m *Mask) Penalty() (sum float64) {
	if !m.learnt {
		return 0
	}
	size, each := m.weights()
	for _, v := range m.Value {
		sum += size*v + each*entropy(v)
	}
	return sum
}

// weights returns what an element's size and entropy weigh.
func (m *Mask) weights() (size, entropy float64) {
	n := float64(max(len(m.Value), 1))
	size, entropy = m.cost.Size/n, m.cost.Entropy/n
	if m.cost.Sum {
		size = m.cost.Size
	}
	return size, entropy
}

// entropy is the entropy of a coin.
func entropy(v float64) float64 {
	if v <= 0 || v >= 1 {
		return 0
	}
	return -v*math.Log(v) - (1-v)*math.Log(1-v)
}

// The rate of GNNExplainer's own masks, and Adam's usual constants.
const (
	maskRate             = 0.1
	maskBeta1, maskBeta2 = 0.9, 0.999
	maskTiny             = 1e-12
)

// Update takes a step, the given one from 1 on, against the gradient and those of the penalties.
func (m *Mask) Update(step int) {
	if !m.learnt || len(m.theta) == 0 {
		return
	}
	size, each := m.weights()
	mean := 0.0
	for i, v := range m.Value {
		slope := v * (1 - v)
		g := m.Gradient[i]*slope + (size-each*m.theta[i])*slope
		m.first[i] = maskBeta1*m.first[i] + (1-maskBeta1)*g
		m.second[i] = maskBeta2*m.second[i] + (1-maskBeta2)*g*g
		mean += m.second[i] / float64(len(m.theta))
	}
	first, second := 1-math.Pow(maskBeta1, float64(step)), 1-math.Pow(maskBeta2, float64(step))
	for i := range m.theta {
		of := mean
		if m.cost.Each {
			of = m.second[i]
		}
		m.theta[i] -= maskRate * m.first[i] / first / (math.Sqrt(of/second) + maskTiny)
	}
	m.set()
}
