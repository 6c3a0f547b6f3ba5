package setup

import (
	"errors"
	"os"
	"strconv"

	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/cpu/simd"
	"starling/tensor/cuda"
	"starling/tensor/ref"
)

// NewDevice is what a worker of the run computes with.
func NewDevice(s *spec.Spec, rank int) (tensor.Device, error) {
	if s.Machine.Device == "cpu" || s.Machine.DType == "f64" {
		return HostDevice(s), nil
	}
	d, err := OpenGPU(s, rank)
	// a worker of another host chooses for itself
	if s.Machine.Device == "auto" && errors.Is(err, cuda.ErrUnavailable) {
		return NewCPU(s), nil
	}
	return d, err
}

func NewCPU(s *spec.Spec) tensor.Device {
	o := cpu.Options{Threads: s.Machine.Threads, Level: simd.Best(), PlainMatMul: s.Machine.MatMul == "f32"}
	if level, err := simd.ParseLevel(s.Machine.SIMD); err == nil {
		// Validate refuses what this host lacks, but a worker may be on another.
		o.Level = min(level, simd.Supported())
	}
	return cpu.NewWith(o)
}

// HostDevices makes devices of one thread for what runs beside training, on the host.
func HostDevices(s spec.Spec) func() tensor.Device {
	s.Machine.Threads = 1
	return func() tensor.Device { return HostDevice(&s) }
}

// HostDevice is a device of the host, whatever --device says.
func HostDevice(s *spec.Spec) tensor.Device {
	if s.Machine.DType == "f64" {
		return ref.New()
	}
	return NewCPU(s)
}

// OpenGPU is a device on the GPU that --device names, or on a GPU of this worker's own.
func OpenGPU(s *spec.Spec, rank int) (tensor.Device, error) {
	number := s.Machine.GPU()
	if number < 0 {
		gpus, err := cuda.GPUs()
		if err != nil {
			return nil, err
		}
		number = localRank(rank) % len(gpus)
	}
	d, err := cuda.Open(cuda.Options{Number: number, TF32: s.Machine.MatMul == "tf32",
		Exact: s.Machine.MatMul == "f32"})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// localRank is the worker's number on its host, from the variables that launchers set; else its rank.
func localRank(rank int) int {
	for _, v := range []string{"SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK"} {
		if n, err := strconv.Atoi(os.Getenv(v)); err == nil && n >= 0 {
			return n
		}
	}
	return rank
}

// DeviceName names the device of a run in a report.
func DeviceName(s *spec.Spec) string {
	if !s.Machine.OnGPU() {
		return "cpu"
	}
	gpus, err := cuda.GPUs()
	if n := max(0, s.Machine.GPU()); err == nil && n < len(gpus) {
		return s.Machine.Device + " " + gpus[n].Name
	}
	return s.Machine.Device
}
