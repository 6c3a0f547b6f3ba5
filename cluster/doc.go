// Package cluster keeps the workers of a run together: they meet, they are
// started, watched and stopped, and what they have learnt is saved.
//
// # Meeting
//
// A Coordinator listens; every worker Joins it over one TCP connection, which
// stays open for the whole run. On it go messages, a line of JSON each, some
// followed by raw bytes whose number the line tells:
//
//	worker       hello      protocol and build, job, rank (-1: any), host, where it listens, a random number
//	coordinator  challenge  a random number
//	worker       proof      HMAC-SHA256(token; "worker", the hello's line, the challenge)
//	coordinator  welcome    HMAC-SHA256(token; "coordinator", the hello's line, the challenge)
//	                        … until all have come …
//	coordinator  roster     the worker's rank, all workers, the job, bytes to start from
//	worker       event      something happened (package event)
//	worker       result     it is done          or   failure: why it is not
//	coordinator  stop       end after this epoch;    abort: end now;   bye: all is well
//	both         ping       a sign of life
//
// or at any time "refused", with the reason. The worker proves first that it knows
// the token, which itself never travels, so that whoever dials learns nothing.
// Without a token, on loopback only, the proofs are made with an empty one.
//
// Who started the worker's process, and as which of how many, Environment reads from
// what launchers say; where the coordinator is, a Rendezvous tells: an address, a file
// in a shared folder, or a key of etcd.
//
// What a message means is decided by session.go alone, without sockets, clocks
// or goroutines; coordinator.go, member.go and launch.go are its edges.
//
// # Checkpoints on disk
//
// A folder of checkpoints holds one folder each, named by the number of epochs
// done:
//
//	epoch-000123/state.json              epochs, steps, the run's spec, its history, and per file its size and CRC-32C
//	epoch-000123/GROUP.safetensors       one file a group of arrays: model, optimiser, best
//
// A checkpoint is written into a hidden folder beside its place, every file
// synced, and renamed; so it is there whole or not at all, also after a crash or
// on a full disk. state.json carries the CRC-32C of its own bytes with the eight digits
// of that field read as zeros. The newest few are kept: should the newest turn
// out damaged, the one before it serves. Version 1 of the format is what this comment
// says; the number is never used again for anything else.
package cluster
