// Package wire carries messages between workers.
//
// A worker has one Endpoint. It sends and receives messages: a payload with a
// Key, which says what it is (a coflow and a step), and a Kind, for the ledger.
// Everything above (collectives, strategies) sees that interface only, and runs
// unchanged over goroutines, processes, hosts, or a simulator.
//
// # Frames
//
// A message travels as one or more frames. Those of a large message are chunks,
// which may go over different connections and arrive in any order; between two
// chunks a more urgent message may overtake. Numbers are little-endian.
//
//	 0      magic "SWF" and version 1
//	 4      kind u8 | type u8 | backward u8 | zero u8
//	 8      from u16 | to u16
//	12      epoch u32
//	16      batch u16 | layer i16
//	20      step u32
//	24      message length u64
//	32      offset of this chunk u64
//	40      chunk length u32
//	44      CRC32C of the chunk
//	48      CRC32C of bytes 0 to 47
//	52      zero u32
//	56      chunk
//
// A version number is never used again for another layout. Every length is
// checked against a bound before memory is taken for it.
package wire
