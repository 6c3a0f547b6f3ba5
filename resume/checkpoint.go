package resume

import (
	"fmt"
	"os"
	"time"

	"starling/cluster"
	"starling/disk"
	"starling/event"
	"starling/graph"
	"starling/spec"
	"starling/train"
)

// checkpointToResume reads the checkpoint to resume from, or makes sure that the folder has
// none of another run; nil: the run starts from the beginning.
func checkpointToResume(s *spec.Spec, identity func() Identity, events event.Listener) (*Start, error) {
	if s.Checkpoints.Dir == "" {
		return nil, nil
	}
	if err := spec.CheckWritable("--checkpoint-dir", s.Checkpoints.Dir); err != nil {
		return nil, err
	}
	if s.Checkpoints.Resume {
		return resumeFrom(s, identity(), events)
	}
	list, err := cluster.Checkpoints(s.Checkpoints.Dir)
	switch {
	case err != nil || len(list) == 0:
		return nil, err
	case s.Checkpoints.ResumeIfAny:
		return resumeFrom(s, identity(), events)
	}
	return nil, hasCheckpoints(s, list)
}

func hasCheckpoints(s *spec.Spec, list []cluster.Position) error {
	return spec.Mistake("--checkpoint-dir",
		fmt.Sprintf("%s with %s of an earlier run", s.Checkpoints.Dir, event.Counted(len(list), "checkpoint")), "an empty folder",
		"continue from them with --resume, or choose another folder")
}

// gracePeriod is how long a run that was killed may still hold its folder: the system frees its
// memory first.
const gracePeriod = 3 * time.Second

// Claim keeps other runs out of the folder: each would remove the checkpoints of the
// other. A run that starts from the beginning finds there what another has left since it was looked into.
func Claim(s *spec.Spec, from *train.State) (release func(), err error) {
	release, err = claim(s)
	if err != nil || s.Checkpoints.Dir == "" || goesOn(s, from) {
		return release, err
	}
	list, err := cluster.Checkpoints(s.Checkpoints.Dir)
	if err == nil && len(list) > 0 {
		err = hasCheckpoints(s, list)
	}
	if err != nil {
		release()
	}
	return release, err
}

// goesOn reports whether a run continues from a checkpoint of its folder, which may be of before the first epoch.
func goesOn(s *spec.Spec, from *train.State) bool {
	asked := s.Checkpoints.Resume || s.Checkpoints.ResumeIfAny
	return from != nil && (asked || from.Epoch > 0 || from.Batch > 0)
}

func claim(s *spec.Spec) (release func(), err error) {
	if s.Checkpoints.Dir == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(s.Checkpoints.Dir, 0o755); err != nil {
		return nil, spec.Mistake("--checkpoint-dir", graph.Sentence(err.Error()), "a folder, or where one can be made", "")
	}
	release, free, err := disk.Claim(s.Checkpoints.Dir)
	for start := time.Now(); err == nil && !free && time.Since(start) < gracePeriod; {
		time.Sleep(100 * time.Millisecond)
		release, free, err = disk.Claim(s.Checkpoints.Dir)
	}
	if err == nil && !free {
		err = spec.Mistake("--checkpoint-dir", s.Checkpoints.Dir+", where another run keeps its checkpoints now",
			"a folder of its own", "choose another, or wait until that run has ended")
	}
	return release, err
}

// SaveCheckpoints has the loop write checkpoints, if they are asked for. saved returns when all
// are on disk.
func SaveCheckpoints(s *spec.Spec, opt *train.Options, data *graph.Dataset, events event.Listener) (
	saved func() error) {
	if s.Checkpoints.Dir == "" {
		return func() error { return nil }
	}
	var last *cluster.Position
	if from := opt.Resume; goesOn(s, from) {
		last = &cluster.Position{Epoch: from.Epoch, Batch: from.Batch}
	}
	saver := NewSaver(s, last, events)
	mark := DatasetIdentity(data)
	opt.SaveEvery, opt.SaveSteps = SaveEvery(s)
	opt.Save = func(st *train.State) error {
		c, err := ToCheckpoint(s, mark, st)
		if err != nil {
			return err
		}
		if err := addCaches(c, st.Caches); err != nil {
			return err
		}
		return NotSaved(saver.Save(c))
	}
	return func() error { return NotSaved(saver.Wait()) }
}

// SaveEvery is how many epochs or steps are between checkpoints; 0: it is the other. A step over
// the whole graph is an epoch.
func SaveEvery(s *spec.Spec) (epochs, steps int) {
	every := s.Checkpoints.Every
	if s.Mode != "mini" {
		return every.Epochs() + every.Steps(), 0
	}
	return every.Epochs(), every.Steps()
}

// NewSaver writes checkpoints that are later than a position.
func NewSaver(s *spec.Spec, last *cluster.Position, events event.Listener) *cluster.Saver {
	saved := func(path string, at cluster.Position, bytes int64) {
		events.On(event.Saved{Path: path, Epoch: at.Epoch, Batch: at.Batch, Bytes: bytes})
	}
	return cluster.NewSaver(s.Checkpoints.Dir, s.Checkpoints.Keep, last, saved)
}

// NotSaved says that it is a checkpoint that could not be written.
func NotSaved(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("checkpoint: %w", err)
}

// SavesState reports whether workers send their state while they train, for workers that are
// restarted, and whether they do so at the end.
func SavesState(s *spec.Spec) (midway, last bool) {
	last = s.Checkpoints.Dir != ""
	return last || s.Processes() && s.Cluster.OnFailure != "stop", last
}

// StatesKept is how many states a keeper has at once: the newest, one that is being received, and one that
// is being written; fewer in a run that saves less often.
func StatesKept(s *spec.Spec, from *Start) int64 {
	n, done := 0, 0
	midway, last := SavesState(s)
	if from != nil {
		n, done = 1, from.Epoch
	}
	switch every, steps := SaveEvery(s); {
	case midway && steps > 0:
		n += 3
	case midway && every > 0:
		n += max((s.Training.Epochs-1)/every-done/every, 0)
	}
	if last {
		return int64(min(n+1, 3))
	}
	return int64(min(n, 2))
}
