package simd

import "math"

// Softmax works on chosen rows of X: it stores Scale·softmax(x) in the same rows
// of Dst (if there is one), less Scale at the label where there are labels: the
// gradient of cross-entropy. The loss of row k of the list is
// log(Sum_k) + Gap_k: Sum is the row's sum of exp(x - max), Gap is max - x[label].
// Taking the logarithm is left to the caller, who can take it of a product of sums.
type Softmax struct {
	X, Dst     Block
	Rows, Cols int     // Rows is the length of the list
	List       *uint32 // row numbers, ascending; nil: rows 0, 1, ...
	Labels     *uint32 // by row number; nil: none, and no Gap
	Sum, Gap   *float32
	Exp        *float32 // space for two rows, each rounded up to 16 numbers
	Scale      float32
	Correct    int // counts rows whose first largest number is the label
}

// Run computes the rows of the list.
func (s *Softmax) Run(l Level) {
	if s.Rows == 0 || s.Cols == 0 {
		return
	}
	runSoftmax(l, s)
}

func softmaxGeneric(s *Softmax) {
	for k := range s.Rows {
		i := k
		if s.List != nil {
			i = int(*at(s.List, k))
		}
		best := argmaxRow(&s.X, i, s.Cols)
		top := s.X.At(i, best)
		var sum float32
		for j := range s.Cols {
			e := float32(math.Exp(float64(s.X.At(i, j) - top)))
			*at(s.Exp, j) = e
			sum += e
		}
		label := -1
		if s.Labels != nil {
			label = int(*at(s.Labels, i))
			*at(s.Gap, k) = top - s.X.At(i, label)
			if best == label {
				s.Correct++
			}
		}
		*at(s.Sum, k) = sum
		if s.Dst.Data == nil {
			continue
		}
		f := s.Scale / sum
		for j := range s.Cols {
			x := *at(s.Exp, j) * f
			if j == label {
				x -= s.Scale
			}
			s.Dst.Set(i, j, x)
		}
	}
}

// LogSum is the sum of log(sum_k) + gap_k, the loss of rows whose sums, each at least 1, and gaps Softmax has left.
func LogSum(l Level, sum, gap []float32) (loss float64) {
	if n := len(sum) / 64 * 64; l >= AVX512 && n > 0 {
		a := logSums{}
		for i := range a.product {
			a.product[i] = 1
		}
		logSumFast(&a, &sum[0], &gap[0], n)
		loss, sum, gap = a.loss(), sum[n:], gap[n:]
	}
	return loss + logSumGeneric(sum) + sum64(gap)
}

// logSums are sums by lanes. A product is one of mantissas, their exponents are added up apart:
// no logarithm is taken of
// a single number.
type logSums struct {
	product  [16]float64
	exponent [8]float64
	linear   [16]float64
}

func (a *logSums) loss() (loss float64) {
	product := 1.0
	for i, p := range a.product {
		product *= p
		loss += a.linear[i]
	}
	for _, e := range a.exponent {
		loss += e * math.Ln2
	}
	return loss + math.Log(product)
}

// logSumGeneric is the sum of the logarithms of x, each at least 1: the logarithm of
// products, taken before they could overflow. There are four products, for a
// multiplication waits for the one before.
func logSumGeneric(x []float32) float64 {
	sum, a, b, c, d := 0.0, 1.0, 1.0, 1.0, 1.0
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a*float64(x[0]), b*float64(x[1]), c*float64(x[2]), d*float64(x[3])
		if a > 1e200 || b > 1e200 || c > 1e200 || d > 1e200 {
			sum += math.Log(a) + math.Log(b) + math.Log(c) + math.Log(d)
			a, b, c, d = 1, 1, 1, 1
		}
	}
	for _, v := range x {
		a *= float64(v)
	}
	return sum + math.Log(a) + math.Log(b) + math.Log(c) + math.Log(d)
}

// sum64 is the sum of x, in four for the same reason.
func sum64(x []float32) float64 {
	a, b, c, d := 0.0, 0.0, 0.0, 0.0
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = a+float64(x[0]), b+float64(x[1]), c+float64(x[2]), d+float64(x[3])
	}
	for _, v := range x {
		a += float64(v)
	}
	return a + b + c + d
}

// argmaxRow is the first column with the largest number of a row.
func argmaxRow(x *Block, i, cols int) int {
	best, top := 0, x.At(i, 0)
	for j := 1; j < cols; j++ {
		if v := x.At(i, j); v > top {
			best, top = j, v
		}
	}
	return best
}

// Argmax stores the first column with the largest number of each row. A row with
// a NaN gets some column.
type Argmax struct {
	X          Block
	Rows, Cols int
	Dst        *uint32
}

// Run computes the block's rows.
func (a *Argmax) Run(l Level) {
	if a.Rows > 0 && a.Cols > 0 {
		runArgmax(l, a)
	}
}

func argmaxGeneric(a *Argmax) {
	for i := range a.Rows {
		*at(a.Dst, i) = uint32(argmaxRow(&a.X, i, a.Cols))
	}
}

// BCE is binary cross-entropy with logits x against targets t, over a block:
//
//	loss = max(x,0) - x·t + log(1 + exp(-|x|));  Dst (if any) = Scale·(sigmoid(x) - t)
//
// Linear gets the sum of the first two terms. The logarithms are not taken one by
// one: lane by lane Product·2^Exponent, of products that start at 1, is multiplied
// by the arguments, so that the caller takes one logarithm a block.
type BCE struct {
	X, T, Dst  Block
	Rows, Cols int
	Product    [16]float64
	Exponent   [16]int64
	Linear     float64
	Scale      float32
}

// Run computes the block.
func (b *BCE) Run(l Level) {
	if b.Rows > 0 && b.Cols > 0 {
		runBCE(l, b)
	}
}

func bceGeneric(b *BCE) {
	for i := range b.Rows {
		for j := range b.Cols {
			x, t := b.X.At(i, j), b.T.At(i, j)
			e := math.Exp(-math.Abs(float64(x)))
			if p := &b.Product[j%16]; *p < 0x1p1000 {
				*p *= 1 + e
			} else {
				*p *= (1 + e) * 0x1p-1000
				b.Exponent[j%16] += 1000
			}
			b.Linear += float64(max(x, 0) - x*t)
			if b.Dst.Data == nil {
				continue
			}
			p := 1 / (1 + e)
			if x < 0 {
				p = e / (1 + e)
			}
			b.Dst.Set(i, j, b.Scale*(float32(p)-t))
		}
	}
}
