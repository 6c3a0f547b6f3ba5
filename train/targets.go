package train

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/nn"
)

// The targets of a regression are standardized by their mean and deviation over all training vertices:
//
//	mean = Σ y / n        deviation = sqrt(n Σ y² - (Σ y)²) / n, and 1 where all are equal
//
// Both sums are exact, as integers in units of 2^-149 and its square, of which every float32 and every square is a
// multiple. So mean and deviation are rounded once, and are the same bits however the vertices are divided over
// workers. The integers travel as digits: the digits of several workers add up, and are exact in a float64.

const (
	digitBits = 24
	smallest  = 149 // the least float32 is 2^-149
	sumDigits = 13  // the largest, 2^128, times 2^149, times 2^35 vertices
	// targetDigits is how many digits a target has, its squares in 25: 2^256 times 2^298 times 2^46 vertices.
	targetDigits = sumDigits + 25
)

// targetSums are the digits of Σ y and Σ y² over some vertices, for one target after the other.
func targetSums(l *graph.Labels, vertices []uint32) []float64 {
	digits := make([]int64, l.Classes*targetDigits)
	for _, v := range vertices {
		for t, y := range l.Numbers(int(v)) {
			addTarget(digits[t*targetDigits:(t+1)*targetDigits], y)
		}
	}
	out := make([]float64, len(digits))
	for t := range l.Classes {
		of, to := digits[t*targetDigits:], out[t*targetDigits:]
		carry(to[:sumDigits], of[:sumDigits])
		carry(to[sumDigits:targetDigits], of[sumDigits:targetDigits])
	}
	return out
}

// addTarget adds a number and its square.
func addTarget(digits []int64, y float32) {
	bits := math.Float32bits(y)
	exponent, mantissa := int(bits>>23&0xff), uint64(bits&(1<<23-1))
	if exponent == 0xff { // labels are finite: vertices without any are in no split
		return
	}
	if exponent > 0 {
		exponent, mantissa = exponent-1, mantissa|1<<23
	}
	sign := int64(1)
	if bits>>31 == 1 {
		sign = -1
	}
	addAt(digits[:sumDigits], mantissa, exponent, sign)
	addAt(digits[sumDigits:], mantissa*mantissa, 2*exponent, 1)
}

// addAt adds an integer of at most 48 bits, shifted. A digit grows by less than 2^25, so that 2^38 vertices fit.
func addAt(digits []int64, x uint64, shift int, sign int64) {
	for k := shift / digitBits; x != 0; k, x = k+1, x>>digitBits {
		part := x & (1<<digitBits - 1) << (shift % digitBits)
		digits[k] += sign * int64(part&(1<<digitBits-1))
		digits[k+1] += sign * int64(part>>digitBits)
	}
}

// carry makes digits small, so that those of a million workers add up exactly.
func carry(to []float64, digits []int64) {
	over := int64(0)
	for k, d := range digits {
		d += over
		if over = 0; k < len(digits)-1 {
			over = d >> digitBits
			d -= over << digitBits
		}
		to[k] = float64(d)
	}
}

// integer is the number that digits stand for.
func integer(digits []float64) *big.Int {
	x := new(big.Int)
	for _, d := range slices.Backward(digits) {
		x.Lsh(x, digitBits).Add(x, big.NewInt(int64(d)))
	}
	return x
}

// scaleOf is the scale of targets, from the digits of n vertices.
func scaleOf(digits []float64, n int) *graph.Scale {
	s, count := graph.NewScale(len(digits)/targetDigits), big.NewInt(int64(n))
	if n == 0 { // in a dry run of one worker of several
		return s
	}
	for t := range s.Mean {
		of := digits[t*targetDigits : (t+1)*targetDigits]
		sum, squares := integer(of[:sumDigits]), integer(of[sumDigits:])
		s.Mean[t], _ = new(big.Rat).SetFrac(sum, new(big.Int).Lsh(count, smallest)).Float64()
		spread := new(big.Int).Mul(count, squares)
		spread.Sub(spread, new(big.Int).Mul(sum, sum))
		if spread.Sign() > 0 {
			unit := new(big.Int).Lsh(new(big.Int).Mul(count, count), 2*smallest)
			variance, _ := new(big.Rat).SetFrac(spread, unit).Float64()
			s.Deviation[t] = math.Sqrt(variance)
		}
	}
	return s
}

// standardizeTargets has the loss be of standardized targets: by the scale that the weights came with where the run
// goes on from some, else by that of the training vertices.
func (f *Loop) standardizeTargets() {
	if f.Targets == nil {
		return
	}
	if f.Opt.Resume != nil {
		f.Targets = f.Model.TargetScale(f.Dev)
	} else {
		f.Model.SetTargetScale(f.Dev, f.Targets)
	}
	l := f.Known.Labels
	standard := slices.Clone(l.Values)
	f.Targets.Apply(standard)
	f.Task = nn.Regress{Values: f.Task.(nn.Regress).Values, Standard: f.Dev.FromHost(l.Len(), l.Classes, standard)}
	if f.Known.Rank == 0 {
		f.Events.On(event.Note{Text: targetsNote(f.Targets, l.Names)})
	}
}

// mostTargets is how many targets a note lists.
const mostTargets = 4

// targetsNote says what targets are standardized by.
func targetsNote(s *graph.Scale, names []string) string {
	var list []string
	for t := range min(len(s.Mean), mostTargets) {
		of := fmt.Sprintf("mean %.6g, deviation %.6g", s.Mean[t], s.Deviation[t])
		if t < len(names) {
			of = fmt.Sprintf("%s: %s", names[t], of)
		}
		list = append(list, of)
	}
	if more := len(s.Mean) - mostTargets; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("targets are standardized for training (%s); the loss is of standardized targets, metrics and "+
		"predictions are in their own units (--standardize-targets=false: learn them as they are)",
		strings.Join(list, "; "))
}
