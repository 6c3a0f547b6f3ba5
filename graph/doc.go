// Package graph holds a graph with its features, labels and splits, in memory
// and as a folder on disk.
//
// # In memory
//
// A CSR lists the in-edges of every vertex: the neighbours that send to v are
// Indices[Indptr[v]:Indptr[v+1]]. What FromEdges builds has every such list in
// ascending order, so the same edges give the same bytes in any order and
// on any number of cores. A graph has fewer than 2^32 vertices and
// fewer than 2^32 edges, so an edge's position fits a uint32.
//
// # On disk
//
// A dataset is a folder of npy arrays. All of them can be mapped, and
// Python reads them with np.load(name, mmap_mode="r"):
//
//	meta.json              sizes, name, names of classes and columns, scale of the features,
//	                       notes, and per file its dtype, shape, bytes, CRC-32C
//	indptr.npy             int64   [nodes+1]
//	indices.npy            uint32  [edges]        in-neighbours of v: indices[indptr[v]:indptr[v+1]]
//	weights.npy            float32 [edges]        only if the graph is weighted
//	edge_features.npy      float32 [edges, d]     only if edges have features
//	edge_times.npy         int64   [edges]        only if edges have times, see times.go
//	times.npy              int64   [nodes]        only if vertices have times
//	features.npy           float32 [nodes, dim]   or uint16, the upper half of a float32 (bfloat16)
//	features_indptr.npy    int64   [nodes+1]      these three instead, if features are sparse
//	features_indices.npy   uint32  [nonzeros]
//	features_values.npy    float32 [nonzeros]
//	labels.npy             int32   [nodes]        -1 = unlabelled
//	                       uint8   [nodes, classes]  if the task is multi-label: 1 = belongs to the class,
//	                                              0 = does not, a row of 255 = unlabelled
//	                       float32 [nodes, classes]  if it is regression: the numbers to be predicted,
//	                                              a row of NaN = unlabelled
//	train.npy val.npy test.npy  uint32, ascending vertex ids
//	preparation.json       how tables became these numbers, see preparation.go
//	ids.npy or ids.txt     int64 [nodes], or one line per vertex: what the vertex was called before import
//
// Everything is little-endian and in C order. Only meta.json, indptr.npy and
// indices.npy must exist; meta.json says what else belongs to the folder. Its own
// last field is the CRC-32C of its bytes with the eight digits of that field read
// as zeros; leave the field out when writing the file by hand. The same holds for
// the list of arrays. This comment defines version 1 of the format; the number
// is never reused.
//
// Version 3 is version 1 with arrays in pieces, see pieces.go: meta.json lists the files of each such array, and
// np.concatenate of them, in that order, is the array.
//
//	indices-00000.npy indices-00001.npy …  likewise indptr, weights, features, labels, ids
//
// A folder appears complete or not at all: Writer fills a hidden sibling folder,
// syncs it, and renames it.
//
// A mapped file must not be truncated while it is open: the kernel kills a process
// that reads past its end (mapped.go says what becomes of that). Writer never changes a file in place.
package graph
