//go:build !unix

package tcp

import "testing"

// cpuTime reports nothing here.
func cpuTime(*testing.B) func() { return func() {} }
