package train

// halo is exact full-graph training on many workers. A worker's core vertices have
// in-neighbours elsewhere, its halo; the rows of the halo are received from their
// owners, one message a peer and layer, while the sums over the core are computed.
// Backwards the gradient of each halo row returns to its owner, which adds those of
// all workers in rank order.
//
// An epoch moves, per layer and direction, one row for every (vertex, part that
// needs it): the communication volume of the partition. The sum over constant
// features is computed once, before the first epoch.
func newHalo(s *site) (planned, error) {
	x, _, err := overHalo(s, &exact{site: s})
	return x, err
}
