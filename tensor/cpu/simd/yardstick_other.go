//go:build !amd64

package simd

// Only Generic exists here, and it does not come this way.
func streamFast(Level, streamKind, *float32, *float32, *float32, int) {}
func gatherFast(Level, *byte, int, []uint32, int)                     {}
