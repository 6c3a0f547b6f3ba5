package tcp

import (
	"encoding/binary"
	"fmt"

	"starling/wire"
)

const (
	linkSize = 32
	// frameHead is the length of what precedes a chunk on a socket.
	frameHead = wire.HeaderSize + linkSize
)

// linkHeader follows the header on a socket. From it a sender sees how long frames take on
// this connection, and what has to be sent again on another when it fails.
type linkHeader struct {
	sequence uint32 // of this frame on this connection
	acked    uint32 // all frames of the other direction up to this one have arrived
	sent     uint64 // nanoseconds on the sender's clock
	echo     uint64 // sent of the last frame that has arrived
}

// put writes l to b, which has linkSize bytes.
func (l *linkHeader) put(b []byte) {
	_ = b[linkSize-1]
	le := binary.LittleEndian
	le.PutUint64(b, l.sent)
	le.PutUint64(b[8:], l.echo)
	le.PutUint32(b[16:], l.sequence)
	le.PutUint32(b[20:], l.acked)
	le.PutUint32(b[24:], 0)
	le.PutUint32(b[28:], wire.Checksum(b[:28]))
}

func (l *linkHeader) parse(b []byte) error {
	_ = b[linkSize-1]
	le := binary.LittleEndian
	if le.Uint32(b[28:]) != wire.Checksum(b[:28]) || le.Uint32(b[24:]) != 0 {
		return fmt.Errorf("%w: the checksum of the link's header is wrong", wire.ErrFrame)
	}
	l.sent, l.echo, l.sequence, l.acked = le.Uint64(b), le.Uint64(b[8:]), le.Uint32(b[16:]), le.Uint32(b[20:])
	return nil
}
