package run

import (
	"slices"
	"testing"

	"starling/cluster"
	"starling/spec"
	"starling/tensor/cpu/simd"
)

// TestListsOfSpec: lists that a spec has of its own equal the lists of the packages that act on them.
func TestListsOfSpec(t *testing.T) {
	if got := spec.Launchers[2:]; !slices.Equal(got, cluster.Launchers) {
		t.Errorf("launchers %v, want %v", got, cluster.Launchers)
	}
	for i, name := range spec.SIMDNames[1:] {
		if level, err := simd.ParseLevel(name); err != nil || int(level) != i {
			t.Errorf("instruction set %s is of level %d, want %d: %v", name, level, i, err)
		}
	}
}

// TestMissingInstructions: a run refuses instructions that the processor lacks.
func TestMissingInstructions(t *testing.T) {
	s := spec.Default()
	for i, name := range spec.SIMDNames {
		s.Machine.SIMD = name
		for j, supported := range spec.SIMDNames[1:] {
			if err := s.Machine.CheckSIMD(supported); (err != nil) != (i > j+1) {
				t.Errorf("--simd %s on a processor with %s: %v", name, supported, err)
			}
		}
	}
}
