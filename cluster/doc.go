// Package cluster keeps the workers of a run together: rendezvous, launching, membership,
// failures and checkpoints.
//
// # Joining
//
// A Coordinator listens; every worker Joins it over one TCP connection, which
// stays open for the whole run. On it go messages, one line of JSON each, some
// followed by raw bytes whose number is in the line:
//
//	worker       hello      protocol and build, job, rank (-1: any), host, where it listens, a random number
//	coordinator  challenge  a random number
//	worker       proof      HMAC-SHA256(token; "worker", the hello's line, the challenge)
//	coordinator  welcome    HMAC-SHA256(token; "coordinator", the hello's line, the challenge)
//	                        … until all have joined …
//	coordinator  roster     the worker's rank, all workers, the job, bytes to start from
//	worker       event      something happened (package event)
//	worker       result     it is done          or   failure: why it is not
//	coordinator  stop       end after this epoch;    abort: end now;   bye: all is well
//	both         ping       a sign of life
//
// or at any time "refused", with the reason. The worker proves first that it knows
// the token, which itself is never sent, so that an unauthenticated peer learns nothing.
// Without a token, on loopback only, the proofs are made with an empty one.
//
// Environment reads the worker's launcher, rank and size from environment variables. A
// Rendezvous holds the coordinator's address: the address itself, a file in a shared folder,
// or a key of etcd.
//
// What a message means is decided by session.go alone, without sockets, clocks
// or goroutines; coordinator.go, member.go and launch.go are its edges.
//
// # Checkpoints on disk
//
// A folder of checkpoints holds one folder each, named by the number of epochs
// done, and of steps since:
//
//	epoch-000123/state.json              epochs, steps, the run's spec, its history, and per file its size and CRC-32C
//	epoch-000123/GROUP.safetensors       one file per group of arrays: model, optimiser, best
//	epoch-000123-step-000500/            the same, 500 steps into the epoch after those 123
//
// A checkpoint is written into a hidden folder beside its place, every file
// synced, and renamed; so it is there whole or not at all, also after a crash or
// on a full disk. state.json carries the CRC-32C of its own bytes with the eight digits
// of that field read as zeros. The newest few are kept: should the newest turn
// out damaged, the one before it serves. Version 1 of the format is what this comment
// says; the number is never used again for anything else.
package cluster
