package simd

import (
	"math"

	"starling/tensor/draw"
)

// Attention is some destination rows of an attention layer, for up to MaxHeads
// heads (see tensor.Device.Attend for the formula):
//
//	e_jh = leaky(left_jh + right_ih)     for the entries j of row i
//	dst_ih = sum of drop(exp(e_jh - max)) · z_jh / sum of exp(e_jh - max)
//
// Row max and one over the sum go to Max and Inv.
type Attention struct {
	Dst, Z      Strided // Dst starts at the first of the rows
	Rows        int
	Heads       int // at most MaxHeads
	Width       int // columns a head
	Ptr         []int64
	Index       []uint32
	Left, Right Strided // float32; Right starts at the first of the rows
	Max, Inv    Strided // float32; start at the first of the rows
	// Score, if given, is added before leaky: entries x EdgeHeads, of which this call
	// looks at Heads from Drop.FirstHead on. Vectors do not do it.
	Score     []float32
	EdgeHeads int
	Slope     float32
	Drop      AttentionDropout
	Stream    bool      // as RowSums'
	Work      []float32 // scratch, see AttentionWork
}

// MaxHeads is how many heads one call does: the lanes of the widest vector.
const MaxHeads = 16

// AttentionWork is how much scratch rows of up to maxDegree entries need: a number a head for
// each of some entries, and what
// the loops over wide rows need for themselves.
func AttentionWork(maxDegree, heads, cols int) int {
	return (max(maxDegree, 4096)+32)*Lanes(heads) + 2*cols + panelCols + gradWorkspace + 16
}

// panelCols is how many columns one call sums, and the length of its pattern.
const panelCols = 256

// gradWorkspace is how many numbers the backward pass keeps of a row and of batches of its
// entries, up to batchEntries in up to
// batchGroups vectors with a number a head.
const (
	gradWorkspace = 16 * (2*(3*batchGroups+1) + 4 + batchEntries + 16)
	batchEntries  = 32
	batchGroups   = 8
)

// AttentionDropout are the draws of attention coefficients: the coefficient of
// head h from source j to destination i is kept, and multiplied by Scale, when
// the draw for (id of i, id of j, h) is at least Threshold.
type AttentionDropout struct {
	On        bool
	Threshold uint16
	Scale     float32
	Key       uint64
	FirstHead int
	// Ids of destinations (not in a backward pass, which has Keys) and sources;
	// where nil, First + row number.
	DstIDs, SrcIDs     []uint32
	FirstDst, FirstSrc uint32
}

// RowKey is the key of the draws for a destination.
func (d *AttentionDropout) RowKey(row int) uint64 {
	id := d.FirstDst + uint32(row)
	if d.DstIDs != nil {
		id = d.DstIDs[row]
	}
	return draw.RowKey(d.Key, id)
}

func (d *AttentionDropout) source(j int) uint32 {
	if d.SrcIDs != nil {
		return d.SrcIDs[j]
	}
	return d.FirstSrc + uint32(j)
}

// factor is Scale or 0 by the draw of a row's key for source id and head.
func (d *AttentionDropout) factor(key uint64, source uint32, head int) float32 {
	if draw.Attention(key, source, d.FirstHead+head) < d.Threshold {
		return 0
	}
	return d.Scale
}

// Attend computes a.
func Attend(level Level, a *Attention) {
	if a.Rows == 0 || a.Heads*a.Width == 0 || a.Score == nil && attendFast(level, a) {
		return
	}
	attendGeneric(a)
}

func attendGeneric(a *Attention) {
	h := a.Heads
	for r := range a.Rows {
		lo, hi := a.Ptr[r], a.Ptr[r+1]
		weight := a.Work[:int(hi-lo)*h]
		acc := a.Work[len(weight):][:h*a.Width]
		right := a.Right.F32[r*a.Right.Stride:][:h]
		top := a.Max.F32[r*a.Max.Stride:][:h]
		inv := a.Inv.F32[r*a.Inv.Stride:][:h]
		a.scores(weight, top, right, a.Index[lo:hi], lo)
		clear(inv)
		for k, s := range weight {
			weight[k] = Exp(s - top[k%h])
			inv[k%h] += weight[k]
		}
		for k, s := range inv {
			if s != 0 {
				inv[k] = 1 / s
			}
		}
		a.drop(weight, r, a.Index[lo:hi])
		clear(acc)
		for e, j := range a.Index[lo:hi] {
			for k := range h {
				a.Z.addTo(acc[k*a.Width:(k+1)*a.Width], weight[e*h+k], int(j), k*a.Width)
			}
		}
		for k := range h {
			a.Dst.put(acc[k*a.Width:(k+1)*a.Width], inv[k], false, r, k*a.Width)
		}
	}
}

