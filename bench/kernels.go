package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"starling/event"
	"starling/report"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/cpu/measure"
	"starling/tensor/cpu/simd"
	"starling/train"
)

// KernelSpec says which kernels to time, and how.
type KernelSpec struct {
	Rows, Width, Degree, Rounds, Threads int
	DTypes                               []string
	SIMD, Only                           string
}

// DefaultKernels is the spec without any flag.
func DefaultKernels() KernelSpec {
	return KernelSpec{Rows: 100_000, Width: 256, Degree: 15, Rounds: 7, DTypes: []string{"f32", "bf16"}, SIMD: "auto"}
}

// Kernels is the kernels beside what the machine can do.
type Kernels struct {
	SIMD    string        `json:"simd"`
	Threads int           `json:"threads"`
	Rows    []measure.Row `json:"rows"`
}

// TimeKernels times kernels, and writes a line per kernel to out as soon as it is done.
func TimeKernels(ctx context.Context, s KernelSpec, out io.Writer) (*Kernels, error) {
	o, err := s.options()
	if err != nil {
		return nil, err
	}
	c := s.device()
	defer c.Close()
	b := &Kernels{SIMD: c.Level().String(), Threads: c.Threads()}
	fmt.Fprintf(out, "%d x %d, %s per vertex, %s, %s; 1 is what the machine can do\n", s.Rows, s.Width,
		event.Counted(s.Degree, "neighbour"), b.SIMD, event.Counted(b.Threads, "thread"))
	fmt.Fprintf(out, "%-22s %-9s %10s %14s %7s  %s\n", "kernel", "dtype", "ms", "rate", "ratio", "beside")
	err = measure.Run(ctx, c, o, func(r measure.Row) {
		b.Rows = append(b.Rows, r)
		fmt.Fprintf(out, "%-22s %-9s %10.3f %14s %7.2f  %s\n", r.Kernel, r.Type, 1e3*r.Seconds, rate(r), r.Ratio,
			against(r))
	})
	if ctx.Err() != nil {
		return b, report.ErrInterrupted
	}
	return b, err
}

// device is a CPU with the instruction set of the spec.
func (s *KernelSpec) device() *cpu.Device {
	if level, err := simd.ParseLevel(s.SIMD); err == nil {
		return cpu.NewWith(cpu.Options{Threads: s.Threads, Level: level})
	}
	return cpu.New(s.Threads)
}

// against names what a kernel is compared with, and for products and attention what share of
// that memory allows.
func against(r measure.Row) string {
	switch {
	case r.Roofline > 0:
		return fmt.Sprintf("%s; %.2f of its roofline", r.Against, r.Roofline)
	case r.Traffic > 0:
		return fmt.Sprintf("%s; %.2f of its traffic", r.Against, r.Traffic)
	}
	return r.Against
}

func rate(r measure.Row) string {
	if r.Unit == "B/s" {
		return event.Bytes(int64(r.Rate)) + "/s"
	}
	return fmt.Sprintf("%.0f GFLOP/s", r.Rate/1e9)
}

// options checks the spec and returns it as package measure takes it.
func (s *KernelSpec) options() (o measure.Options, err error) {
	if err := s.check(); err != nil {
		return o, err
	}
	o = measure.Options{Rows: s.Rows, Width: s.Width, Degree: s.Degree, Rounds: s.Rounds, Only: s.Only}
	for _, name := range s.DTypes {
		t := spec.Default()
		t.Machine.Threads, t.Machine.SIMD, t.Machine.DType = s.Threads, s.SIMD, name
		if name == "f64" {
			return o, spec.Mistake("--dtypes", name, "f32 or bf16", "f64 is the slow reference, which is not timed")
		}
		if err := cmp.Or(t.Validate(), t.Machine.CheckSIMD(simd.Supported().String())); err != nil {
			return o, err
		}
		o.Types = append(o.Types, t.Machine.RowType())
	}
	return o, nil
}

func (s *KernelSpec) check() error {
	for _, f := range []struct {
		flag string
		n    int
	}{{"--rows", s.Rows}, {"--width", s.Width}, {"--degree", s.Degree}, {"--rounds", s.Rounds}} {
		if f.n < 1 {
			return spec.Mistake(f.flag, fmt.Sprint(f.n), "1 or more", "")
		}
	}
	names := measure.Names()
	if !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, s.Only) }) {
		return spec.Mistake("--only", s.Only, "a part of "+strings.Join(names, ", "), train.Suggest(s.Only, names))
	}
	free := tensor.MemoryFree()
	if need := 5 * int64(s.Rows) * int64(s.Width) * 4; need > free && free > 0 {
		return spec.Mistake("--rows", fmt.Sprint(s.Rows), fmt.Sprintf("matrices that fit %s of memory",
			event.Bytes(free)),
			"make --rows or --width smaller")
	}
	return nil
}

// JSON writes the figures as one object, to a file or for "-" to stdout.
func (b *Kernels) JSON(path string, stdout io.Writer) error { return report.WriteJSON(b, path, stdout) }
