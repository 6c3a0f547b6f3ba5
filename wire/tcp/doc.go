// Package tcp joins processes and hosts, and carries their messages over sockets. Peers on one host send
// messages through shared memory instead (package shm) and keep a connection for their endings.
//
// On a socket a header of the link stands between a frame's header and its chunk. A sender sees from it how long frames
// take on a connection, and what to send again on another when the connection fails.
//
//	64      time of sending u64: nanoseconds on the sender's clock, never 0
//	72      echo u64: the time of sending of the last frame that has arrived; 0: none
//	80      sequence of this frame on this connection u32, from 1
//	84      acknowledged u32: frames of the other direction that have arrived
//	88      zero u32
//	92      CRC32C of bytes 64 to 91
//	96      chunk
package tcp
