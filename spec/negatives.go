package spec

import (
	"fmt"
	"strconv"
	"strings"

	"starling/sample"
	"starling/train"
)

// Drawing is what --negatives says:
//
//	uniform        each pair has its own, all vertices equally likely
//	degree:POWER   likewise, in proportion to the degree to a power; degree: 0.75
//	in-batch       the other ends of other pairs of the batch
//	joint:PAIRS    the same vertices for this number of the batch's pairs; joint: for 64
//	hard:M         of M uniform candidates per negative those with the highest scores; hard: of 4
type Drawing struct {
	Power   float64 // 0: uniform
	Hard    int     // 0: none
	Shared  bool    // in-batch or joint
	InBatch bool
	Chunk   int // pairs that have the same joint negatives
}

const (
	mostHard       = 1024
	mostChunk      = 1 << 20
	mostCandidates = 1 << 16 // of a pair
)

// Drawing parses --negatives.
func (p *Pairs) Drawing() (d Drawing, err error) {
	name, text, given := strings.Cut(p.Negatives, ":")
	number := func(without, least, most int) int {
		n := without
		if given {
			if n, err = strconv.Atoi(text); err == nil && (n < least || n > most) {
				err = strconv.ErrRange
			}
		}
		return n
	}
	switch name {
	case "uniform", "auto", "in-batch":
		if given {
			err = strconv.ErrSyntax
		}
		d.Shared = name == "in-batch"
		d.InBatch = d.Shared
	case "degree":
		d.Power = autoDegreePower
		if given {
			d.Power, err = strconv.ParseFloat(text, 64)
		}
		if !(d.Power > 0 && d.Power <= 10) {
			err = strconv.ErrRange
		}
	case "joint":
		d.Shared, d.Chunk = true, number(autoChunk, 1, mostChunk)
	case "hard":
		d.Hard = number(autoHard, 2, mostHard)
	default:
		err = strconv.ErrSyntax
	}
	if err != nil {
		return Drawing{}, Mistake("--negatives", fmt.Sprintf("%q", p.Negatives),
			fmt.Sprintf("uniform, in-batch, joint:PAIRS with 1 to %d pairs, hard:M with M from 2 to %d, or "+
				"degree:POWER with a power above 0 and up to 10", mostChunk, mostHard), "for example degree:0.75")
	}
	return d, nil
}

// Options are the same as training takes them, with some negatives per pair.
func (d Drawing) Options(each int) train.NegativeOptions {
	o := train.NegativeOptions{Hard: d.Hard}
	if d.Shared {
		o.Shared = &sample.Shared{InBatch: d.InBatch, Chunk: d.Chunk, Each: each}
	}
	return o
}

// shared reports whether the pairs of a batch share negatives.
func (p *Pairs) shared() bool {
	d, err := p.Drawing()
	return err == nil && d.Shared
}