// scores fills s (entries x heads) and the maximum of each head, zero without entries.
func (a *Attention) scores(s, top, right []float32, index []uint32, first int64) {
	h := a.Heads
	clear(top)
	for e, j := range index {
		left := a.Left.F32[int(j)*a.Left.Stride:][:h]
		for k := range h {
			x := left[k] + right[k]
			if a.Score != nil {
				x += a.Score[(int(first)+e)*a.EdgeHeads+a.Drop.FirstHead+k]
			}
			x = leaky(x, a.Slope)
			s[e*h+k] = x
			if e == 0 || x > top[k] {
				top[k] = x
			}
		}
	}
}

func (a *Attention) drop(weight []float32, row int, index []uint32) {
	if !a.Drop.On {
		return
	}
	key := a.Drop.RowKey(row)
	for e, j := range index {
		id := a.Drop.source(int(j))
		for k := range a.Heads {
			weight[e*a.Heads+k] *= a.Drop.factor(key, id, k)
		}
	}
}

func leaky(x, slope float32) float32 {
	if x > 0 {
		return x
	}
	return slope * x
}

// AttentionGrad is the backward pass for some source rows. With α_ij and drop
// as in the forward pass, i over the entries of row j of the transpose:
//
//	dz_jh    = sum over i of drop(α_ijh) · ddst_ih
//	de_ijh   = leaky' · ( drop(α_ijh) · (ddst_ih · z_jh) - α_ijh · delta_ih )
//	dleft_jh = sum over i of de_ijh
//
// where delta_ih = ddst_ih · dst_ih, which is the sum over j of drop(α_ijh) ·
// (ddst_ih · z_jh) that softmax's derivative needs: so one gather of wide rows is
// enough. de_ijh goes to Edge, at the entry's place in the forward matrix.
type AttentionGrad struct {
	DZ, Z  Strided // start at the first of the rows
	DDst   Strided // starts at row 0
	Rows   int
	Heads  int
	Width  int
	Ptr    []int64
	Index  []uint32
	Perm   []uint32 // place of each entry in Edge
	Left   Strided  // float32; starts at the first of the rows
	DLeft  Strided  // float32; starts at the first of the rows
	Packed []float32
	Edge   []float32 // entries x EdgeHeads, from column FirstHead on
	// Sums, if given, has de_ijh added to row i instead, EdgeHeads numbers per row.
	Sums []float32
	// EdgeHeads is the number of heads in all, of which this call does Heads.
	EdgeHeads int
	Score     []float32 // as Attention's, at the entry's place
	Slope     float32
	Stream    bool             // as RowSums', of DZ
	Drop      AttentionDropout // SrcIDs start at the first of the rows
	Keys      []uint64         // with dropout, the key of each destination's draws, RowKey
	Work      []float32
}

// Lanes is the number of floats kept an entry for the given number of heads: a power of two.
func Lanes(heads int) int {
	n := 1
	for n < heads {
		n *= 2
	}
	return n
}

// AttentionPack gathers what the backward pass needs of a destination beside its
// wide row, right, max, 1/sum and delta, in 4·Lanes(heads) floats per row. Those of each four
// heads lie together, in one cache line.
type AttentionPack struct {
	Packed          []float32
	Rows            int
	Heads, Width    int
	Right, Max, Inv Strided
	Dst, DDst       Strided
	Work            []float32 // Width long
}

// PackAttention computes a.
func PackAttention(level Level, a *AttentionPack) {
	if a.Rows == 0 || packAttentionFast(level, a) {
		return
	}
	packAttentionGeneric(a)
}

