// Package shards imports a folder of shards, files of edges and perhaps of vertices, by several processes that share a
// folder (package disk/tasks), none of which holds the ids, the edges or the features.
//
//	read      shard by shard: ids and edges. A chunk of edges that fits the memory is numbered by its own ids, which are
//	          sorted: a run
//	number    the dictionary: runs are merged, range by range; a vertex's number is its place among all ids
//	spread    shard by shard: a chunk's ids are looked up in the dictionary, once each, in their order, and its edges
//	          grouped by blocks of targets
//	sort      piece by piece, a range of blocks: the edges of all shards, sorted into rows
//	rows      piece by piece: the rows of the tables of vertices, in the order of vertices
//	place     piece by piece: the arrays of the dataset, whose offsets are known now
//
// The result is a dataset whose arrays are in pieces (graph/pieces.go), a piece per range of vertices. Its bytes depend
// on the shards and the settings (the memory decides how many pieces there are), not on the number of processes, nor on
// when any of them was killed: a task that is done is kept, and one that was not finished is done again.
//
// Whole numbers are numbered in ascending order, as package dataset does; names in ascending order of their bytes, and
// not of their first appearance.
package shards
