package simd

import "golang.org/x/sys/cpu"

// detect asks the processor, and for AMX also the kernel, which keeps tile state
// only for processes that ask for it (arch_prctl, ARCH_REQ_XCOMP_PERM, tile data).
func detect() Level {
	x := &cpu.X86
	switch {
	case !(x.HasAVX2 && x.HasFMA):
		return Generic
	case !(x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL):
		return AVX2
	case !(x.HasAVX512BF16 && x.HasAMXTile && x.HasAMXBF16 && requestTiles()):
		return AVX512
	case !hasFP16():
		return AMX
	}
	return AMXFP16
}
