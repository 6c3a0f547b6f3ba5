package resume

import (
	"starling/cluster"
	"starling/disk"
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

// Learnt are the learnt rows of all workers, which are read when they are asked for; none: there are none. others reports
// whether the workers kept anything else.
func (s *Start) Learnt() (list []nn.Tensor, others bool, err error) {
	if s.Spec == nil || !nn.IsTyped(s.Spec.Model.Name) && s.Spec.Embeddings.Dim == 0 {
		return nil, true, nil
	}
	return joinLearnt(s.OwnCaches)
}

// joinLearnt joins the learnt rows in the files of workers.
func joinLearnt(files [][]byte) (list []nn.Tensor, others bool, err error) {
	saved := make([][]nn.Tensor, len(files))
	for r, own := range files {
		if saved[r], err = nn.OpenSafetensors(own); err != nil {
			return nil, false, err
		}
	}
	list, others = train.JoinLearnt(saved)
	return list, others, nil
}

// openShards are the learnt rows in files that this host sees.
func openShards(paths []string) ([]nn.Tensor, error) {
	var files [][]byte
	for _, path := range paths {
		b, err := disk.Map(path)
		if err != nil {
			return nil, err
		}
		files = append(files, b)
	}
	list, _, err := joinLearnt(files)
	return list, err
}
