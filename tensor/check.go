package tensor

import "fmt"

// Need panics with a message when a caller broke an operation's rule.
func Need(ok bool, format string, args ...any) {
	if !ok {
		panic("tensor: " + fmt.Sprintf(format, args...))
	}
}

// NeedShape wants a matrix of a shape and of one of these types; of any where there are none.
func NeedShape(name string, m Matrix, rows, cols int, types ...DType) {
	Need(m.Rows == rows && m.Cols == cols && m.hasType(types), "%s is %v, want %dx%d %v", name, m, rows, cols, types)
}

func (m Matrix) hasType(types []DType) bool {
	for _, t := range types {
		if m.dtype == t {
			return true
		}
	}
	return len(types) == 0
}

// NeedSameShape wants all matrices that are given to have the shape of the first.
func NeedSameShape(op string, first Matrix, others ...Matrix) {
	for _, m := range others {
		Need(m.IsZero() || m.Rows == first.Rows && m.Cols == first.Cols, "%s: %v beside %v", op, m, first)
	}
}

// NeedMatMul wants sizes that fit.
func NeedMatMul(dst, a, b Matrix, op MatMul) {
	m, ka := a.Rows, a.Cols
	if op.TransA {
		m, ka = ka, m
	}
	kb, n := b.Rows, b.Cols
	if op.TransB {
		kb, n = n, kb
	}
	Need(ka == kb && dst.Rows == m && dst.Cols == n,
		"MatMul of %v and %v into %v (TransA %v, TransB %v): the sizes do not fit", a, b, dst, op.TransA, op.TransB)
	bias := op.Epilogue.Bias
	Need(bias.IsZero() || bias.Cols == n, "MatMul into %d columns with a bias of %d", n, bias.Cols)
}

// NeedPack wants bytes and residuals that fit the rows.
func NeedPack(dst []byte, src Matrix, p Packing) {
	needMask("Pack", src, p)
	if p.Form == PackNonZero {
		return
	}
	Need(len(dst) == p.Form.BytesOf(src), "Pack: %d bytes of %v for %v", len(dst), p.Form, src)
	r := p.Residual
	Need(r.IsZero() || p.Form != Unpacked, "Pack: a residual of unpacked rows")
	Need(r.IsZero() || r.Cols == src.Cols, "Pack: the residual is %v beside %v", r, src)
	Need(r.IsZero() || !p.At.IsZero() || r.Rows == src.Rows, "Pack: the residual is %v beside %v", r, src)
	Need(p.At.IsZero() || p.At.Len() == src.Rows, "Pack: %d places for %v", p.At.Len(), src)
}

// NeedUnpack wants bytes that fit the rows.
func NeedUnpack(dst Matrix, src []byte, p Packing) {
	needMask("Unpack", dst, p)
	switch {
	case p.Form != PackNonZero:
		Need(len(src) == p.Form.BytesOf(dst), "Unpack: %d bytes of %v for %v", len(src), p.Form, dst)
	case p.Mask == nil:
		Need(len(src) >= BitBytes(dst.Rows, dst.Cols), "Unpack: %d bytes where the bits of %v alone are more", len(src), dst)
	}
}

func needMask(op string, m Matrix, p Packing) {
	Need(p.Mask == nil || p.Form == PackNonZero && len(p.Mask) == BitBytes(m.Rows, m.Cols),
		"%s: a mask of %d bytes for %v as %v", op, len(p.Mask), m, p.Form)
}
