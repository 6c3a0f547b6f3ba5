package run

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"starling/event"
	"starling/tensor"
	"starling/tensor/measure"
)

// KernelBenchSpec says which kernels to measure, and how.
type KernelBenchSpec struct {
	Rows, Width, Degree, Rounds, Threads int
	DTypes                               []string
	SIMD, Only                           string
}

// DefaultKernelBench is the spec when nothing is said.
func DefaultKernelBench() KernelBenchSpec {
	return KernelBenchSpec{Rows: 100_000, Width: 256, Degree: 15, Rounds: 7, DTypes: []string{"f32", "bf16"}, SIMD: "auto"}
}

// KernelBench is the kernels beside what the machine can do.
type KernelBench struct {
	SIMD    string        `json:"simd"`
	Threads int           `json:"threads"`
	Rows    []measure.Row `json:"rows"`
}

// BenchKernels measures kernels; each gets a line of out as soon as it is done.
func BenchKernels(ctx context.Context, s KernelBenchSpec, out io.Writer) (*KernelBench, error) {
	o, spec, err := s.options()
	if err != nil {
		return nil, err
	}
	c := spec.device().(*tensor.CPU)
	defer c.Close()
	b := &KernelBench{SIMD: c.Level().String(), Threads: c.Threads()}
	fmt.Fprintf(out, "%d x %d, %s a vertex, %s, %s; 1 is what the machine can do\n", s.Rows, s.Width, event.Counted(s.Degree, "neighbour"), b.SIMD, event.Counted(b.Threads, "thread"))
	fmt.Fprintf(out, "%-22s %-9s %10s %14s %7s  %s\n", "kernel", "dtype", "ms", "rate", "ratio", "beside")
	err = measure.Run(ctx, c, o, func(r measure.Row) {
		b.Rows = append(b.Rows, r)
		fmt.Fprintf(out, "%-22s %-9s %10.3f %14s %7.2f  %s\n", r.Kernel, r.Type, 1e3*r.Seconds, rate(r), r.Ratio, measuredBy(r))
	})
	if ctx.Err() != nil {
		return b, ErrInterrupted
	}
	return b, err
}

// measuredBy names the yardstick, and tells what memory leaves of it: of products, and of attention.
func measuredBy(r measure.Row) string {
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

// options checks the spec.
func (s *KernelBenchSpec) options() (o measure.Options, spec Spec, err error) {
	for _, f := range []struct {
		flag string
		n    int
	}{{"--rows", s.Rows}, {"--width", s.Width}, {"--degree", s.Degree}, {"--rounds", s.Rounds}} {
		if f.n < 1 {
			return o, spec, mistake(f.flag, fmt.Sprint(f.n), "1 or more", "")
		}
	}
	spec = Default()
	spec.Threads, spec.SIMD = s.Threads, s.SIMD
	o = measure.Options{Rows: s.Rows, Width: s.Width, Degree: s.Degree, Rounds: s.Rounds, Only: s.Only}
	for _, name := range s.DTypes {
		spec.DType = name
		if name == "f64" {
			return o, spec, mistake("--dtypes", name, "f32 or bf16", "f64 is a slow reference, which is not measured")
		}
		if err := spec.Validate(); err != nil {
			return o, spec, err
		}
		o.Types = append(o.Types, spec.rows())
	}
	if names := measure.Names(); !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, s.Only) }) {
		return o, spec, mistake("--only", s.Only, "a part of "+strings.Join(names, ", "), suggest(s.Only, names))
	}
	if need := 5 * int64(s.Rows) * int64(s.Width) * 4; need > tensor.MemoryFree() && tensor.MemoryFree() > 0 {
		return o, spec, mistake("--rows", fmt.Sprint(s.Rows), fmt.Sprintf("matrices that fit %s of memory", event.Bytes(tensor.MemoryFree())), "make --rows or --width smaller")
	}
	return o, spec, nil
}

// JSON writes the figures as one object, to a file or with "-" to stdout.
func (b *KernelBench) JSON(path string, stdout io.Writer) error { return writeJSON(b, path, stdout) }
