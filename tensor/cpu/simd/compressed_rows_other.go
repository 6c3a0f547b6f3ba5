//go:build !amd64

package simd

// Other architectures have no level but Generic, so none of these is reached.

func compressRows(*CompressedRow, *float32, int, int, int) {}

func runCompressedTile(Level, *CompressedTile, int) {}
