package cost

import (
	"math"
	"strings"
	"testing"
	"time"

	"starling/tensor"
	"starling/train/traintest"
)

// TestComputeText: rates read back as they were written, and mistakes say what is wanted.
func TestComputeText(t *testing.T) {
	c := Compute{GEMM: 40e9, SpMM: 2.5e9, Memory: 8e9, Op: 2e-6}
	if got, err := ParseCompute(c.String()); err != nil || got != c {
		t.Errorf("%q reads as %+v, %v", c.String(), got, err)
	}
	c.Send, c.Recv, c.Message = 1.5e9, 1.25e9, 8e-6
	if got, err := ParseCompute(c.String()); err != nil || got != c {
		t.Errorf("%q reads as %+v, %v", c.String(), got, err)
	}
	for _, text := range []string{"", "gemm=1", "gemm=1 spmm=1 memory=1 op=1us send=0", "gemm=1 spmm=1 memory=1 send=1",
		"gemm=0 spmm=1 memory=1 op=1us", "gemm=1 gemm=1 memory=1 op=1us",
		"gemm=1 spmm=1 memory=1 op=1", "gemm=1 spmm=1 memory=x op=1us", "flops=1 spmm=1 memory=1 op=1us"} {
		if _, err := ParseCompute(text); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestCharged: hand-computed charges of a product, a sum over neighbours and a copy. The
// numbers belong to the device below.
func TestCharged(t *testing.T) {
	plain := traintest.Ref()
	defer plain.Close()
	var got []float64
	d := Charged(plain, Compute{GEMM: 100, SpMM: 10, Memory: 16, Op: 1}, func(s float64) { got = append(got, s) })
	a, b, c := d.New(tensor.F64, 2, 3), d.New(tensor.F64, 3, 5), d.New(tensor.F64, 2, 5)
	d.Upload(a, []float64{1, 2, 3, 4, 5, 6})
	d.Upload(b, []float64{1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0})
	d.MatMul(c, a, b, tensor.MatMul{})
	adj := tensor.NewSparse(d, 2, 2, []int64{0, 1, 3}, []uint32{1, 0, 1}, nil)
	sum := d.New(tensor.F64, 2, 5)
	d.Aggregate(sum, adj, c, tensor.Aggregate{})
	d.Copy(c, sum)
	numbers := make([]float64, 10)
	d.Download(numbers, c)
	if numbers[0] != 4 || numbers[5] != 5 || numbers[7] != 9 {
		t.Errorf("numbers %v", numbers)
	}
	want := []float64{1 + 60.0/100, 1 + 15.0/10, 1 + 160.0/16}
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("charges %v, want %v", got, want)
		}
	}
}

// TestMeasureCompute: rates are positive on a clock that moves, and follow it.
func TestMeasureCompute(t *testing.T) {
	dev := traintest.Ref()
	defer dev.Close()
	now := time.Unix(0, 0)
	c := MeasureCompute(dev, Shape{Rows: 64, Degree: 2, In: 8, Hidden: 8}, func() time.Time {
		now = now.Add(10 * time.Millisecond)
		return now
	})
	if c.Op != 0.01 || c.GEMM <= 0 || c.SpMM <= 0 || c.Memory <= 0 {
		t.Errorf("%+v", c)
	}
}

// TestShared: each of two workers has half a machine.
func TestShared(t *testing.T) {
	whole := Compute{GEMM: 4, SpMM: 6, Memory: 8, Op: 1, Int8: 14, BF16: 16, Send: 10, Recv: 12, Message: 3}
	if got := whole.Shared(2); got != (Compute{GEMM: 2, SpMM: 3, Memory: 4, Op: 2, Int8: 7, BF16: 8, Send: 5, Recv: 6,
		Message: 6}) {
		t.Errorf("%+v", got)
	}
}

// TestSending: a host of two cores sends twice what one does, and the parts of a byte and a
// message add up to the times they were taken from; measured over loopback both are there.
func TestSending(t *testing.T) {
	want := 10e-6 + float64(longMessage-shortMessage)*1e-9
	s := fromTimes(10e-6, want)
	if long := 2 * (s.Message + longMessage*s.Byte); math.Abs(long-want) > 1e-12 {
		t.Errorf("%+v: a long message takes %g s, want %g", s, long, want)
	}
	c := Compute{GEMM: 1}.WithSending(Sending{Byte: 0.5, Message: 4}, 2)
	if c != (Compute{GEMM: 1, Send: 4, Recv: 4, Message: 2}) {
		t.Errorf("%+v", c)
	}
	now := 0.0
	got, err := MeasureSending(t.Context(), func() float64 {
		now += float64(shortCount)
		return now
	})
	if want := fromTimes(1, float64(shortCount)/longCount); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}
