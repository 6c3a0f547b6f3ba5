package run

import (
	"starling/internal/version"
	"starling/watch"
)

// What commands say of the program itself.

// Version is the release, or what else the program was built from.
func Version() string { return version.Name() }

// Commit is the commit that the program was built from; "": not known.
func Commit() string { return version.Commit() }

// Top watches a run: see package watch.
type Top = watch.Top
