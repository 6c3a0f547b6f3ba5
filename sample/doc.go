// Package sample draws mini-batches: which vertices of a graph take part in a
// step, and which of its edges messages pass over.
//
// # Blocks
//
// A Batch has a list of vertices and one Block per layer. A block is a bipartite
// graph in compact CSR form: its destinations are the first Dst vertices of the
// list, its sources the first Src, and the sources of a layer are the
// destinations of the layer before. So one list names the rows of all layers:
//
//	vertices  [ seeds │ their neighbours │ neighbours of both │ ... ]
//	last layer  0..Dst   0............Src
//	layer before         0............Dst   0...................Src
//
// Methods that draw subgraphs have one square block for all layers. The seed vertices are
// those that the loss is computed on.
//
// # Estimates
//
// A block estimates the rows of its destinations in the whole graph's adjacency:
// the weights of its edges make the weighted sum over the edges drawn an
// unbiased estimate of the sum over all in-edges, wherever the method promises
// that. Degrees for means and for GCN's normalization are therefore those of the
// whole graph, except where Block.OwnDegrees says otherwise.
//
// # Draws
//
// All draws are functions of a key made of seed, epoch, batch, layer and vertex
// (or, for methods that draw a layer's vertices together, the number of the draw).
// A batch is the same on any worker and any number of threads.
package sample
