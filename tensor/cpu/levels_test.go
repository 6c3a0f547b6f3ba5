package cpu

import "starling/tensor/cpu/simd"

// newLevel is a device with a chosen instruction set.
func newLevel(threads int, level simd.Level) *Device {
	return NewWith(Options{Threads: threads, Level: level})
}
