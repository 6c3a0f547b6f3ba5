package batch

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"starling/wire"
)

// AppendNumber writes a number in 4 or 8 bytes.
func AppendNumber(b []byte, n float64, size int) []byte {
	if size == 8 {
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(n))
	}
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(n)))
}

// MostBlock bounds the bytes of a block that a peer may announce.
const MostBlock = 1 << 32

// WaitAll waits for messages, all of them also where one fails.
func WaitAll(ctx context.Context, pending []*wire.Pending) (err error) {
	for _, p := range pending {
		err = errors.Join(err, p.Wait(ctx))
	}
	return err
}
