// Package multilevel partitions a graph by the multilevel scheme: coarsen it, partition the
// coarsest graph, and refine that partition level by level on the way back.
//
//	graph ── coarsen ──▶ smaller graph ── … ──▶ coarsest graph
//	                                                  │ initial partition
//	parts ◀── refine ─── parts of it ◀── … ◀── parts of the coarsest graph
//
// # Coarsening
//
// Size-constrained label propagation clusters the vertices: each joins the cluster it has
// most edge weight to, as long as that cluster stays below a weight limit (labelprop.go;
// labelprop_small.go for graphs that fit into the cache). Contraction makes one vertex of
// each cluster and sums parallel edges (contract.go). On power-law graphs the lightest
// edges are then dropped (sparsify.go).
//
//	H. Meyerhenke, P. Sanders, C. Schulz: Partitioning complex networks via
//	size-constrained clustering, 2014
//	L. Gottesbüren et al.: Deep multilevel graph partitioning, 2021 (two-hop clusters)
//	D. Zheng et al.: DistDGL, 2020 (sparsification)
//
// # Initial partition
//
// Recursive bisection, itself multilevel, several tries for each bisection (bisection.go):
// one side grows from a random vertex (grow.go) and two-way Fiduccia–Mattheyses improves
// the result (twoway_fm.go).
//
// # Refinement
//
//	large levels   jet.go           all vertices at once, in parallel
//	               rebalance.go     and back within the limits
//	               greedy.go        then single moves that gain
//	small levels   kway_fm.go       k-way Fiduccia–Mattheyses
//	               localized_fm.go  then searches from single boundary vertices
//	finest level   volume.go        only if the objective is communication volume
//
//	C. Fiduccia, R. Mattheyses: A linear-time heuristic for improving network partitions, 1982
//	V. Osipov, P. Sanders: n-level graph partitioning, 2010 (when to stop a search)
//	P. Sanders, C. Schulz: Engineering multilevel graph partitioning algorithms, 2011
//	(localized searches)
//	M. Gilbert, K. Madduri, E. Boman, S. Rajamanickam: Jet: multilevel graph partitioning
//	on graphics processing units, 2023
//
// # Beside the scheme
//
// Where vertices alone are counted and degrees are skewed, ranges of vertices by falling degree are refined too, and
// the better partition is kept (core.go). Several tries are combined: the graph is coarsened inside the blocks in which
// two partitions agree, and the better one is refined from there (combine.go).
//
//	P. Sanders, C. Schulz: Distributed evolutionary graph partitioning, 2012
//
// # Several constraints
//
// A vertex has one weight per constraint, and a part a limit for each. Clusters, moves and
// placements respect all limits at once. A state that exceeds limits is compared by its
// excess first (assignment.go) and by its cut second. Where limits are tight, coarse levels
// use half of the tolerance only, so that the finest level has some left.
//
// Limits hold from above only. Vertices without edges, where there are many, weigh nothing
// until the end and then even the parts out (isolated.go). Vertices with few edges fill some
// parts while the dense core of the graph stays together in others: that cuts least. To
// spread the edges as well, add a constraint that weighs them.
//
// # Invariants
//
// The result is a function of the problem and the seed, never of the number of threads:
// parallel stages read the state before the stage and apply what they found in a fixed
// order. Arrays live outside the garbage collector's heap (memory.go, buddy.go).
package multilevel
