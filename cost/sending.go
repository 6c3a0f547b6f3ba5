package cost

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"starling/wire"
	"starling/wire/tcp"
)

// Sending is what a host's processors take to move messages over TCP: copies, checks, system
// calls and the kernel's part. Sending and receiving take the same; a process that does both
// cannot tell them apart.
type Sending struct {
	Byte    float64 // seconds of one core, at either end
	Message float64 // seconds of one core, at either end
}

// Sizes of messages that are timed: long ones give what a byte takes, short ones what a
// message does.
const (
	longMessage, longCount   = 1 << 20, 64
	shortMessage, shortCount = 64, 4096
	messagesInFlight         = 4
)

// MeasureSending moves messages between two endpoints on loopback and reads the process's
// processor time, which what else runs on the host touches less than elapsed time.
func MeasureSending(ctx context.Context, cpu func() float64) (s Sending, err error) {
	a, b, err := loopbackPair(ctx)
	if err != nil {
		return s, fmt.Errorf("measuring what sending takes: %w; give rates instead", err)
	}
	defer a.Close()
	defer b.Close()
	step := uint32(0)
	spent := func(size, count int) (float64, error) {
		begin := cpu()
		err := stream(ctx, a, b, &step, size, count)
		return (cpu() - begin) / float64(count), err
	}
	if _, err = spent(longMessage, 8); err != nil { // takes memory and opens windows
		return s, err
	}
	short, err := spent(shortMessage, shortCount)
	if err != nil {
		return s, err
	}
	long, err := spent(longMessage, longCount)
	return fromTimes(short, long), err
}

// fromTimes are the rates of both ends from the seconds of a short and a long message.
func fromTimes(short, long float64) Sending {
	perByte := max(0, long-short) / (longMessage - shortMessage)
	return Sending{Byte: perByte / 2, Message: max(0, short-shortMessage*perByte) / 2}
}

// loopbackPair is two endpoints joined by TCP.
func loopbackPair(ctx context.Context) (a, b wire.Endpoint, err error) {
	var cfg [2]wire.Config
	addrs := make([]string, 2)
	for r := range cfg {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		addrs[r] = l.Addr().String()
		cfg[r] = wire.Config{Options: wire.DefaultOptions(), Rank: r, Size: 2, Job: "sending", Addrs: addrs,
			Listener: l, NoSharedMemory: true}
		cfg[r].Timeout = 30 * time.Second
	}
	var ends [2]wire.Endpoint
	var errs [2]error
	var wg sync.WaitGroup
	for r := range cfg {
		wg.Go(func() { ends[r], errs[r] = tcp.Join(ctx, cfg[r]) })
	}
	wg.Wait()
	for r, e := range errs {
		if e != nil {
			if other := ends[1-r]; other != nil {
				other.Close()
			}
			return nil, nil, e
		}
	}
	return ends[0], ends[1], nil
}

// stream sends messages from one endpoint to the other, a few at a time.
func stream(ctx context.Context, from, to wire.Endpoint, step *uint32, size, count int) error {
	out, failed := make([]byte, size), make(chan error, 1)
	first := *step
	*step += uint32(count)
	key := func(i int) wire.Key { return wire.Key{Step: first + uint32(i)} }
	go func() {
		failed <- inTurn(ctx, count, func(i int) *wire.Pending { return from.Send(1, key(i), wire.Feature, out) })
	}()
	var into [messagesInFlight][]byte
	for i := range into {
		into[i] = make([]byte, size)
	}
	err := inTurn(ctx, count, func(i int) *wire.Pending {
		return to.Recv(0, key(i), wire.Feature, into[i%messagesInFlight])
	})
	if e := <-failed; err == nil {
		err = e
	}
	return err
}

// inTurn begins operations so that a few are under way, and waits for all.
func inTurn(ctx context.Context, count int, begin func(i int) *wire.Pending) error {
	var pending [messagesInFlight]*wire.Pending
	for i := range count + messagesInFlight {
		slot := i % messagesInFlight
		if i >= messagesInFlight {
			if pending[slot] != nil {
				if err := pending[slot].Wait(ctx); err != nil {
					return err
				}
			}
			pending[slot] = nil
		}
		if i < count {
			pending[slot] = begin(i)
		}
	}
	return nil
}
