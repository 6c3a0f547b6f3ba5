package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ErrClosed is the cause of an endpoint that was closed in good order.
var ErrClosed = errors.New("the endpoint is closed")

// ErrPeerClosed is the cause of what is pending with a peer that closed in good order.
var ErrPeerClosed = errors.New("it has closed its end")

// Timeout is the error of a wait that took too long: who waited for whom, and for what.
type Timeout struct {
	Rank, Peer int
	PeerAddr   string // empty where there is none
	What       string // "to receive from", "to send to", "for an answer from"
	Service    string // of a call; empty: it was for a message
	Key        Key
	Kind       Kind
	Waited     time.Duration
	detail     string // of a call
}

func (t *Timeout) Error() string {
	what := t.detail
	if what == "" {
		what = fmt.Sprintf("%v (%v)", t.Kind, t.Key)
	}
	return fmt.Sprintf("rank %d waited %v %s %s: %s", t.Rank, t.Waited.Round(time.Millisecond), t.What,
		name(t.Peer, t.PeerAddr), what)
}

// Unwrap makes a Timeout a context.DeadlineExceeded.
func (t *Timeout) Unwrap() error { return context.DeadlineExceeded }

// PeerLost is the error of everything pending when a peer has gone.
type PeerLost struct {
	Rank, Peer int
	PeerAddr   string
	Cause      error
}

func (e *PeerLost) Error() string {
	return fmt.Sprintf("rank %d lost %s: %v", e.Rank, name(e.Peer, e.PeerAddr), e.Cause)
}

func (e *PeerLost) Unwrap() error { return e.Cause }

// Failure is the error of every rank when one has failed: which one, and why.
// It is passed from rank to rank unchanged, so all of them name the same root.
type Failure struct {
	Rank  int
	Cause error
}

func (e *Failure) Error() string { return fmt.Sprintf("rank %d failed: %v", e.Rank, e.Cause) }

func (e *Failure) Unwrap() error { return e.Cause }

// root is what a rank that failed with err sends the others: who failed first.
// A peer that was lost is itself the one that failed.
func root(rank int, err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if lost, ok := errors.AsType[*PeerLost](err); ok {
		return &Failure{Rank: lost.Peer, Cause: err}
	}
	return &Failure{Rank: rank, Cause: err}
}

// remoteCause is a cause that came over the wire, of which only the text travels.
type remoteCause string

func (c remoteCause) Error() string { return string(c) }

// causeText is the text of a cause, cut to what a frame may hold.
func causeText(err error) string {
	text := strings.ToValidUTF8(err.Error()[:min(len(err.Error()), MaxCause)], "")
	return strings.Map(func(r rune) rune {
		if !shown(r) {
			return -1
		}
		return r
	}, text)
}

func name(rank int, addr string) string {
	if addr == "" {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("rank %d (%s)", rank, addr)
}

// shown reports whether a character of a cause is shown: no control character but ends of lines and tabs, as a peer's
// text goes to terminals.
func shown(r rune) bool { return !unicode.IsControl(r) || r == '\n' || r == '\t' }

// causeOf is a cause that a peer sent. What is no text is quoted.
func causeOf(text []byte) remoteCause {
	if !printable(text) {
		return remoteCause(fmt.Sprintf("%.200q", text))
	}
	return remoteCause(text)
}

// printable reports whether bytes are text that may be shown.
func printable(text []byte) bool {
	return utf8.Valid(text) && !strings.ContainsFunc(string(text), func(r rune) bool { return !shown(r) })
}
