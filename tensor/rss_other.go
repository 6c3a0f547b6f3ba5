//go:build !unix

package tensor

// CPUSeconds is unknown here.
func CPUSeconds() float64 { return 0 }

// maxRSS is unknown here.
func maxRSS() int64 { return 0 }
