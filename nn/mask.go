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

// Mask is numbers θ, of which σ(θ) counts, under penalties of their mean and of their mean entropy.
// Adam learns them, with one second moment for all: a step that depended on the sign of each
// gradient alone, as its own does early on, would lose the order of the masks.
type Mask struct {
	Value, Gradient []float64 // σ(θ), and the gradient of the loss by it

	theta, first  []float64
	second        float64
	learnt        bool
	size, entropy float64
}

// NewMask is of n numbers that begin at one half; one that is not learnt is all ones.
func NewMask(n int, learnt bool, size, entropy float64) *Mask {
	m := &Mask{Value: make([]float64, n), Gradient: make([]float64, n), learnt: learnt, size: size, entropy: entropy}
	for i := range m.Value {
		m.Value[i] = 1
	}
	if learnt {
		m.theta, m.first = make([]float64, n), make([]float64, n)
		m.set()
	}
	return m
}

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
	for _, v := range m.Value {
		sum += m.size*v + m.entropy*entropy(v)
	}
	return sum / float64(max(len(m.Value), 1))
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
	n, squares := float64(len(m.theta)), 0.0
	for i, v := range m.Value {
		slope := v * (1 - v)
		g := m.Gradient[i]*slope + (m.size-m.entropy*m.theta[i])*slope/n
		squares += g * g / n
		m.first[i] = maskBeta1*m.first[i] + (1-maskBeta1)*g
	}
	m.second = maskBeta2*m.second + (1-maskBeta2)*squares
	scale := math.Sqrt(m.second/(1-math.Pow(maskBeta2, float64(step)))) + maskTiny
	for i := range m.theta {
		m.theta[i] -= maskRate * m.first[i] / (1 - math.Pow(maskBeta1, float64(step))) / scale
	}
	m.set()
}
