package tensor

import "golang.org/x/sys/unix"

// ThreadSeconds is the user and system time that the calling thread has taken. The goroutine must be
// locked to it.
func ThreadSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
