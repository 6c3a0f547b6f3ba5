// Package shm carries messages between processes of one host: small ones through a pair of rings in memory
// that both have mapped, large ones by reading the sender's memory. Package tcp connects the processes,
// exchanges the memory, and keeps a connection beside it for goodbyes and failures.
package shm
