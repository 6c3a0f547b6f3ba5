package cost

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"starling/rng"
	"starling/tensor"
)

// Compute is how fast a worker's device is: what the simulator charges for operations
// (Charged). Zero rates charge nothing. Its text form is
//
//	gemm=40 spmm=2.5 memory=8 op=2us send=1.5 recv=1.5 message=8us
//
// where gemm is 10^9 floating-point operations per second of dense products, spmm 10^9
// numbers per second that sums over neighbours read, memory 10^9 bytes per second of all
// else, and op is what every operation takes beside. The last three may be left out: send and
// recv are 10^9 bytes per second that a worker's processors can send and receive, whatever the
// link does, and message is what every message takes them beside, at either end.
type Compute struct {
	GEMM   float64 // floating-point operations per second
	SpMM   float64 // numbers of neighbours' rows per second
	Memory float64 // bytes per second
	Op     float64 // seconds

	// Int8 and BF16 are bytes per second of rows that are rounded to travel, and made rows again. The text form does
	// not have them.
	Int8 float64 `json:",omitempty"`
	BF16 float64 `json:",omitempty"`

	Send, Recv float64 // bytes per second that processors handle
	Message    float64 // seconds at either end
}

// String is the text form, with three digits and without exponents.
func (c Compute) String() string {
	short := func(x float64) string {
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
		return strconv.FormatFloat(rounded, 'f', -1, 64)
	}
	out := fmt.Sprintf("gemm=%s spmm=%s memory=%s op=%sus", short(c.GEMM/1e9), short(c.SpMM/1e9), short(c.Memory/1e9),
		short(c.Op*1e6))
	if c.Send > 0 {
		out += " send=" + short(c.Send/1e9)
	}
	if c.Recv > 0 {
		out += " recv=" + short(c.Recv/1e9)
	}
	if c.Message > 0 {
		out += " message=" + short(c.Message*1e6) + "us"
	}
	return out
}

// WithSending adds what moving messages takes a host of that many cores.
func (c Compute) WithSending(s Sending, cores int) Compute {
	n := float64(cores)
	if s.Byte > 0 {
		c.Send, c.Recv = n/s.Byte, n/s.Byte
	}
	c.Message = s.Message / n
	return c
}

// Shared is what each of some workers has of a machine that they share.
func (c Compute) Shared(workers int) Compute { return c.times(1 / float64(workers)) }

// Slower is a machine on which everything takes by times as long.
func (c Compute) Slower(by float64) Compute { return c.times(1 / by) }

// times is a machine that is by times as fast.
func (c Compute) times(by float64) Compute {
	return Compute{GEMM: c.GEMM * by, SpMM: c.SpMM * by, Memory: c.Memory * by, Op: c.Op / by, Int8: c.Int8 * by,
		BF16: c.BF16 * by, Send: c.Send * by, Recv: c.Recv * by, Message: c.Message / by}
}

// ParseCompute reads the text form. The first four rates must be there.
func ParseCompute(text string) (c Compute, err error) {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	seen := map[string]bool{}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		if seen[name] {
			return c, fmt.Errorf("found %s twice, want it once", name)
		}
		seen[name] = true
		if err := c.set(name, value); err != nil {
			return c, err
		}
	}
	for _, name := range []string{"gemm", "spmm", "memory", "op"} {
		if !seen[name] {
			return c, fmt.Errorf("found %q, want gemm=, spmm=, memory= and op=", text)
		}
	}
	return c, nil
}

// set reads one rate.
func (c *Compute) set(name, value string) error {
	rates := map[string]*float64{"gemm": &c.GEMM, "spmm": &c.SpMM, "memory": &c.Memory, "send": &c.Send,
		"recv": &c.Recv}
	times := map[string]*float64{"op": &c.Op, "message": &c.Message}
	if to := times[name]; to != nil {
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return fmt.Errorf("found %s=%s, want a time such as %s=2us", name, value, name)
		}
		*to = d.Seconds()
		return nil
	}
	to := rates[name]
	if to == nil {
		return fmt.Errorf("found %q, want gemm=, spmm=, memory= and op=, and perhaps send=, recv= and message=",
			name+"="+value)
	}
	x, err := strconv.ParseFloat(value, 64)
	if err != nil || !(x > 0 && x < 1e9) {
		return fmt.Errorf("found %s=%s, want a number above 0, in 10^9 per second", name, value)
	}
	*to = x * 1e9
	return nil
}

