package calls

import (
	"encoding/binary"
	"fmt"

	"starling/event"
)

const (
	// MaxName bounds the name of a service.
	MaxName = 64
	// MaxBody bounds a request and a response.
	MaxBody = 1 << 30
)

// Limits are what a server announces of a service: the longest request and response, and how many calls of one peer may
// be under way.
type Limits struct{ MaxRequest, MaxResponse, Window int }

const limitsSize = 12

// Append writes the limits of a named service.
func (l Limits) Append(name string) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(l.MaxRequest))
	b = le.AppendUint32(b, uint32(l.MaxResponse))
	b = le.AppendUint32(b, uint32(l.Window))
	return append(b, name...)
}

// ParseLimits reads what Append has written.
func ParseLimits(b []byte) (l Limits, name string, err error) {
	if len(b) <= limitsSize || len(b) > limitsSize+MaxName {
		return l, "", fmt.Errorf("limits of %s", event.Tally(len(b), "byte"))
	}
	le := binary.LittleEndian
	request, response, window := le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:])
	if request > MaxBody || response > MaxBody || window < 1 || window > Max {
		return l, "", fmt.Errorf("limits of %d and %s and %s", request, event.Tally(response, "byte"),
			event.Tally(window, "call"))
	}
	return Limits{int(request), int(response), int(window)}, string(b[limitsSize:]), nil
}
