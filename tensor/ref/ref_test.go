package ref_test

import (
	"testing"

	"starling/tensor"
	"starling/tensor/devicetest"
	"starling/tensor/ref"
)

// TestDevice: the suite itself, where both sides are the reference.
func TestDevice(t *testing.T) {
	devicetest.Run(t, func() tensor.Device { return ref.New() })
}
