// Package collective is what all workers do together: barrier, broadcast,
// all-gather, reduce-scatter, all-reduce, all-to-all.
//
// # Programs, machines, the driver
//
// An algorithm is a function that writes the program of one rank: a list of
// instructions (send, receive, receive and add, wait, add, copy) on spans of numbered buffers. A
// machine runs a program: asked for its next action it answers "send this",
// "receive that", "I wait for message 7" or "done", and gets which messages are
// done. Programs and machines are pure: no goroutines, no clocks, no sockets, so a
// test runs a whole cluster of them in one loop, in any order of delivery.
//
//	algorithm ─▶ program ─▶ machine ◀─▶ driver ◀─▶ wire.Endpoint
//
// A program waits for one message at a time, in an order that its algorithm fixes,
// because sums are to be made in a fixed order anyway; what can be in flight
// meanwhile, it has posted before. So the driver is a loop on one goroutine a
// machine, blocked on one wire.Pending: the caller's own goroutine in a blocking
// call, one more for a call that was started to be waited for later. An event loop
// for all machines would need a select over every message in flight and a thread
// switch for every answer, and would hide from the wire who waits for what.
//
// # Names of messages
//
// The k-th message that a rank sends to a peer within a call is the k-th that the
// peer receives from it: every algorithm keeps this order, so it never numbers
// messages itself. The step of the message's wire.Key is that k and the number of
// the call within its coflow. Hence one rule for callers: the calls that belong to
// one coflow.ID are made in the same order on all ranks. Calls of different
// coflows may be made in any order, from any goroutine, and run side by side.
//
// # Results
//
// Every algorithm leaves the same bits on every rank, and the same bits every
// time. Between algorithms, and between numbers of ranks, the order of additions
// differs and so may the last bits, but for Ordered: its sums equal a loop
// over the ranks from 0 up, whatever the size or the path taken.
//
// Numbers are sent in their layout in memory, which is little-endian on every processor
// that Starling is built for.
package collective
