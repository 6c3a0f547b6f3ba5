//go:build unix

package tensor

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// CPUSeconds is the user and system time that this process has taken.
func CPUSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// maxRSS is what the kernel accounts, where there is no /proc.
func maxRSS() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss) // bytes there, kilobytes elsewhere
	}
	return 1024 * int64(u.Maxrss)
}
