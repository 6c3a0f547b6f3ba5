package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWrongPortSaysWhereItTries: a worker that finds no run says every few seconds where it looks for it.
func TestWrongPortSaysWhereItTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		_, err := Join(t.Context(), JoinRequest{Coordinator: "alpha:7001", Timeout: 10 * time.Second,
			Trying: func(text string) { said = append(said, text) },
			dial: func(context.Context, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
			}})
		if err == nil || !strings.Contains(err.Error(), "no coordinator at alpha:7001 after 10s") {
			t.Error(err)
		}
		const what = "trying to connect to the run at alpha:7001: connection refused; giving up in "
		if want := []string{what + "7.0 s (--timeout)", what + "4.0 s (--timeout)",
			what + "1.0 s (--timeout)"}; !slices.Equal(said, want) {
			t.Errorf("%q", said)
		}
	})
}
