package main

import (
	"io"

	"github.com/spf13/cobra"

	"starling/run"
)

func benchKernelsCommand() *cobra.Command {
	spec := run.DefaultKernelBench()
	var json string
	c := &cobra.Command{
		Use:   "kernels",
		Short: "Time kernels beside what this machine can do",
		Long: `Time kernels beside what this machine can do.

Dense products stand beside a loop that multiplies and adds in registers, sums over
neighbours beside a plain read of the same rows, everything else beside a stream of
the same bytes. A product's roofline is the FMA loop or the stream, whichever takes
longer; attention's traffic is all it must move, beside rows also what coefficients
are made of. They take turns; a ratio is the median of their speeds'. More than
1 is possible: results are written past the caches, and where there is a matrix unit
products use that.`,
		Example: `  starling bench kernels
  starling bench kernels --only norm --dtypes bf16 --width 64
  starling bench kernels --simd avx2 --threads 1 --json -`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			b, err := run.BenchKernels(c.Context(), spec, shown(json))
			if err != nil || json == "" {
				return err
			}
			return b.JSON(json, stdout)
		},
	}
	f := c.Flags()
	f.StringVar(&spec.Only, "only", spec.Only, "only kernels whose name has this in it")
	f.StringSliceVar(&spec.DTypes, "dtypes", spec.DTypes, "storage types of rows: f32, bf16")
	f.IntVar(&spec.Rows, "rows", spec.Rows, "vertices; small ones stay in the cache, and are another measurement")
	f.IntVar(&spec.Width, "width", spec.Width, "numbers a vertex")
	f.IntVar(&spec.Degree, "degree", spec.Degree, "neighbours a vertex")
	f.IntVar(&spec.Rounds, "rounds", spec.Rounds, "turns; figures are their medians")
	f.IntVar(&spec.Threads, "threads", spec.Threads, "cores to use; 0: all")
	f.StringVar(&spec.SIMD, "simd", spec.SIMD, "instruction set: auto, generic, avx2, avx512, amx or amx-fp16")
	jsonFlag(c, &json)
	f.SortFlags = false
	return c
}

// shown is where rows are shown as they come: nowhere if standard output is for JSON.
func shown(json string) io.Writer {
	if json == "-" {
		return io.Discard
	}
	return stdout
}
