// Package xdp is the switch of package innet inside the kernel: programs that see packets
// where a device receives them, before the network stack does (XDP).
//
// The rules are innet.Switch's, and a test compares the two packet by packet. What
// differs is how packets leave. A packet that arrives can become one that leaves; XDP cannot
// make a second. So:
//
//   - The first packet that follows from one that arrived is written into its frame, and
//     leaves by the device that its host was last heard on.
//   - Others (further sums that a row completes, the end of a round for the other hosts) are
//     written into a ring, which the process reads and sends by its socket. Making the kernel
//     send them (BPF_PROG_RUN with live frames) was tried: setting up a run takes 18 ms.
//   - What a host says to all others (ACK, and the question who is further) passes to the
//     process's socket, after its round has been noted, and the process sends the copies.
//
// Every job has programs and maps of its own, loaded with its sizes as constants. A row for d
// aggregators of u units is a loop of d·u passes, at most maxPasses: a table with more is for
// the process, as is all that these programs do not know: IPv6, IP options, hosts on other
// devices. The process then takes the job over, with empty registers, which costs no more
// than a switch that is restarted.
//
// Tags of packets (HMAC-SHA256) are not checked here: a switch with a token does not use
// this package.
package xdp

//go:generate sh bpf/generate
