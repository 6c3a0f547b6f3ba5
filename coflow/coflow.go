// Package coflow groups transfers that are of use only together, and says in
// which order groups should leave. It is pure: no sockets, no clocks.
//
// A step of training waits for whole groups (all rows of a layer, all gradients),
// so finishing one group early is worth more than bringing all of them half-way
// (Chowdhury and Stoica, "Coflow", HotNets 2012). Transports put messages in
// queues by Priority.
package coflow

import "fmt"

// Type is what a group is for, in the order of urgency.
type Type uint8

const (
	// Control: small words that others wait for (barriers, sums for batch norm).
	Control Type = iota
	// Rows: rows of vertices between the steps of a layer; the next layer waits for them.
	Rows
	// Params: gradients of parameters; the end of the step waits for them.
	Params
	// Bulk: nobody waits (checkpoints, topology, features fetched ahead).
	Bulk
)

func (t Type) String() string { return [...]string{"control", "rows", "parameters", "bulk"}[t&3] }

// ID names a group.
type ID struct {
	Epoch    uint32
	Batch    uint16
	Layer    int16 // -1: none
	Type     Type
	Backward bool
}

func (id ID) String() string {
	s := fmt.Sprintf("%v, epoch %d", id.Type, id.Epoch)
	if id.Batch > 0 {
		s += fmt.Sprintf(", batch %d", id.Batch)
	}
	if id.Layer >= 0 {
		s += fmt.Sprintf(", layer %d", id.Layer)
	}
	if id.Backward {
		s += " backwards"
	}
	return s
}

// Before reports whether a should leave before b when both wait: the more urgent
// type first; within a type the older epoch and batch, and within a batch the layer
// that is needed first, which is the lowest forwards and the highest backwards.
func Before(a, b ID) bool {
	switch {
	case a.Type != b.Type:
		return a.Type < b.Type
	case a.Epoch != b.Epoch:
		return a.Epoch < b.Epoch
	case a.Batch != b.Batch:
		return a.Batch < b.Batch
	case a.Backward != b.Backward:
		return b.Backward
	case a.Layer != b.Layer:
		return (a.Layer < b.Layer) != a.Backward
	}
	return false
}
