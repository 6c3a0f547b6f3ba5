package event

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"starling/internal/testseed"
)

// TestWrap: no line is too long that has a space to break it at, and all words stay, in order.
func TestWrap(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.New(t), 0))
	for range 300 {
		var text strings.Builder
		for range r.IntN(5) {
			text.WriteString(strings.Repeat(" ", r.IntN(6)))
			for range r.IntN(30) {
				text.WriteString(strings.Repeat("ä", 1+r.IntN(9)) + " ")
			}
			text.WriteString("\n")
		}
		width := 20 + r.IntN(80)
		got := Wrap(text.String(), width)
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(text.String()), " ") {
			t.Fatalf("other words:\n%s\nthan in\n%s", got, &text)
		}
		for line := range strings.Lines(got) {
			if n := shown(strings.TrimRight(line, " \n")); n > width {
				t.Fatalf("%d columns of %d: %q", n, width, line)
			}
		}
	}
}

func TestWrapKeeps(t *testing.T) {
	for text, want := range map[string]string{
		"short\n":                           "short\n",
		"no end":                            "no end",
		"  an indented line that is long\n": "  an indented line\n    that is long\n",
		"/a/path/that/is/longer/than/the/line here\n":   "/a/path/that/is/longer/than/the/line\n  here\n",
		Colors(true).Red("four words in red") + " more": "\x1b[31mfour words in red\x1b[0m\n  more",
	} {
		if got := Wrap(text, 20); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNoTerminal: a file gets lines as they are, and no colors.
func TestNoTerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b bytes.Buffer
	long := strings.Repeat("word ", 100)
	Wrapped(&b, f).Write([]byte(ColorsOf(f).Red(long)))
	if b.String() != long {
		t.Errorf("%q", &b)
	}
}

func TestCut(t *testing.T) {
	for text, want := range map[string]string{
		"short": "short", "äöüäöüäöü": "äöüä…\x1b[0m", Colors(true).Red("äöüäöü"): "\x1b[31mäöüä…\x1b[0m",
	} {
		if got := Cut(text, 5); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
