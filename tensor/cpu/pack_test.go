package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"starling/tensor"
	"starling/tensor/ref"
)

// TestPackKeepsTheDifference: what arrives and what is left behind make up what was
// sent, the rest is at most half a step, and the CPU's rows are the reference's to
// a step. Rows of zeros, tiny rows, rows out of order and bfloat16 ones are among them.
func TestPackKeepsTheDifference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	d, ref := New(2), ref.New()
	defer d.Close()
	for _, f := range []tensor.Packed{tensor.PackBF16, tensor.PackInt8} {
		for _, shape := range [][2]int{{0, 3}, {1, 1}, {5, 7}, {300, 129}, {700, 64}} {
			for _, kind := range []DType{F32, BF16} {
				rows, cols := shape[0], shape[1]
				name := fmt.Sprintf("%v of %dx%d %v", f, rows, cols, kind)
				src, src64 := twin(r, d, ref, kind, rows, cols, 2)
				if rows > 4 {
					d.Zero(src.Slice(1, 2))
					ref.Zero(src64.Slice(1, 2))
					d.Combine(src.Slice(2, 3), 1e-36, src.Slice(2, 3), 0, Matrix{})
					ref.Combine(src64.Slice(2, 3), 1e-36, src64.Slice(2, 3), 0, Matrix{})
				}
				var at Index
				extra := 0
				if rows > 0 && r.IntN(2) == 1 {
					extra = 5
					var list []uint32
					for _, p := range r.Perm(rows + extra)[:rows] {
						list = append(list, uint32(p))
					}
					at = tensor.Indices(d, list)
				}
				rest, rest64 := twin(r, d, ref, F32, rows+extra, cols, 0)
				d.Combine(rest, 0.01, rest, 0, Matrix{})
				ref.Combine(rest64, 0.01, rest64, 0, Matrix{})
				before := numbers(rest)
				bytes, bytes64 := make([]byte, rows*f.RowBytes(cols)), make([]byte, rows*f.RowBytes(cols))
				d.Pack(bytes, src, Packing{Form: f, Residual: rest, At: at})
				ref.Pack(bytes64, src64, Packing{Form: f, Residual: rest64, At: at})
				got, got64 := d.New(F32, rows, cols), ref.New(F64, rows, cols)
				d.Unpack(got, bytes, Packing{Form: f})
				ref.Unpack(got64, bytes64, Packing{Form: f})
				for k := range rows {
					p := placeOf(entriesOf(at), k)
					whole, top := numbers(src.Slice(k, k+1)), 0.0
					for c := range whole {
						whole[c] += before[p*cols+c]
						top = max(top, math.Abs(whole[c]))
					}
					for c, sum := range whole {
						step := top / 127
						if f == tensor.PackBF16 {
							step = math.Abs(sum) / 128
						}
						x, left := float64(rowOf(got, k)[c]), float64(rowOf(rest, p)[c])
						if math.Abs(x+left-sum) > 1e-6*top+1e-37 || math.Abs(left) > 0.5001*step+1e-30 {
							t.Fatalf("%s: %g became %g and leaves %g", name, sum, x, left)
						}
						if math.Abs(x-row64Of(got64, k)[c]) > 1.001*step+1e-30 {
							t.Fatalf("%s: %g, the reference has %g", name, x, row64Of(got64, k)[c])
						}
					}
				}
				narrow := d.New(BF16, rows, cols)
				d.Unpack(narrow, bytes, Packing{Form: f})
				same(t, name+" to bfloat16", narrow, got64, 0.02)
				d.Pack(bytes, src, Packing{Form: f, Residual: Matrix{}, At: Index{}})
			}
		}
	}
}

