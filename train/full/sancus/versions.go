package sancus

// versions is the tracker of Algorithms 4 and 5: the epoch in which each owner's block,
// as it is cached here, was computed. A block that is older than the bound makes its owner
// ACTIVE, and an ACTIVE owner broadcasts to all. So all workers hold the same versions,
// and each tells from its own who is ACTIVE: no message says so.
//
// Under the epoch rule all are ACTIVE together. Under the adaptive one the versions of
// owners differ, as in figure 14(b): the first broadcast of owner j counts as one of
// j mod (bound+1) epochs before. There it is because workers run at different speeds; ours
// share the all-reduce of every epoch, and what is left of it is that in each epoch about
// as many broadcast.
type versions struct {
	bound   staleness
	ranks   int
	version []int // by owner
	first   int   // epoch of the run: nothing is cached before
	epoch   int   // that was checked last
	active  []bool
}

func newVersions(bound staleness, ranks, first int) *versions {
	return &versions{bound: bound, ranks: ranks, first: first, epoch: first - 1}
}

// at is who is ACTIVE in an epoch, from the first on.
func (v *versions) at(epoch int) []bool {
	if epoch < v.epoch { // of another plan
		v.epoch = v.first - 1
	}
	for v.epoch < epoch {
		v.epoch++
		v.check()
	}
	return v.active
}

// check finds the owners whose blocks have become too stale, and stamps these with the
// epoch: it is in it that they are computed again.
func (v *versions) check() {
	if v.epoch == v.first {
		v.version, v.active = make([]int, v.ranks), make([]bool, v.ranks)
		for j := range v.version {
			v.version[j], v.active[j] = v.first, true
			if v.bound.rule == "adaptive" {
				v.version[j] -= j % (v.bound.epochs + 1)
			}
		}
		return
	}
	for j, version := range v.version {
		if v.active[j] = v.epoch-version > v.bound.epochs; v.active[j] {
			v.version[j] = v.epoch
		}
	}
}
