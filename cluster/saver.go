package cluster

import (
	"fmt"
	"path/filepath"
)

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

	known map[Position]bool // checkpoints in dir that are this run's, or were there before it
}

// NewSaver keeps the newest keep checkpoints in dir. last is the position of
// the checkpoint a run goes on from, or nil: it is not written again.
func NewSaver(dir string, keep int, last *Position, saved func(path string, at Position, bytes int64)) *Saver {
	s := &Saver{dir: dir, keep: keep, last: last, saved: saved, known: map[Position]bool{}}
	list, _ := Checkpoints(dir) // a folder that cannot be read cannot be written either
	for _, p := range list {
		s.known[p] = true
	}
	return s
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
		done <- s.save(c)
	}()
	return nil
}

// save writes c, unless another run has written to the folder: each would replace and remove the checkpoints of the
// other. A claim of the folder keeps other runs out, but not on file systems without locks.
func (s *Saver) save(c *Checkpoint) error {
	list, err := Checkpoints(s.dir)
	if err != nil {
		return err
	}
	for _, p := range list {
		if !s.known[p] {
			return fmt.Errorf("--checkpoint-dir: found %s, which another run has written meanwhile, want a folder of "+
				"its own; resume into another folder, with a copy of this run's newest checkpoint",
				filepath.Join(s.dir, p.name()))
		}
	}
	s.known[c.Position] = true
	path, size, err := Save(s.dir, c, s.keep)
	if err == nil && s.saved != nil {
		s.saved(path, c.Position, size)
	}
	return err
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
