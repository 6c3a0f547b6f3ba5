package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrClosed is the cause of an endpoint that was closed in good order.
var ErrClosed = errors.New("the endpoint is closed")

// errGone is the cause of what is pending with a peer that closed in good order.
var errGone = errors.New("it has closed its end")

// errVanished is the cause of a peer whose connection ended without a goodbye:
// its process has died.
var errVanished = errors.New("its connection ended without a goodbye")

// errDeaf is the cause of what a peer has not taken in time when this end was closed.
var errDeaf = errors.New("it did not take what was sent to it")

// Timeout is the error of a wait that took too long: who waited for whom, and for what.
type Timeout struct {
	Rank, Peer int
	PeerAddr   string // empty where there is none
	What       string // "to receive from" or "to send to"
	Key        Key
	Kind       Kind
	Waited     time.Duration
}

func (t *Timeout) Error() string {
	return fmt.Sprintf("rank %d waited %v %s %s: %v (%v)", t.Rank, t.Waited.Round(time.Millisecond), t.What, name(t.Peer, t.PeerAddr), t.Kind, t.Key)
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
// It is told from rank to rank unchanged, so all of them name the same root.
type Failure struct {
	Rank  int
	Cause error
}

func (e *Failure) Error() string { return fmt.Sprintf("rank %d failed: %v", e.Rank, e.Cause) }

func (e *Failure) Unwrap() error { return e.Cause }

// root is what a rank that failed with err tells the others: who failed first.
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

// told is a cause that came over the wire, where only its words travel.
type told string

func (t told) Error() string { return string(t) }

// words is a cause cut to what a frame of failure may hold.
func words(err error) string {
	return strings.ToValidUTF8(err.Error()[:min(len(err.Error()), maxCause)], "")
}

func name(rank int, addr string) string {
	if addr == "" {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("rank %d (%s)", rank, addr)
}
