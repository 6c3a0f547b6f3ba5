//go:build linux || darwin

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// whileRead ends a context when the command's output has no reader any more: the connection that
// it was started over is lost, or head has seen enough. The command would be killed; a run stops
// and saves instead, as when its terminal is closed.
func whileRead(ctx context.Context) (context.Context, func()) {
	if signal.Ignored(syscall.SIGPIPE) {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	go func() {
		for range signals { // also of sockets, which are handled elsewhere
			if unread() {
				announce("starling: the output has no reader any more; stopping as soon as what is under way is finished")
				cancel()
				return // further signals are dropped
			}
		}
	}()
	return ctx, cancel
}

// unread reports whether standard output or error has no reader.
func unread() bool {
	ends := []unix.PollFd{{Fd: 1}, {Fd: 2}}
	if _, err := unix.Poll(ends, 0); err != nil {
		return false
	}
	return (ends[0].Revents|ends[1].Revents)&(unix.POLLERR|unix.POLLHUP) != 0
}
