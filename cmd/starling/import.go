package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"starling/run"
	"starling/spec"
)

func importCommand() *cobra.Command {
	var opt run.ImportOptions
	var out string
	var quiet, check bool
	var in run.ShardOptions
	var workers int
	var launcher string
	c := &cobra.Command{
		Use:   "import FORMAT SRC --out DIR",
		Short: "Read files of another tool: " + strings.Join(run.Formats(), ", "),
		Long: `Read files of another tool and write a dataset folder.

  planetoid   SRC is the folder with ind.NAME.x, ind.NAME.graph and so on; --name cora
  npz         SRC is a gnn-benchmark file (adj_data, attr_data, labels)
  ogb         SRC is the folder of an ogbn dataset, with raw and split (CSV, or the
              binary files of papers100M); the reverse of every edge is added to
              products and proteins, as ogb does; give --symmetrize for the others
  saint       SRC is a GraphSAINT folder (adj_full.npz, feats.npy, role.json, class_map.json)
  dgl-reddit  SRC is the folder with reddit_data.npz and reddit_graph.npz
  dgl         SRC is a folder of dgl.distributed.partition_graph, or its NAME.json
  geom        SRC is a folder with *out1_graph_edges.txt and *out1_node_feature_label.txt
  metis       SRC is a METIS graph file
  parquet     SRC is a folder with edges*.parquet and perhaps nodes*.parquet, or one
              table of edges
  edgelist    SRC is a text file, one edge a line (CSV, TSV, SNAP; gzip or not);
              ids of any kind are mapped to 0..N-1 and kept in the dataset
  table       SRC is a table of edges (CSV, TSV, Parquet, npy; a file, a pattern or a folder),
              --vertices one of vertices; flags say what the columns are, and what becomes
              of each is printed. What flags do not say is asked where it is not plain
  schema      SRC is a YAML file that says which tables (CSV, TSV, Parquet, npy) have the
              vertices and edges of a typed graph, GraphStorm's JSON, the folder of an
              OGB dataset of several types (ogbn-mag), DGL's CSVDataset (meta.yaml) or
              chunked graph (metadata.json); or which two tables are a graph without
              types; --check says what every column becomes, without reading it
  untyped     SRC is a typed dataset; its types are dropped, and types without features
              get zeros, for models that do not look at types

Edges are never held in memory: they go through nameless files beside DIR, which need
up to 16 bytes an edge until the import is done.`,
		Example: `  starling import planetoid planetoid/ --name cora --out cora
  starling import ogb dataset/ogbn_arxiv --symmetrize --out arxiv
  starling import table edges.csv --src from_user --dst to_user --weight amount --out graph
  starling import table pay.csv --src payer --dst payee --time when --vertices users.csv --id user --label fraud --out pay
  starling import table new.csv --vertices new-users.csv --like run --out new
  starling import parquet tables/ --out graph
  starling import edgelist web.txt.gz --symmetrize --labels labels.csv --features features.npy --out web
  starling import edgelist users.csv --features people.csv --one-hot country --missing mean --standardize --out users
  starling import metis 4elt.graph --features-from position --out 4elt
  starling import schema mag.yaml --check
  starling import schema mag.yaml --out mag`,
		Args: arguments(2, 2, "a format ("+strings.Join(run.Formats(), ", ")+") and a source"),
		RunE: func(c *cobra.Command, args []string) error {
			opt.SettleTable(args[0], c.Flags().Changed("standardize"))
			if check {
				return printCheck(args[0], args[1], opt)
			}
			shared := c.Flags().Changed("memory") || in.IDs != "" || c.Flags().Changed("launcher")
			if workers == 0 && shared || workers < 0 {
				return spec.Mistake("--memory, --ids, --launcher", "a setting without effect", "it beside --workers", "say how many processes import, or leave it out")
			}
			if out == "" {
				return spec.Mistake("--out", "nothing", "a folder to write", "for example --out graph")
			}
			if args[0] == run.TableFormat && !quiet {
				if err := printCheck(args[0], args[1], opt); err != nil {
					return err
				}
			}
			if workers > 0 {
				var err error
				if in.Processes, err = run.ProcessesOf("--workers", workers, launcher, os.Args[1:], os.Getenv); err != nil {
					return err
				}
			}
			return writeDataset(quiet || in.Silent(), func(v run.View) (run.Summary, error) {
				if workers > 0 {
					return run.ImportShards(c.Context(), args[0], args[1], opt, in, out, v)
				}
				return run.Import(c.Context(), args[0], args[1], opt, out, v)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&out, "out", "", "folder to write (required, except with --check)")
	f.BoolVar(&check, "check", false, "say what every column becomes, and write nothing (table, schema)")
	importFlags(f, &opt)
	f.IntVar(&workers, "workers", 0, "processes that import a folder of shards together (edgelist, parquet), none of which holds it; the same command on other hosts that share the folders joins in, and goes on after they were killed; under srun, mpirun or torchrun the number of tasks")
	f.StringVar(&in.Memory, "memory", "512MiB", "with --workers: what each process may take for its data")
	f.StringVar(&in.IDs, "ids", "", "with --workers: what ids are, numbers or text; or empty: as they look, in all shards alike")
	f.StringVar(&launcher, "launcher", "auto", "with --workers: which launcher has started this task, each of whose tasks is one process: auto, none, "+strings.Join(spec.Launchers[2:], ", "))
	f.BoolVar(&quiet, "quiet", false, "show nothing")
	f.SortFlags = false
	completeArgument(c, run.Formats())
	completeValues(c, map[string][]string{"launcher": spec.Launchers})
	return c
}

// printCheck says what an import would do.
func printCheck(format, src string, opt run.ImportOptions) error {
	lines, err := run.CheckSchema(format, src, opt)
	for _, line := range lines {
		fmt.Fprintln(text, line)
	}
	return err
}

func importFlags(f *pflag.FlagSet, opt *run.ImportOptions) {
	f.StringVar(&opt.Name, "name", "", "name of the dataset; planetoid also finds its files by it")
	f.BoolVar(&opt.Symmetrize, "symmetrize", false, "add the reverse of every edge (planetoid, npz: always done; schema: relations rev_NAME)")
	f.BoolVar(&opt.KeepDuplicates, "keep-duplicates", false, "keep edges that are listed more than once")
	f.BoolVar(&opt.KeepSelfLoops, "keep-self-loops", false, "keep edges from a vertex to itself")
	f.BoolVar(&opt.Weights, "weights", false, "edges have weights: the column weight, or the third (edgelist, parquet)")
	f.BoolVar(&opt.NegativeWeights, "negative-weights", false, "keep weights below 0, which gcn cannot take")
	f.StringVar(&opt.Header, "header", "", "whether the first line is a header: yes, no, or empty to look (edgelist, table)")
	f.Int64Var(&opt.Nodes, "nodes", 0, "ids are 0..NODES-1 already (edgelist, parquet)")
	tableFlags(f, &opt.Table)
	f.StringVar(&opt.Labels, "labels", "", "file of id,label lines (edgelist)")
	f.StringVar(&opt.Splits, "splits", "", "file of id,split lines: train, val or test (edgelist)")
	f.StringVar(&opt.Features, "features", "", ".npy with a row per vertex, or a file of id,x,y,... lines (edgelist); columns of --vertices, and .npy files (table; all numbers if left out)")
	f.StringSliceVar(&opt.OneHot, "one-hot", nil, "columns of words, each word to be a feature of 0 and 1: names, or numbers from 2 on (edgelist, parquet, table)")
	f.StringVar(&opt.Missing, "missing", "", "what becomes of missing features: error, zero, or mean (of the column over the training vertices; the default of table)")
	f.StringVar(&opt.FeaturesFrom, "features-from", "", "make features where there are none: degree, one-hot, random[:WIDTH] or position[:WIDTH]")
	f.StringVar(&opt.Task, "task", "", "what labels are for: classify, regression (numbers to predict), or empty to look: those with fractions are numbers (npz, parquet, edgelist, table)")
	f.BoolVar(&opt.Standardize, "standardize", false, "features to mean 0 and variance 1 over the training vertices; the scale is kept and applied to new ones (table: unless --standardize=false)")
	f.Float64Var(&opt.Split.Train, "train", 0, "share of labelled vertices to train on, where the files have no splits")
	f.Float64Var(&opt.Split.Val, "val", 0, "share to validate on")
	f.Float64Var(&opt.Split.Test, "test", 0, "share to test on")
	f.IntVar(&opt.Split.PerClass, "per-class", 0, "training vertices of each class, instead of shares")
	f.IntVar(&opt.Split.ValCount, "val-count", 0, "with --per-class: vertices to validate on")
	f.IntVar(&opt.Split.TestCount, "test-count", 0, "with --per-class: vertices to test on")
	f.Uint64Var(&opt.Seed, "seed", 1, "of the splits")
	f.BoolVar(&opt.Overwrite, "overwrite", false, "replace an existing dataset")
}

// tableFlags say what the columns of tables are.
func tableFlags(f *pflag.FlagSet, t *run.TableColumns) {
	f.StringVar(&t.Src, "src", "", "column of the sources of edges (table; so are the flags up to --like)")
	f.StringVar(&t.Dst, "dst", "", "column of their targets")
	f.StringVar(&t.Weight, "weight", "", "column of their weights")
	f.StringVar(&t.Time, "time", "", "column of their times: dates, or whole numbers")
	f.StringSliceVar(&t.EdgeFeatures, "edge-features", nil, "columns of their features; words become features of 0 and 1")
	f.StringVar(&t.Repeats, "repeats", "", "what edges become that are listed more than once: sum, mean or count (one edge), keep or first; by default keep with times or features, sum with weights, else first")
	f.StringVar(&t.Vertices, "vertices", "", "table of vertices")
	f.StringVar(&t.ID, "id", "", "its column of ids")
	f.StringVar(&t.Label, "label", "", "its column of classes, or of numbers to predict; none: there is none")
	f.StringSliceVar(&t.Drop, "drop", nil, "columns to leave out")
	f.StringVar(&t.Split, "split", "", "its column of splits: train, val or test; or time:A,B: the earliest A of\nall train, those up to B validate, the rest tests")
	f.StringVar(&t.VertexTime, "vertex-time", "", "its column of times")
	f.StringVar(&t.Like, "like", "", "folder of a run or of a dataset: the tables become numbers in exactly its way (table, schema)")
}
