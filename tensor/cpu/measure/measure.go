// Package measure sets the CPU's kernels beside what the machine can do, in one
// run: dense products beside a loop of multiply-and-add in registers, sums over
// neighbours beside a plain read of the same rows, everything else beside a
// stream of the same bytes.
//
// A kernel and its yardstick take turns, and a ratio is the median over turns:
// on a machine with other work, speeds change from second to second, and the
// two then change together.
package measure

import (
	"context"
	"slices"
	"strings"
	"time"

	"starling/tensor"
	"starling/tensor/cpu"
)

// Options say what to measure, at which size. Zero values have defaults.
type Options struct {
	Rows   int            // of the matrices: vertices
	Width  int            // of their rows
	Degree int            // neighbours of a vertex, drawn at random
	Types  []tensor.DType // of rows
	Only   string         // kernels whose name contains it
	Rounds int            // turns a kernel and its yardstick take
}

func (o *Options) complete() {
	o.Rows, o.Width, o.Degree, o.Rounds = or(o.Rows, 100_000), or(o.Width, 256), or(o.Degree, 15), or(o.Rounds, 7)
	if len(o.Types) == 0 {
		o.Types = []tensor.DType{tensor.F32, tensor.BF16}
	}
}

func or(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// Row is one kernel's figures.
type Row struct {
	Kernel  string  `json:"kernel"`
	Type    string  `json:"dtype"`
	Seconds float64 `json:"seconds"` // the median turn
	Rate    float64 `json:"rate"`    // operations or bytes per second
	Unit    string  `json:"unit"`    // FLOP/s or B/s
	Against string  `json:"against"`
	Ratio   float64 `json:"ratio"` // of its speed to the yardstick's
	// Roofline, of products, is the ratio to whichever takes longer, the arithmetic or a
	// stream of the bytes: where it is larger than Ratio, memory is the limit.
	Roofline float64 `json:"roofline,omitempty"`
	// Traffic, of attention, is the ratio to moving all it must: beside the rows of neighbours, small rows
	// fetched from anywhere and results.
	Traffic float64 `json:"traffic,omitempty"`
}

// kernel is what is measured: run and yardstick do the same work, in operations or
// bytes.
type kernel struct {
	name string
	work float64
	run  func()
	yardstick
}

// yardstick does the given work as fast as the machine can. Where the work is arithmetic,
// traffic, if any, moves the bytes it needs; beside, if any, moves those that run leaves out.
type yardstick struct {
	name, unit      string
	run             func(work float64)
	traffic, beside func()
}

// Run measures all kernels that o names and reports each row as it is known.
func Run(ctx context.Context, c *cpu.Device, o Options, emit func(Row)) error {
	o.complete()
	for _, t := range o.Types {
		for _, family := range families {
			if !slices.ContainsFunc(family.names(), o.wants) {
				continue // its matrices may take a while to fill
			}
			b := &bench{Device: c, Options: o, typ: t}
			for _, k := range family(b) {
				if !o.wants(k.name) {
					continue
				}
				if err := ctx.Err(); err != nil {
					b.free()
					return err
				}
				emit(k.measure(t, o.Rounds))
			}
			b.free()
		}
	}
	return nil
}

func (o *Options) wants(name string) bool { return strings.Contains(name, o.Only) }

// Names lists what can be measured.
func Names() (names []string) {
	for _, family := range families {
		names = append(names, family.names()...)
	}
	return names
}

// names asks for the kernels of a small graph.
func (f family) names() (names []string) {
	c := cpu.New(1)
	defer c.Close()
	b := &bench{Device: c, Options: Options{Rows: 16, Width: 16, Degree: 1}, typ: tensor.F32}
	defer b.free()
	for _, k := range f(b) {
		names = append(names, k.name)
	}
	return names
}

func (k kernel) measure(t tensor.DType, rounds int) Row {
	// One run of each to touch memory, then interleaved.
	k.run()
	k.yardstick.run(k.work)
	var times, ratios, roofs, whole []float64
	for range rounds {
		mine := seconds(k.run)
		best := seconds(func() { k.yardstick.run(k.work) })
		times, ratios = append(times, mine), append(ratios, best/mine)
		if k.traffic != nil {
			roofs = append(roofs, max(best, seconds(k.traffic))/mine)
		}
		if k.beside != nil {
			whole = append(whole, (best+seconds(k.beside))/mine)
		}
	}
	mid := median(times)
	row := Row{Kernel: k.name, Type: t.String(), Seconds: mid, Rate: k.work / mid, Unit: k.unit,
		Against: k.yardstick.name, Ratio: median(ratios)}
	if roofs != nil {
		row.Roofline = median(roofs)
	}
	if whole != nil {
		row.Traffic = median(whole)
	}
	return row
}

func seconds(f func()) float64 {
	start := time.Now()
	f()
	return time.Since(start).Seconds()
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
