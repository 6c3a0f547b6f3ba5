// Package innet is a switch that multicasts and adds rows of vertices, and its hosts, after
// SwitchGNN (Li et al., "Accelerating Distributed Graph Learning by Using Collaborative
// In-Network Multicast and Aggregation", USENIX ATC 2025).
//
// A boundary vertex u leaves its host once, to the switch. The switch adds it into the
// aggregators of the vertices that have u as a neighbour, and sends each finished sum to the
// host of its vertex:
//
//	s_v = Σ_{u → v, on another host} q_u        q_u, s_v: 32-bit fixed point
//
// Switch and Host are pure: packets in, packets out, time is an argument. Package innet/udp
// drives them with sockets; a simulator may drive them in virtual time.
//
// # Packets
//
// Numbers are little-endian. The first 13 bytes have the fields of the paper's §4; a source
// is named by its row in the block's table, a destination by its aggregator (slot).
//
//	 0  source u32           row of the block's table
//	 4  destination u32      slot of the block
//	 8  block u16
//	10  count u16            rows in a partial sum
//	12  flags u8             ACK 1, fetch 2, ECN 4, resend 8, sum 16, done 32, overflow 64
//	13  units u8             128-byte units of a row that a packet carries
//	14  from u16             host, or switch below, that made the packet
//	16  to u16               host that it is for, where it is for one
//	18  value u16            of a done packet: see Barrier
//	20  last u16             the value that was agreed on in the round before
//	22  zero u16
//	24  round u32
//	28  sequence u32         of a control protocol; the switch does not look at it
//	32  job u64
//	40  body                 32-bit words: lanes of a row or sum, bitmap, or pairs of a fetch
//
// # Rounds
//
// All hosts go through the same rounds. A round is one block of one exchange for one group
// of columns; the opening round of an exchange has no rows. Barrier: a host that has all its
// sums sends done; when all hosts have, the switch notifies all of them and adds one to its
// round. The values of done packets are maximised on the way, so that in the opening round
// hosts agree on the exponent of their numbers.
//
// # Invariants
//
//   - In a round a row is added at most once: the switch keeps, per row, the round in which
//     it was last added (one register). Duplicated packets are dropped.
//   - An aggregator keeps the round it is of. The first row of another round resets it, so
//     that no aggregator is lost, whatever was left in it.
//   - A sum leaves when the count of its rows equals the table's. Since rows are added at
//     most once, it is the sum of exactly those, whatever was lost, repeated or released.
//   - A packet with the resend flag is never added. It releases the aggregator that it names
//     and goes to its host as it is. Hosts add such rows themselves, as the same integers:
//     sums do not depend on what was lost.
//   - A packet of a later round proves that the barrier was passed. So a switch that has
//     lost its registers continues with the first packet that it sees. A host that waits at
//     the barrier asks the others (done and fetch flags together); one that is in a later
//     round answers with an empty ACK of that.
package innet
