// Package wire carries messages between workers.
//
// A worker has one Endpoint. It sends and receives messages: a payload with a
// Key, which says what it is (a coflow and a step), and a Kind, for the ledger.
// Everything above (collectives, strategies) sees that interface only, and runs
// unchanged over goroutines (NewGroup), processes and hosts (tcp.Join), the system's
// MPI (mpi.Join), or any other Transport (NewEndpoint), such as a simulator.
//
// This package has what transports share: frames, keys, the queue, the inbox, the ledger, the
// clock. Transports import it, and it imports none of them:
//
//	calls  the numbers and limits of calls (pure), which this package drives
//	tcp    processes and hosts: joining, and messages over sockets
//	shm    processes of one host, beside a connection of tcp
//	mpi    the system's MPI
//	poll   how long a waiter polls, for shm and mpi
//	paths  several links between two hosts, below tcp
//
// # Frames
//
// A message travels as one or more frames. The frames of a large message are chunks,
// which may go over different connections and arrive in any order; between two
// chunks a more urgent message may overtake. Numbers are little-endian.
//
//	 0      magic "SWF" and version 2
//	 4      kind u8 | type u8 | backward u8 | frame u8
//	 8      from u16 | to u16
//	12      epoch u32
//	16      batch u32
//	20      layer i16 | service u16
//	24      step u32
//	28      number of the message u32
//	32      message length u64
//	40      offset of this chunk u64
//	48      chunk length u32
//	52      CRC32C of the chunk
//	56      limit of the response u32
//	60      CRC32C of bytes 0 to 59
//
// Then comes the chunk; on a socket there is a header of the link between the two (package tcp).
//
// The frame byte is
//
//	0  message
//	1  goodbye: nothing follows on this connection
//	2  failure: step is the rank that failed first, the chunk the text of the cause
//	3  sign of life
//	4  taken, in shared memory: the message of that number was read
//	5  request: a call of a service; step is the number of the call
//	6  response: the answer to the call of that number
//	7  refusal: there is no answer; the chunk says why
//	8  cancel: the answer to the call of that number is not waited for any more
//	9  want: the chunk is the name of a service that is to be called
//	10 served: service is its number; the chunk has the longest request u32, the longest
//	   response u32, how many calls per peer may be under way u32, and the name
//
// The number tells apart two messages that were given the same name by mistake. Inside shared
// memory the chunk's checksum is left out: those bytes travel no farther than a variable does.
// There, a large message (request, response) is one frame with 128 added to the frame byte, an
// offer, whose chunk is the address of the message in the sender's process; the receiver reads
// it from there and answers with a frame of type 4.
//
// A version number is never used again for another layout; version 1 had a batch of 16 bits
// and no calls. Every length is checked against a bound before memory is taken for it.
//
// # Endings
//
// A connection ends with a goodbye or a failure; one that just ends means that
// the peer's process has died. An endpoint that fails sends every peer the root,
// which rank and why, and they fail with it and pass it on; so every rank of a run
// names the same cause.
package wire
