package cluster

// Saver writes checkpoints while training goes on: one at a time, in order. A
// Save waits for the one before it, so at most one copy of the weights waits for
// the disk. Not for use by several goroutines at once.
type Saver struct {
	dir  string
	keep int
	// saved is called with each checkpoint that is safely on disk, on the saver's goroutine.
	saved func(path string, at Position, bytes int64)

	last    *Position // of the newest checkpoint; nil: none
	pending chan error
}

// NewSaver keeps the newest keep checkpoints in dir. last is the position of
// the checkpoint a run goes on from, or nil: it is not written again.
func NewSaver(dir string, keep int, last *Position, saved func(path string, at Position, bytes int64)) *Saver {
	return &Saver{dir: dir, keep: keep, last: last, saved: saved}
}

// Save starts to write c, which must not change any more, and returns the error
// of the one before it, if it failed.
func (s *Saver) Save(c *Checkpoint) error {
	if err := s.Wait(); err != nil || s.last != nil && c.Position == *s.last {
		return err
	}
	s.last = &c.Position
	done := make(chan error, 1)
	s.pending = done
	go func() {
		path, size, err := Save(s.dir, c, s.keep)
		if err == nil && s.saved != nil {
			s.saved(path, c.Position, size)
		}
		done <- err
	}()
	return nil
}

// Wait returns when all is on disk, or the error that kept it from there.
func (s *Saver) Wait() error {
	if s.pending == nil {
		return nil
	}
	err := <-s.pending
	s.pending = nil
	return err
}
