package wire

import (
	"context"
	"errors"
	"net"
	"slices"
	"syscall"
	"time"
)

// acceptPause is the wait after an accept that failed.
const acceptPause = 10 * time.Millisecond

// passing are the errors of accept after which the listener is still good: the process or the host is out of
// descriptors or memory for now, or the dialer hung up before it was accepted.
var passing = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
	syscall.ECONNRESET, syscall.EPROTO, syscall.EPERM, syscall.EINTR}

// Accept is the next connection of a listener. It waits errors out that pass: a listener that ended at one would
// accept no peer for the rest of the run. failed, if set, is called with each of them.
func Accept(l net.Listener, failed func(error)) (net.Conn, error) {
	for {
		conn, err := l.Accept()
		if err == nil || !passes(err) {
			return conn, err
		}
		if failed != nil {
			failed(err)
		}
		Sleep(context.Background(), Real, acceptPause) // sockets live in the host's time
	}
}

func passes(err error) bool {
	return slices.ContainsFunc(passing, func(one error) bool { return errors.Is(err, one) })
}
