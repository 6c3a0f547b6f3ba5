package train

// BatchSettings say how mini-batches are drawn, in the words of users.
type BatchSettings struct {
	Sampler              string // one of sample.Names
	Size                 int
	Fanouts              []int // one per layer, from the seed vertices' on
	Replace, Weighted    bool
	Clusters, WalkLength int
	Threads              int // threads that sample
}

// batchOptions makes Options.Batches of settings; nil: nothing linked trains on mini-batches.
var batchOptions func(BatchSettings) any

// RegisterBatches registers how the settings of mini-batches become Options.Batches, in the type of the
// package that trains on them.
func RegisterBatches(options func(BatchSettings) any) { batchOptions = options }

// Options are the settings as Options.Batches.
func (b BatchSettings) Options() any {
	if batchOptions == nil {
		return nil
	}
	return batchOptions(b)
}
