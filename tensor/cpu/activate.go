package cpu

import (
	"fmt"

	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// Activate computes dropout(act(src + bias)).
func (c *Device) Activate(dst, src Matrix, epi Epilogue) {
	tensor.NeedSameShape("Activate", dst, src)
	noF64("Activate", dst, src)
	c.mapRows(dst, src, Matrix{}, epilogueSteps(epi, "Activate", dst))
}

// activateSerial is Activate on the calling goroutine, for kernels that finish a
// few rows while these are in cache. after belongs to exactly these rows.
func (c *Device) activateSerial(dst, src Matrix, epi Epilogue) {
	m := epilogueSteps(epi, "Activate", dst)
	m.Dst, m.Src, m.Rows, m.Cols = blockOf(dst, 0), blockOf(src, 0), dst.Rows, dst.Cols
	m.Run(c.level)
}

// steps are the steps of a map that do what after says to the rows of dst.
func epilogueSteps(e Epilogue, op string, dst Matrix) simd.Map {
	return simd.Map{
		Bias: vectorOf(e.Bias, op, "bias", dst.Cols),
		Act:  uint8(e.Act),
		Drop: dropOf(e.Dropout, op, dst.Rows),
	}
}

// draws are the dropout's draws for all rows of a matrix.
func dropOf(d Dropout, op string, rows int) simd.Drop {
	if d.P == 0 {
		return simd.Drop{}
	}
	s := simd.Drop{
		On: true, Key: d.Key, First: d.First, Threshold: d.Threshold(),
		Scale: float32(d.Scale()), Keep: float32(1 / d.Scale()),
	}
	if !d.IDs.IsZero() {
		if len(entriesOf(d.IDs)) != rows {
			panic(fmt.Sprintf("tensor: %s: dropout has %d ids for %d rows", op, len(entriesOf(d.IDs)), rows))
		}
		if rows > 0 {
			s.IDs = &entriesOf(d.IDs)[0]
		}
	}
	return s
}

// ActivateGrad computes the gradient before an activation.
func (c *Device) ActivateGrad(dx, dy, y Matrix, epi Epilogue, dbias Matrix) {
	const op = "ActivateGrad"
	tensor.NeedSameShape(op, dx, dy, y)
	noF64(op, dx, dy, y)
	g := simd.ActGrad{Act: uint8(epi.Act), Drop: dropOf(epi.Dropout, op, dx.Rows)}
	if dx.Rows*dx.Cols == 0 {
		return
	}
	draws := g.Drop.On && epi.Act != ReLU
	k := repeats(foldRow, dx.Cols)
	if draws {
		k = c.keptRows(dx.Cols, g.Drop)
		if dx.Cols >= 32 && dx.Cols*dx.Type().Size()%64 == 0 && dx.Bytes() >= streamBytes {
			k = 1 // whole lines from memory: the time that draws take, nothing is read
		}
	}
	ms := []Matrix{dx, dy, y}
	run := func(ms []Matrix, lo, hi int, sums *float32) {
		part := g
		part.Dy, part.Y = blockOf(ms[1], lo), blockOf(ms[2], lo)
		part.Dx = resultOf(ms[0], lo, part.Dy, part.Y)
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
	vectorOf(dbias, op, "dbias", dx.Cols)
	c.sumColumns(k, ms, [][]float32{f32Of(dbias)}, func(ms []Matrix, lo, hi int, sums []float32) {
		run(ms, lo, hi, &sums[0])
	})
}
