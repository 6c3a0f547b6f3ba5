package p3

import (
	"slices"

	"starling/coflow"
	"starling/nn"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// A worker has the gradient of those rows of the first layer's weights that its columns meet, whole, and no other needs
// them: they stay out of the all-reduce, and each worker's optimiser updates its own rows. The other rows mean nothing
// during an epoch. When it ends, and before a state is saved, workers give each other their rows, with the optimiser's
// state where states are saved, so that models are measured and checkpoints are as with every other strategy.

// settle gives all workers the rows of all.
func (m *modelParallel) settle(f *train.Loop, epoch, number int) error {
	end, dev := m.p.Site.End, f.Dev
	if end.Size() == 1 {
		return nil
	}
	all := m.settles(f.Model)
	rows := func(q int) func(w tensor.Matrix) tensor.Matrix {
		return func(w tensor.Matrix) tensor.Matrix { return w.Slice(w.Rows*q/end.Size(), w.Rows*(q+1)/end.Size()) }
	}
	var out []byte
	each(all, rows(end.Rank()), func(w tensor.Matrix) {
		at := len(out)
		out = slices.Grow(out, int(w.Bytes()))[:at+int(w.Bytes())]
		dev.Pack(out[at:], w, tensor.Packing{})
	})
	key := wire.Key{Coflow: coflow.ID{Epoch: uint32(epoch), Batch: uint32(number), Layer: 0, Type: coflow.Params}}
	in, others := make([][]byte, end.Size()), batch.Others(end.Rank(), 0, end.Size())
	var pending []*wire.Pending
	for _, q := range others {
		bytes := 0
		each(all, rows(q), func(w tensor.Matrix) { bytes += int(w.Bytes()) })
		in[q] = make([]byte, bytes)
		pending = append(pending, end.Recv(q, key, wire.Parameter, in[q]), end.Send(q, key, wire.Parameter, out))
	}
	if err := batch.WaitAll(m.p.Site.Ctx, pending); err != nil || m.p.Site.MemoryOnly {
		return err
	}
	for _, q := range others {
		b := in[q]
		each(all, rows(q), func(w tensor.Matrix) {
			dev.Unpack(w, b[:w.Bytes()], tensor.Packing{})
			b = b[w.Bytes():]
		})
	}
	return nil
}

// settles are the matrices that workers give each other rows of.
func (m *modelParallel) settles(model *nn.Model) (list []tensor.Matrix) {
	for _, p := range owned(model) {
		list = append(list, p.Value)
		if m.p.Site.Opt.Save != nil {
			list = append(list, p.State()...)
		}
	}
	return list
}

// each calls f with rows of matrices, of those that have some.
func each(list []tensor.Matrix, rows func(w tensor.Matrix) tensor.Matrix, f func(w tensor.Matrix)) {
	for _, w := range list {
		if r := rows(w); r.Rows > 0 {
			f(r)
		}
	}
}

// settled is what this worker sends to settle.
func (m *modelParallel) settled(model *nn.Model) wire.Bytes {
	out, s := wire.Bytes{}, m.p.Site
	bytes, copies := int64(0), int64(1)
	if s.Opt.Save != nil {
		copies += int64(s.Opt.Optim.States())
	}
	me, n := s.End.Rank(), s.End.Size()
	for _, p := range owned(model) {
		rows := p.Value.Rows*(me+1)/n - p.Value.Rows*me/n
		bytes += copies * int64(rows*p.Value.Cols*p.Value.Type().Size())
	}
	for _, q := range batch.Others(me, 0, n) {
		out.Add(wire.Class{Kind: wire.Parameter, Layer: 0, Link: s.End.Link(q)}, bytes)
	}
	return out
}
