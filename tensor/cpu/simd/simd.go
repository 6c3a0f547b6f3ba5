// Package simd holds the inner loops of package tensor: functions on plain
// slices and pointers, one core each, in pure Go and in assembly.
//
// Every loop has a pure-Go twin that says what it computes; other architectures
// use it and tests compare with it. The assembly is generated (tensor/cpu/simd/asm,
// a module of its own, so that building Starling does not need the generator)
// and committed. Which twin runs is decided once, from what the processor has.
package simd

import (
	"fmt"
	"os"
	"strings"
)

// Level is an instruction set; each includes those before it.
type Level int

const (
	Generic Level = iota // pure Go
	AVX2                 // with FMA
	AVX512               // F, BW, DQ, VL
	AMX                  // AVX512 with its bfloat16 conversions, and tiles of bfloat16
	AMXFP16              // AMX, and tiles of half precision
)

var levelNames = []string{"generic", "avx2", "avx512", "amx", "amx-fp16"}

func (l Level) String() string { return levelNames[l] }

// ParseLevel reads a level by name.
func ParseLevel(s string) (Level, error) {
	for i, name := range levelNames {
		if s == name {
			return Level(i), nil
		}
	}
	return 0, fmt.Errorf("instruction set %q is not one of %s", s, strings.Join(levelNames, ", "))
}

// Supported is the highest level of this processor and kernel.
func Supported() Level { return supported }

var supported = detect()

// Best is the level to use: Supported, or less if the variable STARLING_SIMD asks for less.
func Best() Level {
	if l, err := ParseLevel(os.Getenv("STARLING_SIMD")); err == nil {
		return min(l, supported)
	}
	return supported
}
