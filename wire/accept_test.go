package wire

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

// tired is a listener whose first accepts fail.
type tired struct {
	net.Listener
	errs []error
}

func (l *tired) Accept() (net.Conn, error) {
	if len(l.errs) == 0 {
		here, there := net.Pipe()
		there.Close()
		return here, nil
	}
	err := l.errs[0]
	l.errs = l.errs[1:]
	return nil, err
}

func failedAccept(err error) error {
	return &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
}

// TestAcceptErrorsThatPassAreWaitedOut: a listener goes on after it was out of descriptors or memory, or a dialer hung
// up; it ends when it was closed, or is no listener any more.
func TestAcceptErrorsThatPassAreWaitedOut(t *testing.T) {
	l := &tired{}
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ENOBUFS, syscall.ENOMEM} {
		l.errs = append(l.errs, failedAccept(err))
	}
	var seen []error
	conn, err := Accept(l, func(err error) { seen = append(seen, err) })
	if err != nil || conn == nil || len(seen) != 5 || !errors.Is(seen[0], syscall.EMFILE) {
		t.Errorf("%v after %v", err, seen)
	}
	for _, last := range []error{net.ErrClosed, os.ErrDeadlineExceeded, failedAccept(syscall.EBADF)} {
		if _, err := Accept(&tired{errs: []error{last}}, nil); !errors.Is(err, last) {
			t.Errorf("%v instead of %v", err, last)
		}
	}
}
