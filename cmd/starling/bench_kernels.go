package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"starling/bench"
	"starling/spec"
)

func benchKernelsCommand() *cobra.Command {
	s := bench.DefaultKernels()
	var json string
	c := &cobra.Command{
		Use:   "kernels",
		Short: "Time kernels relative to what this machine can do",
		Long: `Time kernels relative to what this machine can do.

GEMM is compared with the FMA peak in registers, SpMM with a plain read of the same rows,
everything else with a stream of the same bytes. The roofline of a GEMM is the FMA peak or
the stream, whichever takes longer; the traffic of attention is all that it must move, the
inputs of its coefficients included. Kernel and reference run interleaved; a ratio is the
median of the ratios of their speeds. It can be above 1: results are written with
non-temporal stores, and GEMM uses AMX where the processor has it.`,
		Example: `  starling bench kernels
  starling bench kernels --only norm --dtypes bf16 --width 64
  starling bench kernels --simd avx2 --threads 1 --json -`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			b, err := bench.TimeKernels(c.Context(), s, shown(json))
			if err != nil || json == "" {
				return err
			}
			return b.JSON(json, stdout)
		},
	}
	f := c.Flags()
	f.StringVar(&s.Only, "only", s.Only, "only kernels whose name has this in it")
	f.StringSliceVar(&s.DTypes, "dtypes", s.DTypes, "storage types of rows: f32, bf16")
	f.IntVar(&s.Rows, "rows", s.Rows, "vertices; a small number stays in the cache, which measures something else")
	f.IntVar(&s.Width, "width", s.Width, "numbers per vertex")
	f.IntVar(&s.Degree, "degree", s.Degree, "neighbours per vertex")
	f.IntVar(&s.Rounds, "rounds", s.Rounds, "rounds; figures are their medians")
	spec.AutoVar(f, &s.Threads, 0, 1, "threads", "cores to use; auto: all")
	f.StringVar(&s.SIMD, "simd", s.SIMD, "instruction set: "+strings.Join(spec.SIMDNames, ", "))
	jsonFlag(c, &json)
	f.SortFlags = false
	return c
}

// shown is where rows are written as they come: nowhere if standard output is for JSON.
func shown(json string) io.Writer {
	if json == "-" {
		return io.Discard
	}
	return text
}
