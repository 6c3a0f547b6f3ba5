//go:build !unix

package wire

import "testing"

// cpuTime reports nothing here.
func cpuTime(*testing.B) func() { return func() {} }
