package main

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// machineDependent matches what a machine, not the seed, decides in the lines of the demo.
var machineDependent = []*regexp.Regexp{
	regexp.MustCompile(`\d[\d.]* (?:epochs/s|s/epoch|ms|s)\b`),
	regexp.MustCompile(`kill -9 \d+`),
	regexp.MustCompile(`pid \d+ on \S+`),
	regexp.MustCompile(`[\d.]+% of (?:the epochs' time|that)`),
	regexp.MustCompile(`largest difference [\d.e-]+`),
}

// rounded matches losses and accuracies: kernels for other instruction sets add in another order.
var rounded = regexp.MustCompile(`(?:loss|val|accuracy|test) \d\.\d{4}\b`)

// roundedWithin is the largest difference of a loss or an accuracy between machines.
const roundedWithin = 0.001

// splitLine takes a line of the demo apart: its text without what depends on the machine, and its rounded numbers.
func splitLine(line string) (text string, numbers []float64) {
	for _, pattern := range machineDependent {
		line = pattern.ReplaceAllString(line, "…")
	}
	text = rounded.ReplaceAllStringFunc(line, func(found string) string {
		name, digits, _ := strings.Cut(found, " ")
		x, _ := strconv.ParseFloat(digits, 64)
		numbers = append(numbers, x)
		return name + " …"
	})
	return strings.TrimRight(text, " "), numbers
}

// sameLine tells whether the demo printed what a page shows, apart from what depends on the machine.
func sameLine(shown, printed string) bool {
	a, as := splitLine(shown)
	b, bs := splitLine(printed)
	if a != b || len(as) != len(bs) {
		return false
	}
	for i := range as {
		if math.Abs(as[i]-bs[i]) > roundedWithin {
			return false
		}
	}
	return true
}

// notPrinted returns the lines of a page that the demo did not print, in this order.
func notPrinted(shown, printed []string) (missing []string) {
	for _, line := range shown {
		at := 0
		for at < len(printed) && !sameLine(line, printed[at]) {
			at++
		}
		if at == len(printed) {
			missing = append(missing, line)
			continue
		}
		printed = printed[at+1:]
	}
	return missing
}

// demoOf returns the lines that README shows of the demo: the indented ones of its section, from the first command on.
func demoOf(readme string) (lines []string) {
	_, section, _ := strings.Cut(readme, "\n## Two commands\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, line := range strings.Split(section, "\n") {
		line, indented := strings.CutPrefix(line, "    ")
		if indented && (len(lines) > 0 || strings.HasPrefix(line, "$ starling ")) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestReadmeShowsTheDemo: every line that README shows of the demo is printed by it, with the same numbers.
func TestReadmeShowsTheDemo(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := demoOf(string(readme))
	if len(shown) < 20 {
		t.Fatalf("README shows %d lines of the demo", len(shown))
	}
	printed := works(t, t.TempDir(), "demo").stdout
	for _, line := range notPrinted(shown, strings.Split(printed, "\n")) {
		t.Errorf("README shows %q, which the demo did not print at that place", line)
	}
	if t.Failed() {
		t.Log(printed)
	}
}

func TestWrongNumbersOfTheDemoAreFound(t *testing.T) {
	printed := []string{"demo: 4 parts in 251 ms", "epoch 40/40  loss 0.1458  val 0.9895  16.4 epochs/s  left 0 ms",
		"total            461.4 MiB    461.4 MiB"}
	shown := []string{"demo: 4 parts in 1.2 s", "epoch 40/40  loss 0.1460  val 0.9890  9 epochs/s  left 5 ms",
		"total            461.4 MiB    461.4 MiB"}
	if missing := notPrinted(shown, printed); missing != nil {
		t.Errorf("these differ by machine only, and are called missing: %q", missing)
	}
	wrong := []string{"demo: 5 parts in 1.2 s", "epoch 40/40  loss 0.1558  val 0.9895  9 epochs/s  left 5 ms",
		"total            461.4 MiB    461.3 MiB"}
	if missing := notPrinted(wrong, printed); len(missing) != len(wrong) {
		t.Errorf("of three wrong lines these were found: %q", missing)
	}
}
