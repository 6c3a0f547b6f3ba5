package nn

import "starling/tensor"

// untransformed is what layers over relations send: their input as it is. Weights differ by relation, so that a row
// that several relations need is sent once and transformed where it arrives.
type untransformed struct {
	in int // width of the input

	p         *Pass
	x         Input
	sent      int  // rows that are our own
	shared    bool // msg is x itself
	msg, dmsg tensor.Matrix
}

func (u *untransformed) Width() int                 { return u.in }
func (u *untransformed) Over() Form                 { return Form{Related: true} }
func (u *untransformed) Sent() []tensor.Matrix      { return []tensor.Matrix{u.msg} }
func (u *untransformed) SentGrads() []tensor.Matrix { return []tensor.Matrix{u.dmsg} }

// take takes the input of a layer, which has dst rows of output.
func (u *untransformed) take(p *Pass, layer int, x Input) (dst int) {
	dst, src := p.Agg.Rows(layer)
	rows := p.Agg.MessageRows(layer)
	u.p, u.x, u.sent = p, x, src
	if u.shared = rows == x.Rows; u.shared {
		u.msg = x.Matrix
	} else {
		u.msg = p.Dev.Scratch(p.rowType(), rows, u.in)
	}
	return dst
}

func (u *untransformed) send(p *Pass, lo, hi int) {
	if !u.shared {
		p.Dev.Copy(u.msg.Slice(lo, hi), u.x.Slice(lo, hi))
	}
}

func (u *untransformed) freeMessages(p *Pass) {
	if !u.shared {
		freeAll(p, &u.msg)
	}
	u.msg = tensor.Matrix{}
}

// forget frees what the backward pass made.
func (u *untransformed) forget(p *Pass) {
	freeAll(p, &u.dmsg)
	u.x, u.p = Input{}, nil
}
