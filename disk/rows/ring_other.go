//go:build !linux

package rows

import "errors"

// newRing is of Linux.
func newRing() (engine, error) { return nil, errors.ErrUnsupported }
