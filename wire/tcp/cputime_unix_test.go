//go:build unix

package tcp

import (
	"syscall"
	"testing"
)

// cpuTime reports the processor time of an operation, both ends together where
// they are in this process: it holds still on a machine that others use too.
func cpuTime(b *testing.B) func() {
	used := func() int64 {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}
