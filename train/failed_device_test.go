package train_test

import (
	"context"
	"errors"
	"testing"

	"starling/event"
	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
)

var errLost = errors.New("the device is lost")

// failing is a device that fails with one of its downloads.
type failing struct {
	tensor.Device
	left int // downloads until then
}

func (f *failing) Download(host any, m tensor.Matrix) {
	if f.left--; f.left > 0 {
		f.Device.Download(host, m)
	}
}

func (f *failing) Err() error {
	if f.left > 0 {
		return nil
	}
	return errLost
}

// TestFailedDevice: whenever a device fails, training ends with its error, and no epoch after that is reported.
func TestFailedDevice(t *testing.T) {
	t.Parallel()
	data := traintest.Communities(t, 60, false)
	o := traintest.Options("gcn")
	o.Epochs, o.EvalEvery = 4, 1
	for left := 1; ; left += 3 {
		dev, epochs := &failing{traintest.CPU(t, 1), left}, 0
		_, err := train.Full(context.Background(), dev, data, o, event.Func(func(e event.Event) {
			if _, ok := e.(event.Epoch); ok && dev.Err() != nil {
				epochs++
			}
		}))
		if epochs != 0 {
			t.Errorf("%d epochs were reported after the device had failed", epochs)
		}
		if dev.Err() == nil {
			return
		}
		if !errors.Is(err, errLost) {
			t.Errorf("training ends with %v after %d downloads, want %v", err, left, errLost)
		}
	}
}
