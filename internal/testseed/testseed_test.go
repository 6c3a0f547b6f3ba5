package testseed

import (
	"fmt"
	"strings"
	"testing"
)

// record keeps what a test logs.
type record struct {
	testing.TB
	log    []string
	failed bool
}

func (r *record) Helper()                        {}
func (r *record) Logf(format string, a ...any)   { r.log = append(r.log, fmt.Sprintf(format, a...)) }
func (r *record) Fatalf(format string, a ...any) { r.failed = true }

func TestSeedIsTakenAndLogged(t *testing.T) {
	r := &record{TB: t}
	t.Setenv(Env, "42")
	if seed := New(r); seed != 42 || len(r.log) != 1 || r.log[0] != "STARLING_SEED=42" {
		t.Errorf("seed %d, logged %q", seed, r.log)
	}
	if a, b := Rand(r).Uint64(), Rand(r).Uint64(); a != b {
		t.Errorf("one seed gives %d and %d", a, b)
	}
	t.Setenv(Env, "x")
	if Given(r); !r.failed {
		t.Error("a seed that is not a number was taken")
	}
}

func TestSeedIsDrawn(t *testing.T) {
	t.Setenv(Env, "")
	r := &record{TB: t}
	if a, b := New(r), New(r); a == b || !strings.Contains(r.log[1], fmt.Sprint(b)) {
		t.Errorf("drew %d and %d, logged %q", a, b, r.log)
	}
}
