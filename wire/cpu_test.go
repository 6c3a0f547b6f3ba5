package wire

import (
	"syscall"
	"testing"
)

func cpuTime(b *testing.B) func() {
	t := func() int64 {
		var u syscall.Rusage
		syscall.Getrusage(0, &u)
		return u.Utime.Nano() + u.Stime.Nano()
	}
	start := t()
	return func() { b.ReportMetric(float64(t()-start)/float64(b.N), "cpu-ns/op") }
}
