// Package partition divides a graph into parts, one per worker, and writes them as
// folders that a worker maps.
//
// A Method assigns every vertex to a part. Measure computes its quality; Write makes
// the partition folder; Run does all of that from a dataset folder. The multilevel
// method is a package of its own, partition/multilevel.
//
// # Terms
//
// The core of a part are its own vertices; its halo are the vertices of other
// parts that send to its core (the remote in-neighbours). The edge cut is the
// number of stored edges between parts, halved where the graph is symmetric, so
// that an undirected edge counts once; a repeated edge counts as often as it is
// stored and a self-loop never. The communication volume is the sum over parts of
// their halo vertices: the rows exchanged per layer and direction.
//
// # On disk
//
// Vertices are renumbered so that each part is one range: part k owns
// offsets[k] to offsets[k+1]-1. Owner and local number of a vertex are a binary
// search and a subtraction. Inside a part any order is valid; Write uses the one
// of order.go, boundary vertices first.
//
//	book.json              the offsets, sizes, method, servers, in a typed graph the schema and the runs of vertices
//	                       of one type: the Book
//	settings.json          only of parts that several processes made: the settings, so that the same command finds them done
//	part0/ part1/ …        each complete by itself: it may be copied to another
//	                       host alone, since its meta.json repeats the book
//
// A part is a folder of npy arrays, mapped like a dataset's. Local
// numbers are 0 to core-1 for the core and core to core+halo-1 for the halo:
//
//	meta.json              part, counts, the book, and per file its dtype, shape, bytes, CRC-32C
//	indptr.npy             int64   [core+1]
//	indices.npy            uint32  [edges]      in-neighbours, local numbers, ascending: core first, then halo by owner
//	relations.npy          uint16  [edges]      only in a typed graph, whose rows are in the order of relations first
//	weights.npy            float32 [edges]      only if the graph is weighted
//	edge_features.npy      float32 [edges, d]   only if edges have features
//	halo.npy               uint32  [halo]       new global numbers, ascending, and so by owner
//	halo_indptr.npy        int64   [parts+1]    the halo owned by q: halo[halo_indptr[q]:halo_indptr[q+1]]
//	send.npy               uint32  [sent]       core vertices that peers need, by peer
//	send_indptr.npy        int64   [parts+1]    those for q, in the order of q's halo
//	degrees.npy            uint32  [core+halo]  in-edges in the whole graph
//	gcn_degrees.npy        float64 [core+halo]  the same by weight and without self-loops; only where that differs
//	ids.npy                uint32  [core+halo]  numbers in the dataset: they key random draws
//	features.npy …         rows of the core, as in a dataset; features_K.npy: rows of its vertices of type K
//	labels.npy             int32   [core]; or uint8 or float32 [core, classes], as in the dataset
//	train.npy val.npy test.npy  uint32, local numbers, ascending, perhaps none
//
// This comment defines version 1 of the format; the number is never
// reused. A folder appears complete or not at all.
package partition
