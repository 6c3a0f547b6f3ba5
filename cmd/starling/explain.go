package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"starling/report"
	"starling/run"
)

func explainCommand() *cobra.Command {
	o := run.DefaultExplain()
	var json string
	c := &cobra.Command{
		Use:   "explain RUN DIR",
		Short: "Say which edges, vertices and features a prediction is due to",
		Long: `Say which edges, neighbours and columns of features mattered for the prediction of a
vertex, with the model that starling train --out RUN wrote. docs/explaining.md says what
the numbers mean.

An edge is dropped, the prediction is computed again, and its score is how far that
moves: the probability that the predicted class loses. Vertices and columns have the
value of a learnt mask (--method masks), or an attribution (--method gradients).
Fidelity is measured by dropping the best edges, and all but these.`,
		Example: `  starling explain run cora --vertex 35
  starling explain run cora --vertex 35 --method gradients --html why.html
  starling explain run cora --vertices suspicious.txt --top 20 --json why.json`,
		Args: arguments(2, 2, "the folder of a run, and a dataset folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Run, o.Dataset = args[0], args[1]
			e, err := run.Explain(o)
			if err != nil {
				return err
			}
			fmt.Fprint(words(json), e)
			if json != "" {
				return report.WriteJSON(e, json, stdout)
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&o.Vertices, "vertex", nil,
		"the vertex to explain, by its name before import; may be repeated")
	c.Flags().StringVar(&o.File, "vertices", "", "file of vertices to explain, one per line")
	c.Flags().IntVar(&o.Top, "top", 0, "explain the first this many of --vertices; 0: all")
	c.Flags().StringVar(&o.Method, "method", o.Method, strings.Join(run.ExplainMethods, " or "))
	c.Flags().IntVar(&o.Epochs, "epochs", o.Epochs, "epochs of masks, or steps of gradients")
	c.Flags().IntVar(&o.Keep, "edges", o.Keep, "edges of an explanation, by which fidelity is measured")
	c.Flags().IntVar(&o.Most, "drop", o.Most, "edges that are dropped one by one at most, the nearest first")
	c.Flags().StringVar(&o.Page, "html", "", "write a page with a picture of the neighbourhood to this file")
	jsonFlag(c, &json)
	completeValues(c, map[string][]string{"method": run.ExplainMethods})
	return c
}
