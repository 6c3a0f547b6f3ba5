package p3

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	"starling/coflow"
	"starling/nn"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// The pipeline over batches (--pipeline D, section 3.3 of the paper). In the step of batch t the first layer's products
// of batch t+D begin, with the weights as they are, and travel while t's are waited for and under the rest of its step:
//
//	step t      begin product t+D │ finish product t │ other layers forward │ backward │ update
//	step t+1    begin product t+1+D │ finish product t+1, whose messages have had D steps to arrive …
//
// So the first layer of batch b is computed with the weights of step max(0, b-D) of its epoch: its weights are stale by
// D updates, all others are fresh. Its gradient is the product's, which is linear in the weights and so does not depend
// on them. An epoch ends with an empty pipeline. Without a pipeline (D = 0) every gradient is one worker's.

// product is a product of a batch under way: this worker's part, and others' in messages.
type product struct {
	mine    tensor.Matrix
	in, out [][]byte
	pending []*wire.Pending
}

// compute fills y with a product over the batch at hand, and begins it for those to come.
func (s *split) compute(y tensor.Matrix, rows func(f *firstBlock) int, part func(f *firstBlock, to tensor.Matrix)) {
	number := s.next
	s.next++
	b := s.batch
	if p := s.kept(b).products; number >= len(p) {
		s.asOf(b, func() { s.begin(b, number, y.Cols, rows, part) })
	}
	if s.ahead != nil {
		for _, after := range s.ahead() {
			if number >= len(s.kept(after).products) {
				s.asOf(after, func() { s.begin(after, number, y.Cols, rows, part) })
			}
		}
	}
	s.finish(y, s.kept(b).products[number])
	if p := s.kept(b).products; s.next == s.products {
		s.free, s.kept(b).products = append(s.free, p...), p[:0]
	}
}

// begin computes this worker's part of a product over the blocks of all workers and sends others theirs.
func (s *split) begin(b *batch.Batch, number, cols int, rows func(f *firstBlock) int,
	part func(f *firstBlock, to tensor.Matrix)) {
	end, key, kept := s.site.End, splitKey(b, stepProduct+number, coflow.Rows, false), s.kept(b)
	p := s.newProduct()
	for _, q := range s.others() {
		n := cols * rows(kept.blocks[end.Rank()]) * s.number()
		p.in[q] = slices.Grow(p.in[q][:0], n)[:n]
		p.pending = append(p.pending, end.Recv(q, key, wire.Activation, p.in[q]))
	}
	for _, q := range s.others() {
		theirs := s.dev.Scratch(s.dev.Type(), rows(kept.blocks[q]), cols)
		part(kept.blocks[q], theirs)
		p.out[q] = slices.Grow(p.out[q][:0], int(theirs.Bytes()))[:theirs.Bytes()]
		s.dev.Pack(p.out[q], theirs, tensor.Packing{})
		s.dev.Free(theirs)
		p.pending = append(p.pending, end.Send(q, key, wire.Activation, p.out[q]))
	}
	p.mine = s.dev.Scratch(s.dev.Type(), rows(kept.blocks[end.Rank()]), cols)
	part(kept.blocks[end.Rank()], p.mine)
	kept.products = append(kept.products, p)
}

// newProduct has memory that is used again.
func (s *split) newProduct() *product {
	if n := len(s.free); n > 0 {
		p := s.free[n-1]
		s.free, p.pending = s.free[:n-1], p.pending[:0]
		return p
	}
	n := s.site.End.Size()
	return &product{in: make([][]byte, n), out: make([][]byte, n)}
}

// finish adds up the partial sums of all workers, in the order of ranks, so that the sum has the same
// bits in every run.
func (s *split) finish(y tensor.Matrix, p *product) {
	s.wait(p.pending)
	sum, part := s.dev.Scratch(s.dev.Type(), y.Rows, y.Cols), s.dev.Scratch(s.dev.Type(), y.Rows, y.Cols)
	s.dev.Zero(sum)
	for q, message := range p.in {
		add := p.mine
		if q != s.site.End.Rank() {
			if s.err == nil && !s.site.MemoryOnly {
				s.dev.Unpack(part, message, tensor.Packing{})
			}
			add = part
		}
		s.dev.Combine(sum, 1, sum, 1, add)
	}
	s.dev.Copy(y, sum)
	s.dev.Free(sum)
	s.dev.Free(part)
	s.dev.Free(p.mine)
	p.mine = tensor.Matrix{}
}

// version is what this worker's rows of the first layer's weights were before a step of an epoch.
type version struct {
	epoch, number int
	rows          []byte
}

