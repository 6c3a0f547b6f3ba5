//go:build linux || darwin

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// whileRead ends a context when nobody reads what the command shows any more: the connection
// that it was started over is lost, or head has seen enough. Such a command would be killed;
// a run stops and saves instead, as at the end of a terminal.
func whileRead(ctx context.Context) (context.Context, func()) {
	if signal.Ignored(syscall.SIGPIPE) {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	go func() {
		for range signals { // also of sockets, whose other ends are for others to mind
			if unread() {
				fmt.Fprintln(os.Stderr, "starling: nobody reads the output any more; stopping as soon as what is under way is finished")
				cancel()
				return // what more of them come are dropped
			}
		}
	}()
	return ctx, cancel
}

// unread tells whether standard output or error lead nowhere.
func unread() bool {
	ends := []unix.PollFd{{Fd: 1}, {Fd: 2}}
	if _, err := unix.Poll(ends, 0); err != nil {
		return false
	}
	return (ends[0].Revents|ends[1].Revents)&(unix.POLLERR|unix.POLLHUP) != 0
}
