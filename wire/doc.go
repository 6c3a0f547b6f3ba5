// Package wire carries messages between workers.
//
// A worker has one Endpoint. It sends and receives messages: a payload with a
// Key, which says what it is (a coflow and a step), and a Kind, for the ledger.
// Everything above (collectives, strategies) sees that interface only, and runs
// unchanged over goroutines (NewGroup), processes and hosts (Join), the system's
// MPI (JoinMPI), or a simulator.
//
// # Frames
//
// A message travels as one or more frames. Those of a large message are chunks,
// which may go over different connections and arrive in any order; between two
// chunks a more urgent message may overtake. Numbers are little-endian.
//
//	 0      magic "SWF" and version 1
//	 4      kind u8 | type u8 | backward u8 | frame u8
//	 8      from u16 | to u16
//	12      epoch u32
//	16      batch u16 | layer i16
//	20      step u32
//	24      message length u64
//	32      offset of this chunk u64
//	40      chunk length u32
//	44      CRC32C of the chunk
//	48      number of the message u32
//	52      CRC32C of bytes 0 to 51
//	56      chunk
//
// The frame byte is 0 for a message, 1 for goodbye (nothing follows on this
// connection), 2 for a failure (step is the rank that failed first, the chunk the
// cause in words), 3 for a sign of life. The number tells apart two messages that
// were given the same name by mistake. Inside shared memory the chunk's checksum
// is left out: those bytes travel no farther than a variable does. There, a large
// message is one frame of type 4, an offer, whose chunk is the address at which the
// message lies in the sender's process; the receiver reads it from there and answers
// with a frame of type 5, which has the message's number.
//
// A version number is never used again for another layout. Every length is
// checked against a bound before memory is taken for it.
//
// # Endings
//
// A connection ends with a goodbye or a failure; one that just ends means that
// the peer's process has died. An endpoint that fails tells every peer the root,
// which rank and why, and they fail with it and tell it on; so every rank of a run
// names the same culprit.
package wire
