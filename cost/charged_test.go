package cost

import (
	"reflect"
	"testing"

	"starling/tensor"
)

// TestEveryOperationIsCharged: each operation but Moments, which is small, is in one of the tables, and they have no
// other names.
func TestEveryOperationIsCharged(t *testing.T) {
	left := map[string]bool{}
	for name := range perEntry {
		left[name] = true
	}
	for name := range touched {
		if left[name] {
			t.Errorf("%s is charged twice", name)
		}
		left[name] = true
	}
	ops := reflect.TypeFor[tensor.Operations]()
	for i := range ops.NumMethod() {
		name := ops.Method(i).Name
		if !left[name] && name != "MatMul" && name != "Moments" {
			t.Errorf("%s is not charged", name)
		}
		delete(left, name)
	}
	for name := range left {
		t.Errorf("%s is no operation", name)
	}
}
