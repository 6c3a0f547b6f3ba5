//go:build !linux

package multilevel

// runnableThreads is unknown.
func runnableThreads() int { return 0 }