// TestUnpackedRowsStay: rows that are copied as they are come back to the bit.
func TestUnpackedRowsStay(t *testing.T) {
	host := make([]float64, 35)
	for i := range host {
		host[i] = float64(i) - 17.25
	}
	for _, d := range []tensor.Device{ref.New(), New(1)} {
		src, got := d.New(d.RowType(BF16), 5, 7), d.New(d.RowType(BF16), 5, 7)
		d.Upload(src, host)
		workspace, bytes := d.Staging(tensor.Unpacked.BytesOf(src.Slice(1, 4)))
		d.Pack(bytes, src.Slice(1, 4), Packing{Form: tensor.Unpacked, Residual: Matrix{}, At: Index{}})
		d.Unpack(got.Slice(1, 4), bytes, Packing{Form: tensor.Unpacked})
		for i, x := range numbers(got) {
			if want := numbers(src)[i]; i >= 7 && i < 28 && x != want || (i < 7 || i >= 28) && x != 0 {
				t.Errorf("%T: number %d is %g, was %g", d, i, x, want)
			}
		}
		d.Free(workspace)
		d.Close()
	}
}

// TestPackFeedsErrorsBack: the mean of what arrives over many rounds is the mean of
// what was sent, however coarse the steps.
func TestPackFeedsErrorsBack(t *testing.T) {
	const cols, rounds = 33, 2000
	r := rand.New(rand.NewPCG(3, 9))
	for _, d := range []tensor.Device{ref.New(), New(1)} {
		for _, f := range []tensor.Packed{tensor.PackBF16, tensor.PackInt8} {
			src, _ := twin(r, d, ref.New(), d.Type(), 1, cols, 0)
			rest := d.New(d.Type(), 1, cols)
			got, bytes := d.New(d.Type(), 1, cols), make([]byte, f.RowBytes(cols))
			sent, sum, once := make([]float64, cols), make([]float64, cols), 0.0
			for n := range rounds {
				d.Combine(src, 1.0001, src, 0, Matrix{})
				d.Pack(bytes, src, Packing{Form: f, Residual: rest, At: Index{}})
				d.Unpack(got, bytes, Packing{Form: f})
				for c, x := range numbers(got) {
					y := numbers(src)[c]
					sum[c], sent[c] = sum[c]+x, sent[c]+y
					if n == 0 {
						once = max(once, math.Abs(x-y))
					}
				}
			}
			for c := range sum {
				if off := math.Abs(sum[c]-sent[c]) / rounds; off > 2*once/rounds+1e-6 {
					t.Errorf("%T %v: off by %g on average after %d rounds, by up to %g in one", d, f, off, rounds, once)
				}
			}
		}
		d.Close()
	}
}

// TestPackOfNoNumbers: what is not finite arrives as not finite.
func TestPackOfNoNumbers(t *testing.T) {
	for _, d := range []tensor.Device{ref.New(), New(1)} {
		for _, f := range []tensor.Packed{tensor.PackBF16, tensor.PackInt8} {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				src, got := d.New(d.Type(), 2, 3), d.New(d.Type(), 2, 3)
				d.Upload(src, []float64{1, bad, 2, 3, 4, 5})
				bytes := make([]byte, 2*f.RowBytes(3))
				d.Pack(bytes, src, Packing{Form: f, Residual: d.New(d.Type(), 2, 3), At: Index{}})
				d.Unpack(got, bytes, Packing{Form: f})
				if v := numbers(got); !math.IsNaN(v[1]) && !math.IsInf(v[1], 0) || math.Abs(v[5]-5) > 0.1 {
					t.Errorf("%T %v: %g arrives as %v", d, f, bad, v)
				}
			}
		}
		d.Close()
	}
}

func BenchmarkPack(b *testing.B) {
	d := New(0)
	defer d.Close()
	src, rest := d.New(F32, 20000, 128), d.New(F32, 20000, 128)
	for _, f := range []tensor.Packed{tensor.PackBF16, tensor.PackInt8} {
		bytes := make([]byte, 20000*f.RowBytes(128))
		b.Run("format="+f.String(), func(b *testing.B) {
			b.SetBytes(src.Bytes())
			for range b.N {
				d.Pack(bytes, src, Packing{Form: f, Residual: rest, At: Index{}})
			}
		})
		b.Run("format="+f.String()+"/unpack", func(b *testing.B) {
			b.SetBytes(src.Bytes())
			for range b.N {
				d.Unpack(src, bytes, Packing{Form: f})
			}
		})
	}
}