// Shape is what rates are measured on: the rows and in-edges of a worker, and widths of the
// model.
type Shape struct {
	Rows, Degree int
	In, Hidden   int
	Type         tensor.DType
}

// timedSeconds is how long each operation is timed for.
const timedSeconds = 0.03

// MeasureCompute times the kernels that training spends most time in, on matrices of the
// run's shape.
func MeasureCompute(dev tensor.Device, s Shape, now func() time.Time) Compute {
	s.Rows = max(64, min(s.Rows, timedRows))
	s.Degree, s.In, s.Hidden = max(1, min(s.Degree, 256)), max(1, s.In), max(1, s.Hidden)
	t := dev.RowType(s.Type)
	x, y := filled(dev, t, s.Rows, s.In), dev.New(t, s.Rows, s.Hidden)
	z, w := dev.New(t, s.Rows, s.Hidden), filled(dev, dev.Type(), s.In, s.Hidden)
	one := dev.New(dev.Type(), 1, 1)
	defer func() {
		for _, m := range []tensor.Matrix{x, y, z, w, one} {
			dev.Free(m)
		}
	}()
	adj := random(dev, s.Rows, s.Degree)
	c := Compute{Op: each(dev, now, func() { dev.Zero(one) })}
	rate := func(amount float64, f func()) float64 { return amount / max(each(dev, now, f)-c.Op, 1e-9) }
	c.GEMM = rate(2*float64(s.Rows)*float64(s.In)*float64(s.Hidden), func() { dev.MatMul(y, x, w, tensor.MatMul{}) })
	c.SpMM = rate(float64(adj.Entries())*float64(s.Hidden), func() { dev.Aggregate(z, adj, y, tensor.Aggregate{}) })
	c.Memory = rate(float64(3*y.Bytes()), func() { dev.Combine(z, 0.5, y, 0.5, z) })
	return c
}

// MeasurePacking times how rows are rounded to travel, with error feedback, and made rows again: bytes of rows per
// second in int8 and in bfloat16.
func MeasurePacking(dev tensor.Device, s Shape, now func() time.Time) (int8, bf16 float64) {
	x := filled(dev, dev.Type(), s.Rows, s.Hidden)
	left := dev.New(dev.Type(), s.Rows, s.Hidden)
	defer dev.Free(x)
	defer dev.Free(left)
	rate := func(form tensor.Packed) float64 {
		staging, buffer := dev.Staging(s.Rows * form.RowBytes(s.Hidden))
		defer dev.Free(staging)
		return float64(x.Bytes()) / each(dev, now, func() {
			dev.Pack(buffer, x, tensor.Packing{Form: form, Residual: left})
			dev.Unpack(x, buffer, tensor.Packing{Form: form})
		})
	}
	return rate(tensor.PackInt8), rate(tensor.PackBF16)
}

// each is the seconds of a call: the median of several groups of calls.
func each(dev tensor.Device, now func() time.Time, f func()) float64 {
	f()
	dev.Sync()
	var list []float64
	for calls, spent := 1, 0.0; spent < timedSeconds || len(list) < 3; {
		begin := now()
		for range calls {
			f()
		}
		dev.Sync()
		took := now().Sub(begin).Seconds()
		if spent += took; took < timedSeconds/10 && calls < 1<<20 {
			calls *= 2
			continue
		}
		list = append(list, took/float64(calls))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// filled is a matrix of small numbers.
func filled(dev tensor.Device, t tensor.DType, rows, cols int) tensor.Matrix {
	m, numbers := dev.Scratch(t, rows, cols), make([]float64, rows*cols)
	key := rng.New(1)
	for i := range numbers {
		numbers[i] = key.Float64(uint64(i)) - 0.5
	}
	dev.Upload(m, numbers)
	return m
}

// random is a graph in which each vertex has neighbours at random places.
func random(dev tensor.Device, rows, degree int) *tensor.Sparse {
	ptr, index := make([]int64, rows+1), make([]uint32, rows*degree)
	key := rng.New(2)
	for v := range rows {
		ptr[v+1] = int64((v + 1) * degree)
		for k := range degree {
			index[v*degree+k] = uint32(key.IntN(uint64(v*degree+k), rows))
		}
	}
	return tensor.NewSparse(dev, rows, rows, ptr, index, nil)
}
