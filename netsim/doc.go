// Package netsim simulates networks in virtual time: links, switches and hosts. It answers
// when a transfer ends and what queues it met, and it is a wire transport, so that a run
// trains a real graph on simulated workers without any change.
//
// # The model
//
// Time is whole picoseconds. A link has two directions, each with a rate and a delay; a
// packet of b bytes occupies a direction for b/rate and arrives delay later. Switches store
// and forward: a packet that has arrived whole is put into the queue of its output port
// without delay. Each output port has strict priorities (queues=): the DSCP of a packet, 0 to
// 63, is its urgency, and dscp*queues/64 its priority; a port transmits the oldest packet of
// the highest priority that waits. A packet that finds buffer= full is dropped (tail drop),
// one that finds ecn= bytes or more of its priority is marked. Queue lengths do not count the
// packet in transmission. Routing takes shortest paths: of equal ones one per connection by a
// hash (ecmp), or by packets one after the other (spray). Hosts do not forward.
//
// At packet level (Packets) hosts make packets when their port is free, for one connection
// after the other in the most urgent priority. With control=dctcp connections have a window,
// see connection.go; acknowledgements take the time of the way back but no bandwidth. With
// control=none packets are datagrams: nothing is sent again, and a sender is as fast as its
// port. At flow level (Flows) there are rates instead of packets, see flows.go.
//
// # Determinism
//
// A simulation is a value without global state, used by one goroutine at a time. Events of
// one time happen in the order of their scheduling. Random choices (background traffic) are
// functions of a seed. So the same input gives the same picosecond, on any host.
//
// # As a wire transport
//
// Endpoints joins ranks by a simulated network, whose clock all of them have. See there for
// what takes virtual time and what does not. Scenario is a whole run.
package netsim
