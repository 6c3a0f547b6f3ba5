// Package sample draws mini-batches: which vertices of a graph take part in a
// step, and over which of its edges their rows travel.
//
// # Blocks
//
// A Batch has a list of vertices and a Block a layer. A block is a bipartite
// graph in compact CSR form: its destinations are the first Dst vertices of the
// list, its sources the first Src, and the sources of a layer are the
// destinations of the layer before. So one list names the rows of all layers:
//
//	vertices  [ roots │ their neighbours │ the neighbours of both │ ... ]
//	last layer  0..Dst   0............Src
//	layer before         0............Dst   0...................Src
//
// Methods that draw subgraphs have one block, square, for all layers.
//
// # Estimates
//
// A block stands for the rows of its destinations in the whole graph's adjacency:
// the weights of its edges make the weighted sum over the edges drawn an
// unbiased estimate of the sum over all in-edges, wherever the method promises
// that. Degrees for means and for GCN's normalisation are therefore those of the
// whole graph, except where Block.OwnDegrees says otherwise.
//
// # Draws
//
// All draws are functions of a key made of seed, epoch, batch, layer and vertex
// (or, for methods that draw a layer's vertices together, the number of the draw).
// Whoever samples a batch, on however many threads, gets the same one.
package sample
