package simd

import "math"

// Adam is one step of Adam on N parameters (Kingma and Ba 2015), or of AdamW
// (Loshchilov and Hutter 2019):
//
//	g += L2·p;  m += (1-Beta1)·(g-m);  v = Beta2·v + (1-Beta2)·g²
//	p = Shrink·p - Rate·m/(sqrt(v)·Root + Eps)
//
// with Rate = lr/(1-beta1^t), Root = 1/sqrt(1-beta2^t); L2 is 0 for AdamW, whose
// decay is Shrink = 1 - lr·decay.
type Adam struct {
	P, G, M, V           *float32
	N                    int
	OneBeta1, Beta2      float32
	OneBeta2, L2, Shrink float32
	Rate, Root, Eps      float32
}

// Run makes the step.
func (a *Adam) Run(l Level) {
	if a.N > 0 {
		runAdam(l, a)
	}
}

func adamGeneric(a *Adam) {
	for i := range a.N {
		p, m, v := at(a.P, i), at(a.M, i), at(a.V, i)
		g := *at(a.G, i) + a.L2**p
		*m += a.OneBeta1 * (g - *m)
		*v = a.Beta2**v + a.OneBeta2*g*g
		root := float32(math.Sqrt(float64(*v)))
		*p = a.Shrink**p - a.Rate**m/(root*a.Root+a.Eps)
	}
}

// SGD is one step of gradient descent on N parameters:
//
//	g += Decay·p;  buf = Momentum·buf + g;  p -= Rate·buf
//
// With Nesterov p -= Rate·(g + Momentum·buf); without Buf p -= Rate·g. Start sets buf = g.
type SGD struct {
	P, G, Buf             *float32
	N                     int
	Rate, Momentum, Decay float32
	Nesterov, Start       bool
}

// Run makes the step.
func (s *SGD) Run(l Level) {
	if s.N > 0 {
		runSGD(l, s)
	}
}

func sgdGeneric(s *SGD) {
	for i := range s.N {
		p := at(s.P, i)
		g := *at(s.G, i) + s.Decay**p
		if s.Buf != nil {
			b := at(s.Buf, i)
			if s.Start {
				*b = g
			} else {
				*b = s.Momentum**b + g
			}
			if s.Nesterov {
				g += s.Momentum * *b
			} else {
				g = *b
			}
		}
		*p -= s.Rate * g
	}
}
