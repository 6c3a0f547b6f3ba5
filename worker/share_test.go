package worker

import (
	"errors"
	"testing"

	"starling/wire"
)

// TestOneFailureIsNamed: the worker that failed, not those that were told.
func TestOneFailureIsNamed(t *testing.T) {
	cause := errors.New("broken")
	echo := func(rank int) error { return &wire.Failure{Rank: rank, Cause: cause} }
	for want, errs := range map[string][]error{
		"rank 2: broken":                {echo(2), nil, cause, echo(2)},
		"rank 1: rank 0 waited":         {echo(1), errors.New("rank 0 waited")},
		"rank 0: rank 1 failed: broken": {echo(1), nil},
	} {
		if err := FirstError(errs); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := FirstError(make([]error, 3)); err != nil {
		t.Error(err)
	}
}
