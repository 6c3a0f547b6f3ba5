package tensor

import (
	"fmt"

	"starling/tensor/simd"
)

// Activate computes dropout(act(src + bias)).
func (c *CPU) Activate(dst, src Matrix, after After) {
	sameShape("Activate", dst, src)
	noF64("Activate", dst, src)
	c.mapRows(dst, src, Matrix{}, after.steps("Activate", dst))
}

// activateSerial is Activate on the calling goroutine, for kernels that finish a
// few rows while these are in cache. after belongs to exactly these rows.
func (c *CPU) activateSerial(dst, src Matrix, after After) {
	m := after.steps("Activate", dst)
	m.Dst, m.Src, m.Rows, m.Cols = dst.block(0), src.block(0), dst.Rows, dst.Cols
	m.Run(c.level)
}

// steps are the steps of a map that do what after says to the rows of dst.
func (a After) steps(op string, dst Matrix) simd.Map {
	return simd.Map{
		Bias: a.Bias.vector(op, "bias", dst.Cols),
		Act:  uint8(a.Act),
		Drop: a.Dropout.draws(op, dst.Rows),
	}
}

// draws are the dropout's draws for all rows of a matrix.
func (d Dropout) draws(op string, rows int) simd.Drop {
	if d.P == 0 {
		return simd.Drop{}
	}
	s := simd.Drop{
		On: true, Key: d.Key, First: d.First, Threshold: d.threshold(),
		Scale: float32(d.scale()), Keep: float32(1 / d.scale()),
	}
	if !d.IDs.IsZero() {
		if len(d.IDs.v) != rows {
			panic(fmt.Sprintf("tensor: %s: dropout has %d ids for %d rows", op, len(d.IDs.v), rows))
		}
		if rows > 0 {
			s.IDs = &d.IDs.v[0]
		}
	}
	return s
}

// ActivateGrad computes the gradient before an activation.
func (c *CPU) ActivateGrad(dx, dy, y Matrix, after After, dbias Matrix) {
	const op = "ActivateGrad"
	sameShape(op, dx, dy, y)
	noF64(op, dx, dy, y)
	g := simd.ActGrad{Act: uint8(after.Act), Drop: after.Dropout.draws(op, dx.Rows)}
	if dx.Rows*dx.Cols == 0 {
		return
	}
	draws := g.Drop.On && after.Act != ReLU
	k := repeats(foldRow, dx.Cols)
	if draws {
		k = c.keptRows(dx.Cols)
		if dx.Cols >= 32 && dx.Cols*dx.dtype.Size()%64 == 0 && dx.Bytes() >= streamBytes {
			k = 1 // whole lines from memory: the time that draws take, nothing is read
		}
	}
	ms := []Matrix{dx, dy, y}
	run := func(ms []Matrix, lo, hi int, sums *float32) {
		part := g
		part.Dy, part.Y = ms[1].block(lo), ms[2].block(lo)
		part.Dx = ms[0].result(lo, part.Dy, part.Y)
		part.Rows, part.Cols = hi-lo, ms[0].Cols
		if draws {
			drop, free := c.dropRows(g.Drop, dx.Rows, dx.Cols, ms[0], lo, hi)
			defer free()
			part.Drop = drop
		}
		part.Sums = sums
		part.Run(c.level)
	}
	if dbias.IsZero() {
		if rest := fold(k, ms); rest != nil {
			run(rest, 0, rest[0].Rows, nil)
		}
		c.byRows(ms, func(lo, hi int) { run(ms, lo, hi, nil) })
		return
	}
	dbias.vector(op, "dbias", dx.Cols)
	c.sumColumns(k, ms, [][]float32{dbias.f32}, func(ms []Matrix, lo, hi int, sums []float32) {
		run(ms, lo, hi, &sums[0])
	})
}
