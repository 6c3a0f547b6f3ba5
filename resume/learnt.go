package resume

import (
	"starling/cluster"
	"starling/nn"
	"starling/train"
)

// addCaches adds what the only worker of a run keeps beside the weights, as several do.
func addCaches(c *cluster.Checkpoint, caches []nn.Tensor) error {
	if caches == nil {
		return nil
	}
	packed, err := PackTensors(caches, nil)
	if err != nil {
		return err
	}
	b, err := packed.Bytes()
	c.Files = map[string][]byte{CachesFile(0): b}
	return err
}

// Learnt are the learnt rows of all workers; none: there are none. others reports whether they kept anything else.
func (s *Start) Learnt() (list []nn.Tensor, others bool, err error) {
	if s.Spec == nil || !nn.IsTyped(s.Spec.Model.Name) {
		return nil, true, nil
	}
	saved := make([][]nn.Tensor, len(s.OwnCaches))
	for r, own := range s.OwnCaches {
		if saved[r], err = UnpackTensors(own); err != nil {
			return nil, false, err
		}
	}
	list, others = train.JoinLearnt(saved)
	return list, others, nil
}
