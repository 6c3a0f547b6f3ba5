package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"starling/run"
	"starling/spec"
)

func generateCommand() *cobra.Command {
	p := run.DefaultParams()
	var out, like string
	var scale float64
	var symmetrize, quiet, tables bool
	c := &cobra.Command{
		Use:   "generate KIND --out DIR",
		Short: "Draw a graph: sbm, rmat, er, typed or fraud",
		Long: `Draw a graph with features, labels and splits, and write it as a dataset folder.
The same seed gives the same bytes on any machine.

  sbm    degree-corrected contextual block model: communities, power-law degrees,
         homophily, Gaussian class features whose difficulty --signal sets
  rmat   recursive matrix, a skewed graph with no communities
  er     Erdős–Rényi, edges anywhere
  typed  several types of vertices and relations,
	of the shape --like NAME (` + strings.Join(run.TypedNames(), ", ") + `;
         small without it), with a class that only the relations tell; every relation
         has its reverse, rev_NAME, unless --directed is given
  fraud  two tables instead of a dataset: accounts.csv, of which one in fifty is
         fraudulent, and payments.csv, with times; docs/stories/fraud.md goes on from them

--like NAME takes the published numbers of a public dataset, times --scale; flags
given beside it win. It knows ` + strings.Join(run.LikeNames(), ", ") + ".",
		Example: `  starling generate sbm --nodes 100000 --edges 2000000 --classes 16 --out graph
  starling generate sbm --like ogbn-arxiv --symmetrize --out arxiv-like
  starling generate rmat --like reddit --scale 0.1 --out small
  starling generate sbm --nodes 2000 --edges 12000 --tables --out papers
  starling generate typed --like ogbn-mag --scale 0.01 --out mag`,
		Args: arguments(1, 1, "one kind: "+strings.Join(run.Kinds(), ", ")),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				return spec.Mistake("--out", "nothing", "a folder to write", "for example --out graph")
			}
			if err := ofKind(c.Flags(), args[0]); err != nil {
				return err
			}
			if args[0] == run.FraudKind {
				line, err := run.GenerateFraud(p, out)
				if err == nil && !quiet {
					fmt.Fprintln(text, line)
				}
				return err
			}
			if err := likeParams(c.Flags(), &p, args[0], like, scale, symmetrize); err != nil {
				return err
			}
			if err := ofFeatures(c.Flags(), p); err != nil {
				return err
			}
			if tables {
				return writeDataset(quiet, func(v run.View) (run.Summary, error) {
					return run.GenerateTables(c.Context(), args[0], p, out, v)
				})
			}
			return writeDataset(quiet, func(v run.View) (run.Summary, error) {
				return run.Generate(c.Context(), args[0], p, out, v)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&out, "out", "", "folder to write (required)")
	f.StringVar(&like, "like", "", "take the shape of a public dataset")
	f.Float64Var(&scale, "scale", 1, "with --like: times the published vertices and edges")
	f.BoolVar(&symmetrize, "symmetrize", false, "with --like: add the reverse of edges published one way (typed: always there, unless --directed)")
	f.BoolVar(&tables, "tables", false, "write two tables and a file of vectors, as import table reads them, and no dataset (sbm, rmat, er)")
	generatorFlags(f, &p)
	f.BoolVar(&quiet, "quiet", false, "show nothing")
	f.SortFlags = false
	completeArgument(c, run.Kinds())
	return c
}

// ofKind refuses a flag that is for graphs of another kind.
func ofKind(f *pflag.FlagSet, kind string) (err error) {
	of := map[string]string{"homophily": "sbm typed", "communities": "sbm", "exponent": "sbm", "max-degree": "sbm",
		"a": "rmat", "b": "rmat",
		"c": "rmat", "nodes": "sbm rmat er fraud", "edges": "sbm rmat er", "edge-feature-width": "sbm rmat er",
		"task": "sbm rmat er"}
	f.Visit(func(f *pflag.Flag) {
		if kind == run.FraudKind && !slices.Contains([]string{"out", "nodes", "seed", "overwrite", "quiet"}, f.Name) {
			err = spec.Mistake("--"+f.Name, "a setting without effect on "+kind, "--nodes, --seed or --overwrite", "")
			return
		}
		if kinds := strings.Fields(of[f.Name]); len(kinds) > 0 && !slices.Contains(kinds, kind) &&
			slices.Contains(run.Kinds(), kind) {
			err = spec.Mistake("--"+f.Name, "a setting without effect on "+kind, "it only for "+strings.Join(kinds,
				", "), "")
		}
	})
	return err
}

// ofFeatures refuses a flag of features where there are none.
func ofFeatures(f *pflag.FlagSet, p run.Params) error {
	for _, name := range []string{"bf16", "signal"} {
		if f.Changed(name) && p.Features == 0 {
			return spec.Mistake("--"+name, "a setting without effect on vertices without features",
				"--features above 0", "")
		}
	}
	return nil
}

// generatorFlags are the parameters of a graph.
func generatorFlags(f *pflag.FlagSet, p *run.Params) {
	f.StringVar(&p.Name, "name", p.Name, "name of the dataset (default: the folder's)")
	f.Int64Var(&p.Nodes, "nodes", p.Nodes, "vertices")
	f.Int64Var(&p.Edges, "edges", p.Edges, "edges to store, about; an undirected edge counts twice")
	f.BoolVar(&p.Directed, "directed", p.Directed, "edges go one way")
	f.IntVar(&p.Features, "features", p.Features, "features of a vertex; 0: none")
	f.BoolVar(&p.BFloat16, "bf16", p.BFloat16, "store features as bfloat16")
	f.IntVar(&p.EdgeFeatures, "edge-feature-width", p.EdgeFeatures, "features of an edge; 0: none")
	f.IntVar(&p.Classes, "classes", p.Classes, "classes; 0: no labels")
	f.StringVar(&p.Task, "task", p.Task, "what the labels are for: classify, multilabel (any number of classes "+
		"per vertex) or regression (a number)")
	f.Float64Var(&p.Signal, "signal", p.Signal, "how far apart the classes' features are, in standard deviations")
	f.Float64Var(&p.Homophily, "homophily", p.Homophily, "share of edges inside a class (sbm), or as the types "+
		"say (typed)")
	spec.AutoVar(f, &p.Communities, 0, 1, "communities", "communities; auto: one a class (sbm)")
	f.Float64Var(&p.Exponent, "exponent", p.Exponent, "of the power law of degrees, above 2 (sbm)")
	spec.AutoVar(f, &p.MaxDegree, 0, 1, "max-degree", "largest degree to draw; auto: chosen from the size (sbm)")
	f.Float64Var(&p.A, "a", p.A, "chance of the first quadrant (rmat)")
	f.Float64Var(&p.B, "b", p.B, "chance of the second quadrant (rmat)")
	f.Float64Var(&p.C, "c", p.C, "chance of the third quadrant (rmat)")
	f.Float64Var(&p.Train, "train", p.Train, "share of vertices to train on")
	f.Float64Var(&p.Val, "val", p.Val, "share of vertices to validate on")
	f.Float64Var(&p.Test, "test", p.Test, "share of vertices to test on")
	f.Uint64Var(&p.Seed, "seed", p.Seed, "seed of all random draws")
	f.BoolVar(&p.Overwrite, "overwrite", p.Overwrite, "replace an existing dataset")
}

// likeParams sets p to a public dataset's shape, and then again to what flags say.
func likeParams(f *pflag.FlagSet, p *run.Params, kind, like string, scale float64, symmetrize bool) error {
	typed := kind == "typed"
	if like == "" && typed {
		like = "small"
	}
	if typed && symmetrize && p.Directed {
		return spec.Mistake("--symmetrize", "it beside --directed", "one of the two", "")
	}
	if like == "" {
		for _, name := range []string{"scale", "symmetrize"} {
			if f.Changed(name) {
				return spec.Mistake("--"+name, "a setting without effect", "", "it belongs to --like NAME")
			}
		}
		return nil
	}
	given := map[string]string{}
	f.Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	var shape run.Params
	var err error
	if typed {
		shape, err = run.LikeTyped(like, scale)
	} else {
		shape, err = run.Like(like, scale, symmetrize)
	}
	if err != nil {
		return err
	}
	*p = shape
	for name, value := range given {
		if err := f.Set(name, value); err != nil {
			return err
		}
	}
	if !typed {
		p.Fit()
	}
	return nil
}

// writeDataset shows how a new folder is written, and then what it holds.
func writeDataset(quiet bool, write func(v run.View) (run.Summary, error)) error {
	v := view(quiet, "")
	s, err := write(v)
	v.Close()
	if err == nil && !quiet {
		printSummary(s)
	}
	return err
}

// printSummary tells what a new folder holds.
func printSummary(s run.Summary) {
	fmt.Fprintf(text, "%s: %s\n", s.Dir, run.InWords(s))
	for _, n := range s.Notes {
		fmt.Fprintf(text, "  note: %s\n", n)
	}
}
