// Package coflow groups transfers that are of use only together, and has the orders in
// which groups may leave. It is pure: no sockets, no clocks.
//
// A step of training waits for whole groups (all rows of a layer, all gradients),
// so finishing one group early is worth more than bringing all of them half-way
// (Chowdhury and Stoica, "Coflow", HotNets 2012). Transports queue messages by an Order.
package coflow

import "fmt"

// Type is what a group is for, in the order of urgency.
type Type uint8

const (
	// Control: small messages that others wait for (barriers, sums for batch norm).
	Control Type = iota
	// Rows: rows of vertices between the steps of a layer; the next layer waits for them.
	Rows
	// Params: gradients of parameters; the end of the step waits for them.
	Params
	// Inputs: what a batch or epoch to come is made from (draws of neighbours, rows of features,
	// rows that will be an epoch stale); that one waits for them.
	Inputs
	// Bulk: no step waits for it (topology before the first step, checkpoints).
	Bulk
	types
)

func (t Type) String() string {
	if t >= types {
		return fmt.Sprintf("type %d", uint8(t))
	}
	return [types]string{"control", "rows", "parameters", "inputs", "bulk"}[t]
}

// ID names a group.
type ID struct {
	Epoch    uint32
	Batch    uint32
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

// Preparing is the group of messages between workers before training. Its batch distinguishes
// it from the exchange of constant features.
var Preparing = ID{Type: Bulk, Layer: -1, Batch: 1}
