package multilevel

import (
	"bytes"
	"strconv"
	"syscall"
)

// runnableThreads is how many threads of all processes run or wait for a core; 0 if unknown.
func runnableThreads() int {
	fd, err := syscall.Open("/proc/loadavg", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer syscall.Close(fd)
	var text [128]byte
	n, _ := syscall.Read(fd, text[:])
	return parseRunnable(text[:max(n, 0)])
}

// parseRunnable finds the number in "0.20 0.18 0.12 1/80 11206": it is the 1.
func parseRunnable(text []byte) int {
	fields := bytes.Fields(text)
	if len(fields) < 4 {
		return 0
	}
	running, _, _ := bytes.Cut(fields[3], []byte("/"))
	n, _ := strconv.Atoi(string(running))
	return n
}
