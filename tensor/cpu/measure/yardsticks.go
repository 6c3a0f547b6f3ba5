package measure

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// everywhere calls body for pieces 0..n-1 on as many cores as the device has.
func (b *bench) everywhere(n int, body func(piece int)) {
	var next atomic.Int64
	var done sync.WaitGroup
	for range b.Threads() {
		done.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				body(int(i - 1))
			}
		})
	}
	done.Wait()
}

// fma multiplies and adds in registers; beside it s moves the bytes of the matrices.
func (b *bench) fma(s yardstick, ms ...tensor.Matrix) yardstick {
	const steps = 2_000
	bytes := 0.
	for _, m := range ms {
		bytes += float64(m.Bytes())
	}
	return yardstick{name: "FMA loop", unit: "FLOP/s", run: func(work float64) {
		pieces := max(1, int(work/float64(simd.FMALoop(b.Level(), steps))))
		b.everywhere(pieces, func(int) { simd.FMALoop(b.Level(), steps) })
	}, traffic: func() { s.run(bytes) }}
}

// gather reads the rows of m that the list names.
func (b *bench) gather(m tensor.Matrix, list []uint32) yardstick {
	const piece = 4096
	rows := m.HostBytes()
	return yardstick{name: "gather", unit: "B/s", run: func(float64) {
		b.everywhere((len(list)+piece-1)/piece, func(i int) {
			simd.GatherRows(b.Level(), rows, len(rows)/m.Rows, list[i*piece:min(len(list), (i+1)*piece)])
		})
	}}
}

// stream moves bytes in and out as a kernel with these numbers of inputs and outputs does: it
// reads, copies, or adds two to a third.
func (b *bench) stream(inputs, outputs int) yardstick {
	const piece = 32 << 10 // numbers
	n := max(piece, b.Rows*b.Width*b.typ.Size()/4)
	var of [3][]float32
	for i := range of {
		of[i] = floats(b.filled(tensor.F32, 1, n).HostBytes())
	}
	each := map[bool]int{true: 4, false: 4 * (inputs + outputs)}[outputs == 0]
	return yardstick{name: "stream", unit: "B/s", run: func(work float64) {
		b.everywhere(int(work)/each/piece, func(i int) {
			lo := i * piece % (n - piece + 1)
			hi := lo + piece
			switch {
			case outputs == 0:
				simd.StreamRead(b.Level(), of[i*piece/n%inputs][lo:hi])
			case inputs == 1:
				simd.StreamCopy(b.Level(), of[0][lo:hi], of[1][lo:hi])
			default:
				simd.StreamTriad(b.Level(), of[0][lo:hi], of[1][lo:hi], of[2][lo:hi])
			}
		})
	}}
}

// floats sees bytes as the numbers that yardsticks move.
func floats(b []byte) []float32 { return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4) }
