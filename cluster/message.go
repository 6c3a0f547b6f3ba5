package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"starling/wire"
)

// protocol is the version of the messages; a number is never used again for others.
// Version 2 has checksums, version 3 cookies.
const protocol = 3

// Bounds on what is read. Before a worker has proved that it belongs here, nearly
// nothing; after that, what a run's history and weights may take.
const (
	maxGreeting = 4 << 10
	maxLine     = 64 << 20
	maxBlob     = 8 << 30
)

const (
	// greetingTime bounds a whole handshake, however slowly the peer sends.
	greetingTime = 5 * time.Second
	// Silence is how long the other side of a control connection may send nothing
	// before it is taken for dead. Each side gives this many signs of life meanwhile.
	Silence   = 7 * time.Second
	signs     = 8
	pieceSize = 1 << 20
)

// message is one line of a control connection, and the bytes after it. The line ends
// with a tab and the checksum (CRC-32C) of all that is before it, and of the bytes.
type message struct {
	Type string          `json:"type"`
	Body json.RawMessage `json:"body,omitempty"`
	Size int64           `json:"bytes,omitempty"` // of blob
	blob []byte
	from *Stream // to send in place of blob
}

// Stream is bytes that are made as they are sent, the same each time, so that they need
// not be in memory besides.
type Stream struct {
	Size  int64
	Write func(io.Writer) error
}

// streamOf is bytes that are in memory, some after others.
func streamOf(parts ...[]byte) *Stream {
	s := &Stream{Write: func(w io.Writer) error {
		for _, b := range parts {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
		return nil
	}}
	for _, b := range parts {
		s.Size += int64(len(b))
	}
	return s
}

// Bytes are all of them.
func (s *Stream) Bytes() ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, s.Size))
	err := s.Write(b)
	return b.Bytes(), err
}

// newMessage is a message of a type.
func newMessage(kind string, body any) message {
	b, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("cluster: a %s that is no JSON: %v", kind, err)) // plain fields always are
	}
	return message{Type: kind, Body: b}
}

// Hello is how a worker introduces itself.
type Hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"` // of the build
	Job      string `json:"job,omitempty"`
	Rank     int    `json:"rank"` // -1: any
	Name     string `json:"name"` // of the host, for people
	Host     string `json:"host"` // equal for processes that can share memory
	PID      int    `json:"pid"`
	Addr     string `json:"addr"` // where it listens for other workers
	Random   string `json:"random"`
	Cookie   string `json:"cookie"`
	Watch    bool   `json:"watch,omitempty"` // it only wants to look
}

// Peer is a worker of the job, as all know it.
type Peer struct {
	Rank   int    `json:"rank"`
	Name   string `json:"name"`
	Host   string `json:"host"`
	PID    int    `json:"pid"`
	Addr   string `json:"addr"`
	Server int    `json:"server"`
}

// roster is a worker's rank, its peers and its job.
type roster struct {
	Rank  int             `json:"rank"`
	Job   string          `json:"job"`
	Peers []Peer          `json:"peers"`
	Task  json.RawMessage `json:"task"`
	Own   int64           `json:"own,omitempty"` // of the bytes, the last, are for this rank only
}

// aborted makes workers end now.
type aborted struct {
	Again bool   `json:"again"` // and to come again: the job goes on
	Why   string `json:"why"`
}

// Error is what ended the job, as the coordinator sends it.
func (a *aborted) Error() string { return a.Why }

func (a *aborted) Is(err error) bool { return err == errAborted }

// abortedBy reads such a message.
func abortedBy(m message) *aborted {
	a := &aborted{Why: errAborted.Error()}
	json.Unmarshal(m.Body, a) // of another kind: not again
	return a
}

// failed is why a worker could not go on.
type failed struct {
	Text  string `json:"text"`
	Input bool   `json:"input,omitempty"` // a user's mistake
	Echo  bool   `json:"echo,omitempty"`  // of another worker's failure
	Late  bool   `json:"late,omitempty"`  // another worker did not do its part in time
}

// control is one control connection. One goroutine reads, any may write.
type control struct {
	conn net.Conn
	in   *bufio.Reader
	// turn is held by the goroutine that writes, one message at a time. It is no mutex because it is
	// held for as long as the other side takes, which tests see in fake time.
	turn chan struct{}
	// silence is how long the other side may be silent.
	silence time.Duration
	clock   wire.Clock
	// report, if set, is what signs of life carry from time to time.
	report atomic.Pointer[func() Status]
}

func newControl(conn net.Conn, silence time.Duration, clock wire.Clock) *control {
	if silence <= 0 {
		silence = Silence
	}
	return &control{conn: conn, in: bufio.NewReaderSize(conn, maxGreeting), turn: make(chan struct{}, 1), silence: silence,
		clock: clock}
}

