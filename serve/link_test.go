package serve

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// numbered finds vertices 0 to 9 by number.
func numbered(n vertexName) (uint32, bool) {
	v, err := strconv.ParseUint(string(n), 10, 32)
	return uint32(v), err == nil && v < 10
}

func TestReadPairs(t *testing.T) {
	var p PairScores
	left, right, err := p.read(strings.NewReader("# u v\n1 2\n\n 3,4 \n5\t5\r\n"), numbered, numbered)
	if err != nil || len(left) != 3 || left[1] != 3 || right[1] != 4 || right[2] != 5 || p.Left[1] != "3" ||
		p.Right[1] != "4" {
		t.Fatal(left, right, p, err)
	}
	for text, want := range map[string]string{
		"":                                   "no pairs",
		"1 2\n3\n":                           "line 2",
		"1 2 3":                              "line 1",
		"1,2,3":                              "line 1",
		"1 x":                                `"x"`,
		"1 10":                               `"10"`,
		"1 2\n" + strings.Repeat("1", 1<<17): "too long",
	} {
		if _, _, err := new(PairScores).read(strings.NewReader(text), numbered, numbered); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

// Names with commas, quotes and line breaks are in quotes, coming and going.
func TestPairsOfOddNames(t *testing.T) {
	odd := []string{`plain`, `Doe, Jane`, `"so-called"`, `a "b", c`, " a", "two\nlines"}
	find := func(n vertexName) (uint32, bool) {
		at := slices.Index(odd, string(n))
		return uint32(at), at >= 0
	}
	var p PairScores
	left, right, err := p.read(strings.NewReader("plain,\"Doe, Jane\"\n\"\"\"so-called\"\"\", \"a \"\"b\"\", c\"\n"),
		find, find)
	if err != nil || !slices.Equal(left, []uint32{0, 2}) || !slices.Equal(right, []uint32{1, 3}) {
		t.Errorf("%v, %v, %v", left, right, err)
	}
	p = PairScores{Left: odd, Right: odd, Values: make([]float32, len(odd))}
	file := filepath.Join(t.TempDir(), "scores.csv")
	if err := p.Write(file); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != len(odd)+1 {
		t.Fatal(rows, err)
	}
	for i, row := range rows[1:] {
		if row[0] != odd[i] || row[1] != odd[i] || row[2] != "0" {
			t.Errorf("%q came back as %q", odd[i], row)
		}
	}
}

func FuzzReadPairs(f *testing.F) {
	f.Add("1 2\n3,4\n")
	f.Add("# nothing\n")
	f.Add(",,\n")
	f.Add("\"1\",\"2\n")
	f.Fuzz(func(t *testing.T, text string) {
		var p PairScores
		left, right, err := p.read(strings.NewReader(text), numbered, numbered)
		if err == nil && (len(left) == 0 || len(left) != len(right) || len(p.Left) != len(left)) {
			t.Fatalf("%q: %v %v %v", text, left, right, p)
		}
	})
}
