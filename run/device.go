package run

import (
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/cpu/simd"
	"starling/tensor/ref"
)

// newDevice is what the run computes with.
func newDevice(s *spec.Spec) tensor.Device {
	if s.DType == "f64" {
		return ref.New()
	}
	o := cpu.Options{Threads: s.Threads, Level: simd.Best(), PlainMatMul: s.MatMul == "f32"}
	if level, err := simd.ParseLevel(s.SIMD); err == nil {
		// Validate refuses what this host lacks, but a worker may be on another.
		o.Level = min(level, simd.Supported())
	}
	return cpu.NewWith(o)
}

// hostDevice makes devices of one thread for what runs beside training.
func hostDevice(s spec.Spec) func() tensor.Device {
	s.Threads = 1
	return func() tensor.Device { return newDevice(&s) }
}
