//go:build !amd64

package simd

// Other architectures have no level but Generic, so none of these is reached.

func runTiles16(t *Tiles16, tiles int) {}

func packPairs(dst, src *uint16, rows, cols, stride, panel int) {}

func packTransposed(dst, src *uint16, rows, cols, stride, drow int) {}

func padRows(dst, src *uint16, rows, cols, stride, pitch int) {}

func runTiles32(*Tiles32) {}

func splitRows(*uint16, *uint32, *float32, int, int, int) {}

func splitPairs(*uint16, *uint32, *float32, int, int, int, int) {}

func runTwoWay(*TwoWaySplit) {}

func splitRowsTwoWay(*uint16, *float32, *uint32, *float32, int, int, int) {}

func splitPairsTwoWay(*uint16, *float32, *uint32, *float32, int, int, int, int) {}

func anyWide(*uint32, int, *RangeBounds) bool { return false }

func anyBelow(x, limit *float32, n int, factor float32) bool { return false }
