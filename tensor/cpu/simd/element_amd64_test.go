package simd

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The generator distributes registers without knowing that AVX2 has sixteen: a
// function for AVX2 that names another would not run there.
func TestAVX2KernelsUseSixteenRegisters(t *testing.T) {
	high := regexp.MustCompile(`\b([XY](1[6-9]|2\d|3[01])|Z\d+|K[0-7])\b`)
	for _, file := range []string{"element_amd64.s", "yardstick_amd64.s"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fn := ""
		for n, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "TEXT") {
				fn, _, _ = strings.Cut(line, "(")
			}
			if (strings.HasSuffix(fn, "AVX2") || strings.HasSuffix(fn, "256")) && high.MatchString(line) {
				t.Fatalf("%s:%d: %s", file, n+1, line)
			}
		}
	}
}
