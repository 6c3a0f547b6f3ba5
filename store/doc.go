// Package store is a partitioned graph as one worker of many sees it: rows of features and
// labels that are pulled by number, and in-edges that are drawn, wherever their owners are.
//
// A vertex goes by its number in the partition: part k owns Offsets[k] to Offsets[k+1]-1, so
// its owner is found by binary search and its row by subtraction. What the worker itself owns
// is read in place, and so is what peers of the same host own, whose folders are mapped.
// Everything else is asked of its owner by a call (wire.Endpoint.Call), one per owner and
// step, remote owners first and the others while replies are on their way.
//
// Every service is a file that opens with its messages, and has what asks, what serves and how both write and read
// them beside each other:
//
//	pull rows           pull.go, pull_*.go   rows of features, labels and further tables (tables.go); caches (cache.go)
//	push rows           push.go              values for rows of a table
//	draw edges          draw.go, draw_*.go   in-edges of vertices; guide: by masks of the worker that asks
//	follow edges        walk.go              steps of walks; count walks: what GraphSAINT knows of them (walk_count.go)
//	draw negatives      negatives.go         vertices that replace an end of a pair
//	check pairs         linked.go            which pairs are edges
//	share sums, tables  share.go             what draws need to know of all vertices, once
//	step embeddings     embeddings_step.go   gradients of learnt rows (embeddings.go), of all workers at once
//
// In a typed graph replies have relations of edges (draw_types.go), rows are pulled and cached by type (pull_types.go,
// cache_types.go), and types without features have learnt rows (embeddings_types.go).
//
// Samplers are built on draws: sampler.go, hop.go, layerwise.go, subgraph.go, expansion.go. All requests and all waits
// are in calls.go; traffic.go plans and counts bytes.
//
// A row or a draw does not depend on who asks: features do not change, and a draw is a
// function of (seed, epoch, batch, layer, vertex) over the vertex's in-edges in the dataset's
// own order.
package store
