// Package testseed gives tests that draw at random a seed that is printed and can be given.
//
//	seed := testseed.New(t)            // or testseed.Rand(t) for a *rand.Rand
//
// draws a seed and logs
//
//	STARLING_SEED=1234567890
//
// which go test shows if the test fails, and always with -v. To repeat that run:
//
//	STARLING_SEED=1234567890 go test ./cluster -run TestSimulation
//
// All tests of the repository use this one variable.
package testseed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Env is the variable that holds the seed of a run to repeat.
const Env = "STARLING_SEED"

// New is the seed that Env holds, or one drawn at random. Both are logged. A test may tell
// a repeated run by Given.
func New(t testing.TB) uint64 {
	t.Helper()
	seed, given := Given(t)
	if !given {
		seed = rand.Uint64()
	}
	t.Logf("%s=%d", Env, seed)
	return seed
}

// Given is the seed that Env holds, if it holds one. Anything that is not a number fails
// the test.
func Given(t testing.TB) (seed uint64, given bool) {
	t.Helper()
	text := os.Getenv(Env)
	if text == "" {
		return 0, false
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: found %q, want a whole number", Env, text)
	}
	return seed, true
}

// Rand is a source of random numbers with the seed of New.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(New(t), 0))
}