// packRow is the numbers of a row of packed, packLanes how many heads' numbers of a kind lie
// together, and packPlace where the first
// of a head's four is; the others follow packLanes apart.
func packRow(heads int) int         { return 4 * Lanes(heads) }
func packLanes(heads int) int       { return min(4, Lanes(heads)) }
func packPlace(heads, head int) int { p := packLanes(heads); return head/p*4*p + head%p }

func packAttentionGeneric(a *AttentionPack) {
	n, p := packRow(a.Heads), packLanes(a.Heads)
	x := a.Work[:a.Width]
	for r := range a.Rows {
		for k := range a.Heads {
			to := a.Packed[r*n+packPlace(a.Heads, k):]
			to[0] = a.Right.F32[r*a.Right.Stride+k]
			to[p] = a.Max.F32[r*a.Max.Stride+k]
			to[2*p] = a.Inv.F32[r*a.Inv.Stride+k]
			a.Dst.widen(x, r, k*a.Width)
			to[3*p] = a.DDst.dot(x, r, k*a.Width)
		}
	}
}

// AttendGrad computes a.
func AttendGrad(level Level, a *AttentionGrad) {
	if a.Rows == 0 || a.Heads*a.Width == 0 || a.Score == nil && attendGradFast(level, a) {
		return
	}
	attendGradGeneric(a)
}

func attendGradGeneric(a *AttentionGrad) {
	cols := a.Heads * a.Width
	z, acc := a.Work[:cols], a.Work[cols:2*cols]
	for r := range a.Rows {
		a.Z.widen(z, r, 0)
		clear(acc)
		dleft := a.DLeft.F32[r*a.DLeft.Stride:][:a.Heads]
		clear(dleft)
		left := a.Left.F32[r*a.Left.Stride:][:a.Heads]
		for e := a.Ptr[r]; e < a.Ptr[r+1]; e++ {
			a.gradEntry(int(a.Index[e]), r, int(a.Perm[e]), z, acc, left, dleft)
		}
		a.DZ.put(acc, 1, false, r, 0)
	}
}

// gradEntry adds the part of the entry from source r to destination i.
func (a *AttentionGrad) gradEntry(i, r, place int, z, acc, left, dleft []float32) {
	n, p := packRow(a.Heads), packLanes(a.Heads)
	var key uint64
	if a.Drop.On {
		key = a.Keys[i]
	}
	for k := range a.Heads {
		from := a.Packed[i*n+packPlace(a.Heads, k):]
		s, slope := left[k]+from[0], float32(1)
		if a.Score != nil {
			s += a.Score[place*a.EdgeHeads+a.Drop.FirstHead+k]
		}
		if s <= 0 {
			slope = a.Slope
		}
		alpha := Exp(float32(s*slope)-from[p]) * from[2*p] // the conversion keeps compilers from fusing
		if alpha == 1 {
			slope = 0 // both terms of de, and so exactly zero: see tensor.Device.AttendGrad
		}
		c := alpha
		if a.Drop.On {
			c *= a.Drop.factor(key, a.Drop.source(r), k)
		}
		head := k * a.Width
		dot := a.DDst.dot(z[head:head+a.Width], i, head)
		a.DDst.addTo(acc[head:head+a.Width], c, i, head)
		de := slope * (c*dot - alpha*from[3*p])
		dleft[k] += de
		if a.Sums != nil {
			a.Sums[i*a.EdgeHeads+a.Drop.FirstHead+k] += de
		} else {
			a.Edge[place*a.EdgeHeads+a.Drop.FirstHead+k] = de
		}
	}
}

// Exp is e to the x for x not above 88, to 2 units in the last place: 2^n · P(r), x =
// n·ln 2 + r with |r| <= ln 2 / 2. It is what the vector code computes.
func Exp(x float32) float32 {
	if x < expLow {
		return 0
	}
	n := float32(math.RoundToEven(float64(x * math.Log2E)))
	r := x - n*ln2High
	r -= n * ln2Low
	p := float32(expPoly[0])
	for _, c := range expPoly[1:] {
		p = p*r + c
	}
	return float32(math.Ldexp(float64(p), int(n)))
}

const (
	expLow  = -104
	ln2High = 0.693145751953125 // ln 2 in so few bits that n·ln2High is exact
	ln2Low  = 1.428606765330187e-06
)

// expPoly is e^r, highest power first.
var expPoly = [...]float32{1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1, 1}
