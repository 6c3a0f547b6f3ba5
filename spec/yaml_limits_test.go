package spec

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"starling/graph"
	"starling/internal/yamltext"
)

const (
	maxBytes, maxNodes  = yamltext.MaxBytes, yamltext.MaxNodes
	maxDepth, maxIndent = yamltext.MaxDepth, yamltext.MaxIndent
	maxAliases          = yamltext.MaxAliases
)

// laughs is a list of lists of lists: levels of nine aliases each.
func laughs(levels, each int) string {
	text := "a0: &a0 [x, x, x]\n"
	for i := range levels {
		text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), each-1), i)
	}
	return text
}

// indented is mappings inside mappings.
func indented(n int) (text string) {
	for i := range n {
		text += strings.Repeat(" ", i) + "a:\n"
	}
	return text
}

// TestYAMLLimits: text that is small and takes the decoder gigabytes is refused before the decoder
// sees it; text just within the limits takes little.
func TestYAMLLimits(t *testing.T) {
	for name, text := range map[string]string{
		"aliases of aliases": laughs(9, 9), "few aliases": laughs(4, 2), "brackets": strings.Repeat("[", 60000),
		"braces":   strings.Repeat("{a: ", 15000),
		"closed":   strings.Repeat("[", 20000) + strings.Repeat("]", 20000),
		"shallow":  "a: [" + strings.Repeat("[],", 20000) + "]",
		"entries":  strings.Repeat("- ", 30000) + "x",
		"keys":     strings.Repeat("? ", 30000) + "x",
		"lines":    strings.Repeat("a\n", 30000),
		"indented": indented(300), "tags": "a: " + strings.Repeat("!!str ", 10000) + "x",
		"quotes": strings.Repeat(`"" `, 20000), "large": strings.Repeat("x", maxBytes+1),
		"anchors": "a: " + strings.Repeat("&a ", 20000) + "x", "tabs": strings.Repeat("\t", 60000) + "a: 1",
		"carriage returns": strings.Repeat("\r", 60000),
	} {
		if used, err := parsed(text); !errors.Is(err, graph.ErrInput) || used > 1<<20 {
			t.Errorf("%s: %d bytes taken: %v", name, used, err)
		}
	}
	for name, text := range map[string]string{
		"brackets": strings.Repeat("[", maxDepth), "words": strings.Repeat("a ", 32000),
		"a long word": strings.Repeat("a", maxBytes-1), "lines": strings.Repeat("a\n", maxNodes),
		"pairs": strings.Repeat("a: b\n", maxNodes/2), "indented": indented(maxIndent),
		"entries":         strings.Repeat("- x\n", maxNodes/2),
		"entries2":        strings.Repeat(strings.Repeat("- ", maxDepth)+"x\n", maxNodes/(maxDepth+1)),
		"list":            "a: [" + strings.Repeat("[[x]],", maxNodes/3-10) + "]",
		"pairs in a list": "a: {" + strings.Repeat("a: b, ", maxNodes/2-10) + "}",
		"alias": "a: &a [" + strings.Repeat("x, ", maxNodes-200) + "]\n" +
			strings.Repeat("b: *a\n", maxAliases-1),
		"aliases": "a0: &a0 [" + strings.Repeat("x, ", 3000) +
			"]\na1: &a1 [*a0, *a0]\na2: &a2 [*a1, *a1]\nb: *a2",
		"comments": strings.Repeat("# [[[[ - - &a *a\n", 3000), "hashes": strings.Repeat("a #\n", 4000),
		"merges": "a: &a {b: 1}\n" + strings.Repeat("<<: *a\n", maxAliases-1),
		"quoted": "a: \"" + strings.Repeat("x\\n", 20000) + "\"",
		"block":  "a: |\n" + strings.Repeat(" x\n", maxNodes-10),
		"blank":  strings.Repeat("\n", 65000), "spaces": strings.Repeat(" ", 65000),
		"backslashes": strings.Repeat("\\", 60000),
	} {
		if err := checkLimits([]byte(text)); err != nil {
			t.Errorf("%s is refused: %v", name, err)
		}
		if used, _ := parsed(text); used > 64<<20 {
			t.Errorf("%s: %d MiB were taken", name, used>>20)
		}
	}
	if _, err := Parse([]byte(Default().String())); err != nil {
		t.Error(err)
	}
}

// parsed is what parsing allocates in all, which is more than it holds at once.
func parsed(text string) (bytes uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = Parse([]byte(text))
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}
