package spec

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"starling/graph"
	"starling/nn"
	"starling/sample"
)

// Edges held out by time (--task link --split time:A,B).

// Later are the shares of --split time:A,B; byTime: it is that.
func (p *Pairs) Later() (shares sample.LaterEdges, byTime bool, err error) {
	if p.Split == "random" {
		return shares, false, nil
	}
	name, text, _ := strings.Cut(p.Split, ":")
	a, b, two := strings.Cut(text, ",")
	var errs [2]error
	shares.Train, errs[0] = strconv.ParseFloat(strings.TrimSpace(a), 64)
	shares.Val, errs[1] = strconv.ParseFloat(strings.TrimSpace(b), 64)
	if name != "time" || !two || cmp.Or(errs[0], errs[1]) != nil ||
		!(shares.Train > 0 && shares.Train <= shares.Val && shares.Val <= 1) {
		return shares, false, Mistake("--split", fmt.Sprintf("%q", p.Split), "random, or time:A,B with 0 < A <= B <= 1",
			"for example time:0.7,0.85: edges up to 0.7 of all train, in the order of their times, those up to 0.85 "+
				"validate, and the rest tests")
	}
	return shares, true, nil
}

// checkLater refuses what edges that are held out by time do not have.
func (s *Spec) checkLater() error {
	shares, byTime, err := s.Pairs.Later()
	switch {
	case err != nil || !byTime || s.Task != nn.TaskLink:
		return err
	case s.learnsRelations():
		return graph.Apart("--split "+s.Pairs.Split, "--model "+s.Model.Name,
			"edges of relations are held out at random", "leave out --split")
	case s.Training.Patience > 0 && shares.Train == shares.Val:
		return Mistake("--patience", fmt.Sprint(s.Training.Patience), "0 without validation edges",
			"give --split time:A,B with A below B")
	}
	return s.oneWorker("--split", s.Pairs.Split, "edges by time", "edges held out at random")
}
