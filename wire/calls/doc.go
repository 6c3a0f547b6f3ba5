// Package calls is the pure part of the protocol by which endpoints call services of each other: the numbers of
// calls, and the limits of services. Package wire drives it, and holds the requests, the handlers and the locks.
//
// A caller first wants a service; the server answers when it serves it, with the service's number and limits. From
// then on the caller has at most Window calls of it under way; further ones wait at the caller, the most urgent
// first. So whatever callers do, a server has memory for every request that arrives, and no reader of a connection
// ever waits for a handler. Every request is answered once, by a response or a refusal, also one that was
// cancelled: that frees the caller's place in the window.
//
// The number of a call has the number of a slot in its lower bits and the slot's generation in the others. A slot
// has one call at a time, so both sides know of every number whether it is the call under way, an earlier one, or
// the next, and the tables are bounded.
//
// Errors are violations of the protocol by the peer.
package calls
