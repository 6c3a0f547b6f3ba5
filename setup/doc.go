// Package setup turns a spec into what a run is made of: data that is opened and checked, parts of it,
// devices, and what the spec says of workers.
//
// A reader finds, in this order:
//
//	interrupt, progress         work that a user may stop, how far it is, and notes that are shown once
//	workers                     what a spec says of workers: servers, time limits, who may join
//	lacking, output             what is refused before training, and why
//	open, pairs, lists          the dataset, files of it that became shorter meanwhile, and pairs of vertices
//	parts, cut, once            a partition, given or made for the run, once however often it is asked for
//	device, garbage             what a worker computes with, and how much garbage it may keep
//	ondisk                      whether features are read from disk ahead of batches
package setup