// grow takes the memory to read long messages fast: not before the peer has authenticated.
func (c *control) grow() { c.in = bufio.NewReaderSize(c.in, 1<<16) }

// write sends a message, giving the peer a while for every piece of it.
func (c *control) write(m message) error {
	if m.from == nil {
		m.from = streamOf(m.blob)
	}
	m.Size = m.from.Size
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	sum.Write(line)
	if err := m.from.Write(sum); err != nil {
		return err
	}
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if err := c.writeBytes(fmt.Appendf(line, "\t%08x\n", sum.Sum32())); err != nil {
		return err
	}
	return m.from.Write(inTurn{c})
}

// inTurn writes to a connection. REQUIRES: the turn was taken.
type inTurn struct{ *control }

func (c inTurn) Write(b []byte) (int, error) { return len(b), c.writeBytes(b) }

// sumEnd is the length of a tab and a checksum.
const sumEnd = 9

func sumOf(line, blob []byte) uint32 {
	return crc32.Update(crc32.Checksum(line, castagnoli), castagnoli, blob)
}

// cutSum takes the checksum off a line.
func cutSum(raw []byte) (line []byte, sum uint32, err error) {
	at := len(raw) - sumEnd
	if at < 0 || raw[at] != '\t' {
		return nil, 0, fmt.Errorf("it does not speak Starling's protocol: %.40q", raw)
	}
	n, err := strconv.ParseUint(string(raw[at+1:]), 16, 32)
	if err != nil {
		return nil, 0, fmt.Errorf("it does not speak Starling's protocol: %.40q", raw)
	}
	return raw[:at], uint32(n), nil
}

var errChanged = errors.New("a message whose checksum is wrong: bytes were changed on the way")

// REQUIRES: the turn was taken.
func (c *control) writeBytes(b []byte) error {
	for len(b) > 0 {
		piece := b[:min(len(b), pieceSize)]
		c.conn.SetWriteDeadline(wire.SocketTime(c.silence))
		if _, err := c.conn.Write(piece); err != nil {
			return err
		}
		b = b[len(piece):]
	}
	return nil
}

// read takes in the next message. The line must be shorter than line, the bytes
// after it no more than blob; each part must come within a while.
func (c *control) read(line int, blob int64, within time.Duration) (m message, raw []byte, err error) {
	c.conn.SetReadDeadline(wire.SocketTime(within))
	raw, err = readLine(c.in, line)
	if err != nil {
		return m, nil, err
	}
	raw, sum, err := cutSum(raw)
	if err != nil {
		return m, raw, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		if sumOf(raw, nil) != sum {
			err = errChanged
		}
		return m, raw, fmt.Errorf("it does not speak Starling's protocol: %w", err)
	}
	if m.Size < 0 || m.Size > blob {
		return m, raw, fmt.Errorf("a %.20q with %d bytes, more than the %d allowed", m.Type, m.Size, blob)
	}
	if m.blob, err = c.readBlob(m.Size, within); err == nil && sumOf(raw, m.blob) != sum {
		err = errChanged
	}
	return m, raw, err
}

// readBlob takes memory as bytes come, at most sixteen times as much as has come and not
// as much as was announced; in the end, no more than they need.
func (c *control) readBlob(size int64, within time.Duration) ([]byte, error) {
	var b []byte
	for int64(len(b)) < size {
		if len(b) == cap(b) {
			length := size
			for length > max(pieceSize, 16*int64(len(b))) {
				length = (length + 15) / 16
			}
			b = append(make([]byte, 0, length), b...)
		}
		piece := b[len(b):min(cap(b), len(b)+pieceSize)]
		c.conn.SetReadDeadline(wire.SocketTime(within))
		if _, err := io.ReadFull(c.in, piece); err != nil {
			return nil, err
		}
		b = b[:len(b)+len(piece)]
	}
	return b, nil
}

var errLongLine = errors.New("a line longer than allowed")

// readLine is the next line, without its end, if it is short enough.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > limit {
			return nil, errLongLine
		}
		line = append(line, piece...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case err != bufio.ErrBufferFull:
			return nil, err
		}
	}
}

// keepAlive sends signs of life until done is closed or the connection fails.
func (c *control) keepAlive(done <-chan struct{}) {
	var reported time.Time
	for {
		due, timer := wire.Alarm(c.clock, min(c.silence/signs, statusEvery))
		select {
		case <-done:
			timer.Stop()
			return
		case <-due:
			var m message
			if m, reported = c.sign(reported, c.clock.Now()); c.write(m) != nil {
				return
			}
		}
	}
}
