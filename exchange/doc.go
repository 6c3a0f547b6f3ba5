// Package exchange is what full-graph strategies share: which rows a worker needs from
// others and gives to them, how rows travel, and how gradients return.
//
// A worker owns the vertices of its part. Their in-neighbours on other workers are its
// halo. A layer sums over the edges from local rows while halo rows are on their way, and
// then over the others (Aggregator):
//
//	y = A_local·z_local + A_halo·z_halo        z_local [src, w], z_halo [halo, w], y [dst, w]
//
// Backwards the gradient of every halo row returns to its owner, the reverse exchange. A
// strategy is a HaloPlan, which says which rows a layer has where, and a Policy, which says
// what halo rows are, and when they travel. Policies are built from
//
//	Rows      every row of a halo in every pass, one message per peer, layer and direction
//	Blocks    all rows of every worker to every other
//	Stale     rows as they last came, in the place of those that do not come
//	means     moving stale rows so that they have the mean of the fresh ones
//	Replicas  vertices of other workers that are computed here too
//
// Rows may be relayed inside servers, leave out their zeros, or travel in fewer bits,
// whatever the policy.
package exchange
