package run

import (
	"starling/event"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu"
)

// newDryDevice is the device of a dry run: it allocates and frees matrices and computes
// nothing.
func newDryDevice(s *spec.Spec) *cpu.Dry {
	return cpu.NewDry(cpu.DryOptions{F64: s.Machine.RowType() == tensor.F64, Cores: s.Machine.Cores(),
		Most: mostAllocated()})
}

// tooLarge is the error of a dry run that allocates this many bytes at once, and would more.
type tooLarge int64

func (b tooLarge) Error() string { return "it needs more than " + event.Bytes(int64(b)) }

// mostAllocated is where a dry run ends: many times the machine's memory, and far below the
// address space of a process.
func mostAllocated() int64 {
	if total := tensor.MemoryTotal(); total > 0 {
		return min(16*total, 1<<45)
	}
	return 1 << 40
}
