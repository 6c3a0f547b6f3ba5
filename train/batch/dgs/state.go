package dgs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"starling/nn"
	"starling/store"
	"starling/train"
)

// What a checkpoint has of a worker's masks: the versions that its next batches are drawn by, each
// under its number, so that a run which goes on draws as one that was never stopped.
const (
	keptVersions = "dgs.versions" // their numbers
	keptNodes    = "dgs.nodes."   // the mask of other vertices, and masks
	keptFetched  = "dgs.columns." // columns that are fetched
	keptLearnt   = "dgs.learnt."  // numbers of vertices and columns that the next masks begin with
)

// Kept are the masks that batches after the last step need, also those of epochs that this run does not have: a run of
// more epochs goes on from them. It waits for those that are being learnt.
func (g *guide) Kept() ([]nn.Tensor, error) {
	list := []nn.Tensor{}
	var numbers []float64
	for _, number := range g.needed() {
		v := g.slot(number)
		if err := g.wait(g.ctx, number, v.learnt); err != nil {
			return nil, err
		}
		if v.err != nil {
			return nil, g.failed(number, v.err)
		}
		numbers = append(numbers, float64(number))
		list = append(list, v.tensors()...)
	}
	numbers = append(numbers, 0) // never empty: arrays have numbers
	return append(list, nn.Tensor{Name: keptVersions, Shape: []int{len(numbers)}, F64: true, Data: numbers}), nil
}

// tensors are the masks of a version.
func (v *version) tensors() (list []nn.Tensor) {
	if v.nodes != nil {
		data := []float64{float64(v.missing)}
		for _, m := range v.nodes {
			data = append(data, float64(m))
		}
		list = append(list, nn.Tensor{Name: fmt.Sprint(keptNodes, v.number), Shape: []int{len(data)}, Data: data})
	}
	if v.columns != nil {
		data := make([]float64, len(v.columns))
		for i, c := range v.columns {
			data[i] = float64(c)
		}
		list = append(list, nn.Tensor{Name: fmt.Sprint(keptFetched, v.number), Shape: []int{len(data)}, F64: true,
			Data: data})
	}
	if theta := slices.Concat(v.theta.nodes, v.theta.columns); len(theta) > 0 {
		list = append(list, nn.Tensor{Name: fmt.Sprint(keptLearnt, v.number), Shape: []int{len(theta)}, F64: true,
			Data: theta})
	}
	return list
}

// needed are the versions of the batches that are to come: masks of weights that there have been. Those that were put
// off are begun.
func (g *guide) needed() (list []int) {
	at, put := g.due()
	for _, j := range put {
		g.begin(j)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for number := range g.mu.versions {
		if (number == at || number == at-1) && number > 0 && (!g.opt.DGSAsync || number == at) {
			list = append(list, number)
		}
	}
	slices.Sort(list)
	return list
}

// due is the newest version that is needed, and the weights that were put off, in their order.
func (g *guide) due() (at int, put []job) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(g.mu.later)) {
		put = append(put, g.mu.later[number])
	}
	clear(g.mu.later)
	if g.opt.DGSAsync {
		return g.mu.latest, nil
	}
	return g.mu.done / g.opt.DGSEvery, put
}

// restore takes what Kept has, and tells owners. A checkpoint without any, of another partition,
// begins with ordinary draws.
func (g *guide) restore(list []nn.Tensor) error {
	byName := map[string][]float64{}
	for _, t := range list {
		if strings.HasPrefix(t.Name, "dgs.") {
			byName[t.Name] = t.Numbers()
		}
	}
	for _, n := range byName[keptVersions] {
		number := int(n)
		if number < 1 {
			continue
		}
		v := g.slot(number)
		if nodes := byName[fmt.Sprint(keptNodes, number)]; len(nodes) > 0 {
			if len(nodes) != 1+len(g.remote) {
				return train.Mistake("the checkpoint has masks of %d remote vertices and this worker %d; "+
					"continue with the same partition and --dgs-memory", len(nodes)-1, len(g.remote))
			}
			v.missing = byte(nodes[0])
			for _, m := range nodes[1:] {
				v.nodes = append(v.nodes, byte(m))
			}
		}
		for _, c := range byName[fmt.Sprint(keptFetched, number)] {
			if c < 0 || int(c) >= g.x.cols {
				return train.Mistake("the checkpoint's mask %d fetches column %g of %d; it was changed, go on from an "+
					"earlier one", number, c, g.x.cols)
			}
			v.columns = append(v.columns, uint32(c))
		}
		if v.columns != nil {
			v.keep = store.NewColumns(v.columns, g.x.cols)
		}
		if theta := byName[fmt.Sprint(keptLearnt, number)]; len(theta) == len(g.remote)+g.x.cols {
			v.theta = learnt{theta[:len(g.remote)], theta[len(g.remote):]}
		}
		if g.last == nil || g.last.number < number {
			g.last = v
		}
		close(v.learnt)
		if err := g.tell(g.of.Site.Ctx, number, v); err != nil {
			return err
		}
		g.publish(number, v)
	}
	return nil
}
