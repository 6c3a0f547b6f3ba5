package serve

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"starling/disk"
	"starling/graph"
	"starling/tensor"
)

// Scores is a prediction of a model of pairs, as Embeddings is.
const Scores = "scores"

// PairScores are pairs of vertices, by their names before
// import, and how likely each is an edge.
type PairScores struct {
	Left, Right []string
	// Values are between 0 and 1: the decoder's score through the sigmoid of the loss. A
	// pair at ½ is as likely an edge as one of the negatives of training.
	Values []float32
}

// ofPairs reports whether the model's outputs are embeddings of which a decoder scores
// pairs.
func (t *Trained) ofPairs() bool { return t.Config.Model.Decoder != "" }

// Scores reads pairs from a file and scores them, over the whole graph of a dataset: as edges of a relation, which has
// to be named where the model knows several.
func (t *Trained) Scores(dev tensor.Device, d *graph.Dataset, path, relation string) (*PairScores, error) {
	s, err := t.scorer(d, relation)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &graph.InputError{File: path, Found: "no such file", Want: "a file of pairs, one per line"}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &PairScores{}
	left, right, err := p.read(f, s.sources.find, s.targets.find)
	if err != nil {
		return nil, graph.InFile(path, err)
	}
	if err := s.run(dev, d); err != nil {
		return nil, err
	}
	p.Values = s.scores(left, right)
	chances(p.Values)
	return p, dev.Err()
}

// chances makes decoded scores numbers between 0 and 1.
func chances(scores []float32) {
	for i, s := range scores {
		scores[i] = float32(1 / (1 + math.Exp(-float64(s))))
	}
}

// longestLine bounds a line of a file of pairs.
const longestLine = 1 << 16

// read takes pairs of names: two per line, with a comma or space between them. Empty
// lines and those that begin with # are left out.
func (p *PairScores) read(r io.Reader, source, target func(vertexName) (uint32, bool)) (left, right []uint32, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		names := splitPair(text)
		bad := func(found, want, fix string) error {
			return &graph.InputError{Field: fmt.Sprintf("line %d", number), Found: found, Want: want, Fix: fix}
		}
		if len(names) != 2 {
			return nil, nil, bad(fmt.Sprintf("%.80q", text), "two vertices, with a comma or space between them", "")
		}
		var ends [2]uint32
		for i := range names {
			names[i] = strings.TrimSpace(names[i])
			find := source
			if i == 1 {
				find = target
			}
			v, ok := find(vertexName(names[i]))
			if !ok {
				return nil, nil, bad(fmt.Sprintf("%.80q", names[i]), "a vertex of the dataset",
					"vertices have the names they had before import")
			}
			ends[i] = v
		}
		left, right = append(left, ends[0]), append(right, ends[1])
		p.Left, p.Right = append(p.Left, names[0]), append(p.Right, names[1])
	}
	if lines.Err() != nil {
		return nil, nil, &graph.InputError{Found: graph.Sentence(lines.Err().Error()), Want: "two vertices per line"}
	}
	if len(left) == 0 {
		return nil, nil, &graph.InputError{Found: "no pairs", Want: "two vertices per line"}
	}
	return left, right, nil
}

// splitPair is the names on a line; a name in quotes may hold commas.
func splitPair(text string) []string {
	if !strings.Contains(text, ",") {
		return strings.Fields(text)
	}
	line := csv.NewReader(strings.NewReader(text))
	line.LazyQuotes, line.TrimLeadingSpace = true, true
	names, err := line.Read()
	if err != nil {
		return nil
	}
	return names
}

// Write writes the scores to a file that appears complete or not at all: .npy, one number
// per pair in order, or .csv with both names before it.
func (p *PairScores) Write(path string) error {
	if filepath.Ext(path) != ".csv" {
		return graph.WriteNPY(path, p.Values)
	}
	return disk.Write(path, func(w io.Writer) error {
		lines := csv.NewWriter(w)
		lines.Write([]string{"source", "target", "score"})
		for i, s := range p.Values {
			lines.Write([]string{p.Left[i], p.Right[i], fmt.Sprintf("%g", s)})
		}
		lines.Flush()
		return lines.Error()
	})
}
