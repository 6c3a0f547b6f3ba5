// Package generate draws random graphs of a chosen shape and writes them as dataset
// folders (see package graph).
//
//	sbm    sbm.go    a degree-corrected block model with homophily
//	rmat   rmat.go   R-MAT, skewed degrees
//	er     er.go     G(n, m), uniform
//	typed  typed.go  several types of vertices and relations
//	       demo.go   the small dataset of starling get demo
//	       like.go   parameters with the published sizes of public datasets
//
// Labels follow the model's communities (tasks.go), features are Gaussian around a centre
// per class (features.go), splits are shares of the labelled vertices.
//
// A dataset is a pure function of its parameters: every edge, label, feature and split is
// drawn under a key made of the seed and its own index, so the same seed gives the same
// bytes on any number of cores. Edges are never held as a list: the builder draws them
// twice, once to count and once to place.
package generate
