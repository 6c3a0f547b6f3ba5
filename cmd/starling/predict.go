package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"starling/run"
	"starling/spec"
)

func predictCommand() *cobra.Command {
	o := run.PredictOptions{What: "labels"}
	var json string
	var quiet bool
	c := &cobra.Command{
		Use:   "predict RUN DIR",
		Short: "Predict for all vertices of a dataset folder",
		Long: `Predict for all vertices of a dataset folder with the model that starling train
--out RUN wrote: one forward pass over the whole graph.

A .csv file has a line per vertex: its id, as it was before import, its label (the
name of the class, where classes have names) and how probable that is. A .parquet file
has the same columns.

Row i of an .npy file is vertex i of the dataset; where vertices had other names
before import, DIR/ids.npy or DIR/ids.txt lists them in the same order. Where classes
have names, line c of a .classes.txt beside the file is the name of class c.

Labels are the likeliest class; of a multilabel model a 0 or 1 for every class, of a
regression the numbers. Probabilities are of every class, and need not add up to one
where a vertex may have several. Embeddings are the input of the model's last layer.

Of a typed graph only vertices of the type that the model predicts are listed;
--what embeddings --type NAME is for those of another.

Of a model of pairs (--task link, unsupervised) embeddings are the model's output, and
--what scores tells how likely each pair of the file --pairs is an edge, from 0 to 1:
two vertices a line, by their names before import, with a comma or space between
them; names with commas in quotes. An .npy file has a number a pair, a .csv file both
names too. --top 10 --vertex ID finds the likeliest partners of a vertex instead, that
it has no edge with: of a typed graph, destinations of the relation. --candidates FILE
measures MRR and hits@k of pairs among the candidates of a file, as OGB does, and writes
ranks. Each means --what scores where that is not given.

DIR may be a table of vertices instead of a folder, with --edges a table of the edges
between them: both become numbers exactly as the tables that the run was trained on, by
its words, means and scales. A word that these did not have is a row of zeros. Of a
typed graph it is a schema (.yaml) of new tables; with --graph FOLDER these are
vertices that the graph in this folder gets, and edges between them and its vertices:
what is predicted for them is what the model would say had they always been in it.

DIR may be a partition: then one worker per part, each a process of its own, computes
the rows of its vertices layer by layer, and none of them holds the whole graph.
Vertices have the numbers of the dataset that was partitioned.

Ctrl-C ends it at once and leaves nothing half-written: the file is there whole, as it
was before, or not at all.`,
		Example: `  starling train cora --out run
  starling predict run cora --out labels.csv
  starling predict run new-users.csv --edges new-edges.csv --out new.csv
  starling predict run new.yaml --graph shop --out new.csv
  starling predict run cora --out labels.npy --json -
  starling predict run cora --what embeddings --out embeddings.parquet
  starling predict run parts --out labels.npy                # a worker per part

  starling train cora --task link --out links
  starling predict links cora --pairs pairs.txt --out scores.csv
  starling predict links cora --top 10 --vertex 35 --vertex 40 --out top.csv`,
		Args: arguments(2, 2, "the folder of a run, and a dataset or partition folder"),
		RunE: func(c *cobra.Command, args []string) error {
			o.Run, o.Dataset = args[0], args[1]
			if (o.Pairs != "" || o.Candidates != "" || o.Top != 0) && !c.Flags().Changed("what") {
				o.What = "scores"
			}
			p, err := run.Predict(c.Context(), o)
			if err != nil {
				return err
			}
			if !quiet {
				fmt.Fprint(words(json), p)
			}
			if o.Report != "" && p.Evaluation == nil {
				return spec.Mistake("--report", "no labels of the model's task in "+o.Dataset, "a dataset with labels", "")
			}
			if err := p.WriteReport(o.Report, words(json)); err != nil {
				return err
			}
			if !quiet {
				fmt.Fprint(words(json), p.Reported(o.Report))
			}
			if json != "" {
				return p.JSON(json, stdout)
			}
			return nil
		},
	}
	c.Flags().StringVar(&o.Out, "out", "", "file to write: .csv, .parquet or .npy (default WHAT.npy in this folder)")
	c.Flags().BoolVar(&o.Overwrite, "overwrite", false, "replace an existing file")
	c.Flags().StringVar(&o.What, "what", o.What, strings.Join(run.PredictWhats, ", "))
	c.Flags().StringVar(&o.Type, "type", "", "of a typed graph: the type whose embeddings are written (default the one that the model predicts)")
	c.Flags().StringVar(&o.Edges, "edges", "", "table of the edges, where DIR is a table of vertices")
	c.Flags().StringSliceVar(&o.Features, "features", nil, "files of features beside that table, such as emb.npy")
	c.Flags().StringVar(&o.Graph, "graph", "", "typed dataset that gets the new vertices and edges, where DIR is a schema of them")
	c.Flags().StringVar(&o.Pairs, "pairs", "", "file of the pairs to score, two vertices a line (scores)")
	c.Flags().StringVar(&o.Candidates, "candidates", "", "file of pairs and the candidates that each is ranked among: "+
		".npz, .npy, .csv (scores)")
	c.Flags().IntVar(&o.Top, "top", 0, "find this many of the likeliest partners of each --vertex (scores)")
	c.Flags().StringArrayVar(&o.Vertices, "vertex", nil, "vertex whose partners are found, given once for each; none: all")
	c.Flags().BoolVar(&o.Known, "known", false, "partners of --top may be linked already")
	c.Flags().StringVar(&o.Relation, "relation", "", "relation that pairs are of, where the model predicts several")
	spec.AutoVar(c.Flags(), &o.Threads, 0, 1, "threads", "cores to use, of each worker; auto: all")
	c.Flags().StringVar(&o.Device, "device", "cpu", "what computes: cpu, cuda; cuda:1 is the second GPU")
	spec.AutoVar(c.Flags(), &o.Workers, 0, 1, "workers", "workers over a partition, one per part; auto: one for each part")
	c.Flags().BoolVar(&o.Shards, "shards", false, "over a partition: OUT-K.npy of the vertices of part K, whose numbers are in OUT-K.ids.npy, instead of one file")
	c.Flags().IntVar(&o.Timeout, "timeout", o.Timeout, timeoutOfParts)
	c.Flags().StringVar(&o.Report, "report", "", "write a report by class to this .html, .json or .txt file, - for the "+
		"terminal: precision, recall, F1, confusion, calibration (where the dataset has labels)")
	completeValues(c, map[string][]string{"what": run.PredictWhats})
	jsonFlag(c, &json)
	c.Flags().BoolVar(&quiet, "quiet", false, "say nothing")
	return c
}

// timeoutOfParts is the help of --timeout of predictions.
const timeoutOfParts = "seconds that a worker over a partition may not respond; 0: 60"
