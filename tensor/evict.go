package tensor

import "unsafe"

// Evictor is a device whose matrices can leave its memory, to a file for example, and come
// back. All handles of a matrix stay; between the two its numbers must not be used. A device with memory of its own
// may keep the bytes on the host by itself, and then calls neither save nor load.
type Evictor interface {
	// Evict calls save with the bytes of a matrix that New or Scratch made, and gives its
	// memory back. It reports whether it did: views and what FromHost made stay where they are.
	Evict(m Matrix, save func(bytes []byte) error) (bool, error)
	// Restore gives an evicted matrix memory again, which load fills.
	Restore(m Matrix, load func(bytes []byte) error) error
}

// Move says that a buffer is elsewhere now, for devices.
func (b *Buffer) Move(addr unsafe.Pointer) { b.addr = addr }
