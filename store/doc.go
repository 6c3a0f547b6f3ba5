// Package store is a partitioned graph as one worker of many sees it: rows of features and
// labels that are pulled by number, and in-edges that are drawn, wherever their owners are.
//
// A vertex goes by its number in the partition: part k owns Offsets[k] to Offsets[k+1]-1, so
// its owner is found by binary search and its row by subtraction. What the worker itself owns
// is read in place, and so is what peers of the same host own, whose folders are mapped.
// Everything else is asked of its owner by a call (wire.Endpoint.Call), one per owner and
// step, remote owners first and the others while answers are on their way.
//
//	pull   numbers [n] uint32 → rows [n, cols] in the type of the dataset
//	draw   key, fanout, numbers [n] → in-edges of each, and what is known of their sources
//	push   numbers [n], values [n, cols] → rows that their owner updates
//
// Further tables have a placement of their own (AddRows): rows of edges, or learnt rows of vertices
// (Embeddings). Owners also draw negatives for their vertices (ask.go) and take the steps of walks (follow.go).
//
// A row or a draw does not depend on who asks: features do not change, and a draw is a
// function of (seed, epoch, batch, layer, vertex) over the vertex's in-edges in the dataset's
// own order.
package store
