// Package cluster keeps a run alive: for now by its checkpoints.
//
// # On disk
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
