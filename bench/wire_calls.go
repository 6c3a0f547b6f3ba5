package bench

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"starling/coflow"
	"starling/wire"
)

// benchRequest is the size of a request in bytes: a pull of a few rows.
const benchRequest = 64

// serve responds to calls with as many bytes as they ask for.
func (b *wireRank) serve() error {
	service := wire.Service{Name: "bench", MaxRequest: benchRequest, MaxResponse: len(b.from)}
	_, err := b.end.Serve(service, func(_ context.Context, r *wire.Request) (wire.Response, error) {
		n := binary.LittleEndian.Uint64(r.Body)
		if n > uint64(len(b.from)) {
			return wire.Response{}, fmt.Errorf("%d bytes were requested, there are %d", n, len(b.from))
		}
		return wire.Response{Kind: wire.Feature, Body: b.from[:n]}, nil
	})
	return err
}

// ask calls rank 1 for size bytes, which are received into the buffer of a slot.
func (b *wireRank) ask(size, slot int) *wire.Reply {
	request := binary.LittleEndian.AppendUint64(make([]byte, 0, benchRequest), uint64(size))
	into := b.to[slot*size:][:size]
	return b.end.Call(1, wire.Call{Service: "bench", Coflow: coflow.ID{Type: coflow.Rows}, Kind: wire.Topology,
		Request: request[:benchRequest], Limit: size, Into: func(int) []byte { return into }})
}

// call makes one call after the other.
func (b *wireRank) call(size, count int) error {
	if b.end.Rank() > 0 {
		return nil
	}
	for range count {
		if _, err := b.ask(size, 0).Wait(b.ctx); err != nil {
			return err
		}
	}
	return nil
}

// callStream has a few calls in flight.
func (b *wireRank) callStream(size, count int) error {
	if b.end.Rank() > 0 {
		return nil
	}
	var calls [inFlight]*wire.Reply
	for i := range count + inFlight {
		slot := i % inFlight
		if calls[slot] != nil {
			if _, err := calls[slot].Wait(b.ctx); err != nil {
				return err
			}
			calls[slot] = nil
		}
		if i < count {
			calls[slot] = b.ask(size, slot)
		}
	}
	return nil
}

// plainSocket is a TCP connection between ranks 0 and 1 without package wire, which calls over
// TCP are compared with; nil on other ranks. Rank 1 listens on its host's address of the job;
// rank 0 proves itself with a number that it received over the wire.
func (b *wireRank) plainSocket() (net.Conn, error) {
	if b.asked {
		return b.socket, nil
	}
	b.asked = true
	var at [64]byte
	var secret [16]byte
	rand.Read(secret[:])
	var listener net.Listener
	var err error
	if b.end.Rank() == 1 {
		if listener, err = net.Listen("tcp", net.JoinHostPort(b.host, "0")); err != nil {
			return nil, err
		}
		defer listener.Close()
		copy(at[:], listener.Addr().String())
	}
	err = errors.Join(b.comm.Broadcast(b.ctx, coflow.ID{}, wire.Control, 1, at[:]),
		b.comm.Broadcast(b.ctx, coflow.ID{}, wire.Control, 1, secret[:]))
	if err != nil || b.end.Rank() > 1 {
		return nil, err
	}
	if b.end.Rank() == 0 {
		b.socket, err = dialPlain(b.ctx, strings.TrimRight(string(at[:]), "\x00"), secret[:])
	} else {
		b.socket, err = acceptPlain(listener, secret[:])
	}
	return b.socket, err
}

func dialPlain(ctx context.Context, addr string, secret []byte) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	_, err = conn.Write(secret)
	return conn, err
}

func acceptPlain(l net.Listener, secret []byte) (net.Conn, error) {
	l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute))
	for {
		conn, err := wire.Accept(l, nil)
		if err != nil {
			return nil, err
		}
		got := make([]byte, len(secret))
		conn.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := io.ReadFull(conn, got); err == nil && subtle.ConstantTimeCompare(got, secret) == 1 {
			return conn, conn.SetReadDeadline(time.Time{})
		}
		conn.Close()
	}
}

// socketCall requests bytes over a plain connection, one request after the other.
func (b *wireRank) socketCall(size, count int) error {
	conn, err := b.plainSocket()
	if conn == nil {
		return err
	}
	request := make([]byte, benchRequest)
	for range count {
		if b.end.Rank() == 0 {
			_, err = conn.Write(request)
			if err == nil {
				_, err = io.ReadFull(conn, b.to[:size])
			}
		} else if _, err = io.ReadFull(conn, request); err == nil {
			_, err = conn.Write(b.from[:size])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// socketStream reads from a plain connection what rank 1 writes.
func (b *wireRank) socketStream(size, count int) error {
	conn, err := b.plainSocket()
	if conn == nil {
		return err
	}
	for range count {
		if b.end.Rank() == 0 {
			_, err = io.ReadFull(conn, b.to[:size])
		} else {
			_, err = conn.Write(b.from[:size])
		}
		if err != nil {
			return err
		}
	}
	return nil
}
