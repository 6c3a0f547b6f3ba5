package exchange

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"starling/tensor"
	"starling/tensor/cpu"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// lending is a device whose matrices the other devices of a test read where they are.
type lending struct {
	tensor.Device
	lent *[]tensor.Matrix // of all devices
}

var _ tensor.Linker = (*lending)(nil)

func (d *lending) Hello() []byte          { return []byte{1} }
func (d *lending) Meet(int, []byte) error { return nil }
func (d *lending) Part(int)               {}
func (d *lending) Met(int) bool           { return true }
func (d *lending) After(f func())         { f() }

func (d *lending) Lend(t tensor.DType, rows, cols int) tensor.Matrix { return d.Scratch(t, rows, cols) }

func (d *lending) Refer(m tensor.Matrix) []byte {
	*d.lent = append(*d.lent, m)
	ref := make([]byte, tensor.ReferenceBytes)
	binary.LittleEndian.PutUint64(ref, uint64(len(*d.lent)-1))
	return ref
}

func (d *lending) Fetch(dst tensor.Matrix, _ int, ref []byte) error {
	d.Copy(dst, (*d.lent)[binary.LittleEndian.Uint64(ref)])
	return nil
}

// TestFailedWorkerKeepsLoans: a worker that fails, and computes on until it ends, does not change rows that a peer has
// yet to read.
func TestFailedWorkerKeepsLoans(t *testing.T) {
	const cols = 24
	parts := traintest.Cut(t, traintest.Communities(t, 90, false), "random", 2)
	ends := traintest.Ends(2)
	defer traintest.Close(ends)
	var lent []tensor.Matrix
	rows, halos := make([]*Rows, 2), make([]*Halo, 2)
	traintest.Each(2, func(k int) {
		w := workerOf(traintest.Site(parts[k], ends[k], train.Options{}))
		w.Dev = &lending{cpu.New(1), &lent}
		rows[k] = NewRows(w)
		a, _, err := OverHalo(w, rows[k])
		if err != nil {
			t.Error(err)
			return
		}
		rows[k].Begin(0, 0, true)
		halos[k] = a.Halo(0)
	})
	if t.Failed() {
		return
	}
	tag := Tag{Layer: 1, Kind: wire.Activation}
	send := func(k, epoch int, each float32) *Transfer {
		rows[k].Begin(epoch, 0, true)
		h, dev := halos[k], rows[k].W.Dev
		src := dev.New(tensor.F32, h.Src, cols)
		dev.Upload(src, slices.Repeat([]float32{each}, h.Src*cols))
		return rows[k].Exchange(tag, h, dev.New(tensor.F32, h.HaloRows(), cols), src).(*Transfer)
	}
	reads := send(1, 0, 1)
	send(0, 0, 1).keepLoan() // as Done does when the references have left
	ends[0].Fail(errors.New("unplugged"))
	send(0, 1, 2)
	reads.fetch()
	for i, x := range traintest.Numbers(reads.rows.W.Dev, reads.In) {
		if x != 1 {
			t.Fatalf("number %d of a row that was lent is %g, want 1", i, x)
		}
	}
}
