//go:build amd64 && !linux

package simd

// requestTiles: only Linux is known to grant tile state.
func requestTiles() bool { return false }