// remember keeps the weights at hand, which batches to come begin with.
func (s *split) remember() {
	if s.delay == 0 {
		return
	}
	s.versions = append(s.needed(s.batch.Epoch, s.batch.Number), version{s.batch.Epoch, s.batch.Number, s.pack(nil)})
}

// needed are the versions that a batch of an epoch, or one after it, may begin with.
func (s *split) needed(epoch, number int) []version {
	return slices.DeleteFunc(s.versions, func(v version) bool { return v.epoch != epoch || v.number < number-s.delay })
}

// from is the place of the version that a batch begins with, that of the first step that it may begin in; -1: none.
func (s *split) from(number int) int {
	return slices.IndexFunc(s.versions, func(v version) bool { return v.number >= number-s.delay })
}

// asOf has a batch's product begin with the weights that it has in a run that was not resumed.
func (s *split) asOf(b *batch.Batch, begin func()) {
	if at := s.from(b.Number); at >= 0 && at < len(s.versions)-1 { // the last is at hand
		now := s.pack(nil)
		s.unpack(s.versions[at].rows)
		defer s.unpack(now)
	}
	begin()
}

// pack is this worker's rows of the first layer's weights.
func (s *split) pack(b []byte) []byte {
	for _, p := range s.own {
		m := s.slice(p.Value)
		at := len(b)
		b = slices.Grow(b, int(m.Bytes()))[:at+int(m.Bytes())]
		s.dev.Pack(b[at:], m, tensor.Packing{})
	}
	return b
}

// unpack puts what pack gave in their place.
func (s *split) unpack(b []byte) {
	for _, p := range s.own {
		m := s.slice(p.Value)
		s.dev.Unpack(m, b[:m.Bytes()], tensor.Packing{})
		b = b[m.Bytes():]
	}
}

// owned are the weights that a model's products are with.
func owned(m *nn.Model) (list []*nn.Param) {
	for _, p := range m.SplitProducts() {
		list = append(list, p.Weights...)
	}
	return list
}

// keptVersions are what a checkpoint has of the weights that batches to come begin with.
const keptVersions = "first layer's weights of step "

// keep is what a run that is resumed begins its first batches with.
func (s *split) keep() (list []nn.Tensor) {
	size := s.site.Dev.Type().Size()
	for _, v := range s.versions {
		data := []float64{float64(v.epoch), float64(v.number)}
		for at := 0; at < len(v.rows); at += size {
			data = append(data, number(v.rows[at:], size))
		}
		list = append(list, nn.Tensor{Name: keptVersions + strconv.Itoa(v.number), Shape: []int{len(data)},
			F64: size == 8, Data: data})
	}
	return list
}

// restore takes what keep gave.
func (s *split) restore() error {
	from := s.site.Opt.Resume
	if from == nil || s.delay == 0 || from.Batch == 0 {
		return nil
	}
	for _, t := range from.Caches {
		if !strings.HasPrefix(t.Name, keptVersions) {
			continue
		}
		if data := t.Numbers(); len(data) >= 2 && int(data[0]) == from.Epoch {
			v := version{epoch: int(data[0]), number: int(data[1])}
			for _, x := range data[2:] {
				v.rows = batch.AppendNumber(v.rows, x, s.site.Dev.Type().Size())
			}
			s.versions = append(s.versions, v)
		}
	}
	if len(s.versions) == 0 {
		return train.Mistake("the checkpoint has no weights of this worker that --pipeline %d begins with: a run goes "+
			"on within an epoch with the same partition, workers and --pipeline", s.delay)
	}
	return nil
}

// number is the first in b, of a size.
func number(b []byte, size int) float64 {
	if size == 8 {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
}

// early is a source that takes batches from another some steps before they are trained on, within an epoch.
type early struct {
	batch.Source
	delay, steps int
	left         int // batches of the epoch at hand that were not taken
	queue        []*batch.Batch
}

// Next is the next batch; those to come are taken.
func (e *early) Next() *batch.Batch {
	for first := len(e.queue) == 0; first || len(e.queue) <= e.delay && e.left > 0; first = false {
		if e.left == 0 {
			e.left = e.steps
		}
		e.left--
		b := e.Source.Next()
		e.queue = append(e.queue, b)
		if b.Err != nil {
			break
		}
	}
	b := e.queue[0]
	e.queue = e.queue[1:]
	return b
}

// coming are the batches after the one at hand that are there and have a step.
func (e *early) coming() (list []*batch.Batch) {
	for _, b := range e.queue {
		if b.Err == nil && !b.Empty {
			list = append(list, b)
		}
	}
	return list
}
