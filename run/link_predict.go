package run

import (
	"fmt"
	"path/filepath"
	"time"

	"starling/serve"
	"starling/tensor"
)

// settleScores checks what is asked about pairs.
func (o *PredictOptions) settleScores() error {
	switch ext := filepath.Ext(o.Out); {
	case o.Pairs == "":
		return mistake("--pairs", "nothing", "a file of pairs to score, two vertices a line", "")
	case o.Out == "":
		o.Out = "scores.npy"
	case ext != ".npy" && ext != ".csv":
		return mistake("--out", o.Out, "a file that ends in .npy or .csv", "")
	}
	return checkFolder("--out", o.Out)
}

// predictScores scores the pairs of a file and writes them.
func predictScores(o PredictOptions) (*Predicted, error) {
	start := time.Now()
	trained, err := serve.Open(o.Run)
	if err != nil {
		return nil, err
	}
	d, err := openForPrediction(o.Dataset)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	dev := tensor.NewCPU(o.Threads)
	defer dev.Close()
	p, err := trained.Scores(dev, d, o.Pairs)
	if err != nil {
		return nil, err
	}
	if err := p.Write(o.Out); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Out, err)
	}
	return &Predicted{Run: o.Run, Dataset: d.Meta.Name, Model: trained.Config.Model.Model, What: o.What, Out: o.Out, Vertices: d.Graph.Nodes(), Pairs: len(p.Values), Width: 1,
		Seconds: time.Since(start).Seconds(), RSS: maxRSS()}, nil
}
