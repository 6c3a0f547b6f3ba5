//go:build !linux

package watch

import "errors"

// ServeLocal does nothing here: such runs can only be watched on Linux.
func ServeLocal(func() *Snapshot) (stop func()) { return func() {} }

func localRuns() []string { return nil }

func lookLocal(string, *Snapshot) error {
	return errors.New("a run of one process can be watched only on Linux")
}
