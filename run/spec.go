package run

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/pflag"

	"starling/graph"
)

// Spec is everything a user can say about a training run. The tag help becomes
// the flag's help text. Fields tagged resume:"free" may differ between a run
// and its continuation; all others decide the result.
type Spec struct {
	Dataset string `json:"dataset" yaml:"dataset" resume:"free"`

	Task             string  `json:"task" yaml:"task" help:"what is learnt: classify (one class a vertex), multilabel (any number), regression (numbers), link or unsupervised; auto: what the labels are" topic:"The model"`
	Model            string  `json:"model" yaml:"model" help:"gcn, sage, sage-pool, gat, gatv2, gin, film, resgcn+, ressage+ or mlp"`
	Mode             string  `json:"mode" yaml:"mode" help:"full: every epoch is one step over the whole graph; mini: a step for every batch of training vertices"`
	Layers           int     `json:"layers" yaml:"layers" help:"number of layers"`
	Hidden           int     `json:"hidden" yaml:"hidden" help:"width of hidden layers, all heads together"`
	Heads            int     `json:"heads" yaml:"heads" help:"attention heads (gat, gatv2)"`
	OutHeads         int     `json:"out_heads" yaml:"out_heads" help:"heads the last layer averages (gat, gatv2)"`
	Dropout          float64 `json:"dropout" yaml:"dropout" help:"dropout between layers"`
	InputDropout     bool    `json:"input_dropout" yaml:"input_dropout" help:"draw --dropout on the features too"`
	AttentionDropout float64 `json:"attention_dropout" yaml:"attention_dropout" help:"dropout of attention coefficients (gat, gatv2)"`
	Norm             string  `json:"norm" yaml:"norm" help:"none, batch, layer, or auto: layer for res models, else none"`
	Aggregator       string  `json:"aggregator" yaml:"aggregator" help:"mean or gcn (sage)"`
	TrainEps         bool    `json:"train_eps" yaml:"train_eps" help:"train the weight of a vertex's own row (gin)"`
	EdgeFeatures     bool    `json:"edge_features" yaml:"edge_features" help:"look at the features of edges (gat, gatv2, gin)"`

	Epochs       int     `json:"epochs" yaml:"epochs" help:"epochs to train" resume:"free" topic:"How it is trained"`
	LR           float64 `json:"lr" yaml:"lr" help:"learning rate"`
	Optimizer    string  `json:"optimizer" yaml:"optimizer" help:"adam, adamw or sgd"`
	WeightDecay  float64 `json:"weight_decay" yaml:"weight_decay" help:"weight decay (L2; decoupled with adamw)"`
	DecayFirst   bool    `json:"decay_first" yaml:"decay_first" help:"decay only the first layer's weights"`
	Momentum     float64 `json:"momentum" yaml:"momentum" help:"momentum (sgd)"`
	Nesterov     bool    `json:"nesterov" yaml:"nesterov" help:"Nesterov momentum (sgd)"`
	Schedule     string  `json:"schedule" yaml:"schedule" help:"learning rate over epochs: none, step:EPOCHS,FACTOR or cosine:EPOCHS[,MIN]"`
	EvalEvery    int     `json:"eval_every" yaml:"eval_every" help:"measure the task's metric every so many epochs; 0: only after the last"`
	Patience     int     `json:"patience" yaml:"patience" help:"stop after so many epochs without a better metric on the validation split; 0: never"`
	Seed         uint64  `json:"seed" yaml:"seed" help:"seed of all random draws"`
	Inductive    bool    `json:"inductive" yaml:"inductive" help:"train on the subgraph of the training vertices, measure on the whole graph"`
	RowNormalize bool    `json:"row_normalize" yaml:"row_normalize" help:"scale each vertex's features to sum to one"`

	BatchSize  int    `json:"batch_size" yaml:"batch_size" help:"training vertices of a batch; of subgraphs the vertices, edges or walks drawn" topic:"Batches (--mode mini)"`
	Fanout     string `json:"fanout" yaml:"fanout" help:"neighbours drawn for a vertex, from the last layer, the batch's own, to the first, as 15,10,5 (all: every one); vertices drawn a layer (fastgcn, ladies); auto: 15,10,5,5... or 512 each"`
	Sampler    string `json:"sampler" yaml:"sampler" help:"how batches are drawn: neighbour, fastgcn, ladies, cluster, saint-node, saint-edge or saint-walk"`
	Replace    bool   `json:"replace" yaml:"replace" help:"draw neighbours with replacement (neighbour)"`
	Weighted   bool   `json:"weighted" yaml:"weighted" help:"draw neighbours in proportion to edge weights (neighbour)"`
	Clusters   int    `json:"clusters" yaml:"clusters" help:"clusters the graph is cut into (cluster); 0: so many that ten make a batch, but of 150 vertices or more"`
	WalkLength int    `json:"walk_length" yaml:"walk_length" help:"steps of a walk (saint-walk, or --task unsupervised); 0: one a layer, or 5"`

	Decoder       string  `json:"decoder" yaml:"decoder" help:"how pairs are scored (link): dot, or mlp on the product of both ends" topic:"Pairs of vertices (--task link, unsupervised)"`
	Embedding     int     `json:"embedding" yaml:"embedding" help:"numbers that a vertex becomes (link, unsupervised); 0: as many as --hidden"`
	ValEdges      float64 `json:"val_edges" yaml:"val_edges" help:"share of the edges held out for validation (link)"`
	TestEdges     float64 `json:"test_edges" yaml:"test_edges" help:"share of the edges held out for the test (link)"`
	Negatives     string  `json:"negatives" yaml:"negatives" help:"how vertices are drawn against a pair (link, unsupervised): uniform, or degree:POWER; auto: uniform for link, degree:0.75 for unsupervised"`
	NegativesEach int     `json:"negatives_each" yaml:"negatives_each" help:"vertices drawn against each pair (link, unsupervised); 0: 1 for link, 5 for unsupervised"`
	AvoidEdges    bool    `json:"avoid_edges" yaml:"avoid_edges" help:"draw no vertex that an edge of training leads to (link)"`
	RankNegatives int     `json:"rank_negatives" yaml:"rank_negatives" help:"vertices that a held-out edge's end is ranked among, for MRR and hits (link, unsupervised)"`
	Walks         int     `json:"walks" yaml:"walks" help:"walks begun at every vertex in an epoch (unsupervised), of --walk-length steps"`

	Out           string `json:"out" yaml:"out" help:"write the best weights (safetensors) and config.json to this folder" resume:"free" topic:"What is written"`
	JSON          string `json:"json" yaml:"json" help:"write the result to this file, - for standard output" resume:"free"`
	Events        string `json:"events" yaml:"events" help:"write every event of the run to this file, a line of JSON each" resume:"free"`
	Trace         string `json:"trace" yaml:"trace" help:"write a timeline to this file, for ui.perfetto.dev" resume:"free"`
	MetricsListen string `json:"metrics_listen" yaml:"metrics_listen" help:"answer Prometheus on this address, as 127.0.0.1:9400, and every worker on the port plus 1 and its rank; port 0 is any" resume:"free"`
	Quiet         bool   `json:"quiet" yaml:"quiet" help:"show nothing while training but warnings and failures" resume:"free"`

	CheckpointDir   string `json:"checkpoint_dir" yaml:"checkpoint_dir" help:"folder for checkpoints" resume:"free" topic:"Checkpoints"`
	CheckpointEvery int    `json:"checkpoint_every" yaml:"checkpoint_every" help:"epochs between checkpoints; 0: only at the end or when interrupted" resume:"free"`
	KeepCheckpoints int    `json:"keep_checkpoints" yaml:"keep_checkpoints" help:"newest checkpoints to keep" resume:"free"`
	Resume          bool   `json:"resume" yaml:"resume" help:"go on from the latest checkpoint in --checkpoint-dir" resume:"free"`
	ResumeIfAny     bool   `json:"resume_if_any" yaml:"resume_if_any" help:"--resume if there is a checkpoint, else start from the beginning: for launchers that start a run again" resume:"free"`

	DType       string `json:"dtype" yaml:"dtype" help:"storage of features and activations: f32, bf16, or f64 for the slow reference device" topic:"This machine"`
	CacheFirst  string `json:"cache_first" yaml:"cache_first" help:"compute the first layer's sums over neighbours once and keep them, which takes one more matrix of vertices x features: auto, on or off"`
	SIMD        string `json:"simd" yaml:"simd" help:"instruction set: auto, generic, avx2, avx512, amx or amx-fp16"`
	Threads     int    `json:"threads" yaml:"threads" help:"cores a worker uses; 0: all, shared evenly between the workers of a host" resume:"free"`
	MemoryCheck bool   `json:"memory_check" yaml:"memory_check" help:"refuse to start when the predicted memory does not fit" resume:"free"`

	Workers     int    `json:"workers" yaml:"workers" help:"number of workers; 0: one a part of a partition, else one" resume:"free" topic:"Several workers"`
	Strategy    string `json:"strategy" yaml:"strategy" help:"what leaves a worker and when: none (one worker), halo (exact), or another of docs/strategies, with its setting as in bns:0.1; auto: what fits --workers" resume:"free"`
	Servers     int    `json:"servers" yaml:"servers" help:"group the workers, in order, into so many servers; 0: every host is one" resume:"free"`
	Partition   string `json:"partition" yaml:"partition" help:"folder of a partition of the dataset, a part for every worker; or a method to cut with, as --partitioner" resume:"free"`
	Parts       int    `json:"parts" yaml:"parts" help:"parts to cut the dataset into: as many as --workers, since each trains one" resume:"free"`
	Partitioner string `json:"partitioner" yaml:"partitioner" help:"method to cut a dataset with that was not partitioned before" resume:"free"`
	InProcess   bool   `json:"in_process" yaml:"in_process" help:"run the workers inside this process instead of in one each" resume:"free"`
	Transport   string `json:"transport" yaml:"transport" help:"how workers reach each other: tcp, shm, inprocess, mpi (under mpirun), or auto: shm on one host, else tcp" resume:"free"`
	OnFailure   string `json:"on_failure" yaml:"on_failure" help:"when a worker is lost: restart it, or wait for one to be started by hand, and go on from the newest checkpoint; or stop" resume:"free"`
	Heartbeat   int    `json:"heartbeat" yaml:"heartbeat" help:"seconds of silence after which a worker is taken for dead" resume:"free"`
	Timeout     int    `json:"timeout" yaml:"timeout" help:"seconds that a worker waits for others before it gives up" resume:"free"`

	Staleness    string  `json:"staleness" yaml:"staleness" help:"how old rows may be (sancus): epoch:K, adaptive:K or variation:X" topic:"Settings of strategies"`
	Clip         float64 `json:"clip" yaml:"clip" help:"norm that a worker's gradients are clipped to (sancus); 0: not"`
	Smooth       float64 `json:"smooth" yaml:"smooth" help:"weight of the past in the moving average of late rows (pipegcn); 0: none"`
	G3Pipeline   string  `json:"g3_pipeline" yaml:"g3_pipeline" help:"what overlaps (g3): none, inter (layers), intra (a layer), or both" resume:"free"`
	Preload      string  `json:"preload" yaml:"preload" help:"layers whose remote vertices a server computes itself (granndis): a number, or auto: by cost, within --memory-budget, with --eas all" resume:"free"`
	EAS          string  `json:"eas" yaml:"eas" help:"expansion-aware sampling beyond a server's border (granndis), as HOPS,FANOUT; none: all"`
	MemoryBudget string  `json:"memory_budget" yaml:"memory_budget" help:"memory of a worker that strategies may fill, as 4GiB; none: what is free" resume:"free"`
	Means        bool    `json:"means" yaml:"means" help:"put rows that are late or old right on average: a row a peer and layer is sent in time, and waited for (pipegcn, sancus, bns:P:cached)" resume:"free"`
	Relay        bool    `json:"relay" yaml:"relay" help:"send a row that several workers of a server need between servers once; the workers pass it on (halo, bns, g3, pipegcn, neutronstar)" resume:"free"`
	SparseRows   bool    `json:"sparse_rows" yaml:"sparse_rows" help:"send hidden rows without their zeros, and gradients only where the rows are not zero; nothing is rounded (gcn and sage from 3 layers on, gin, resgcn+, ressage+)" resume:"free"`
	WireDType    string  `json:"wire_dtype" yaml:"wire_dtype" help:"type that rows travel in: none (as they are), bf16 or int8, with error feedback"`

	Listen     string `json:"listen" yaml:"listen" help:"address where workers meet; none: a port of 127.0.0.1" resume:"free" topic:"Several hosts"`
	Hosts      string `json:"hosts" yaml:"hosts" help:"file of hosts to start workers on over ssh: a line each, as alpha slots=4" resume:"free"`
	SSHCommand string `json:"ssh_command" yaml:"ssh_command" help:"how --hosts are reached" resume:"free"`
	Launcher   string `json:"launcher" yaml:"launcher" help:"who started this process as one of several: slurm, openmpi, mpich, torchrun, kubernetes, none, or auto: as the environment says" resume:"free"`
	Rendezvous string `json:"rendezvous" yaml:"rendezvous" help:"where workers learn of the run: tcp:HOST:PORT, file:FOLDER that all hosts share, or etcd:URL/PREFIX; none: as the launcher says" resume:"free"`
	NoLaunch   bool   `json:"no_launch" yaml:"no_launch" help:"start no workers, wait for those started with starling worker" resume:"free"`
	TokenFile  string `json:"token_file" yaml:"token_file" help:"file with the secret that all workers share; needed beyond 127.0.0.1" resume:"free"`
	TLS        string `json:"tls" yaml:"tls" help:"folder with this host's certificate, as starling certs makes it: all workers must have one of the same authority" resume:"free"`
	Insecure   bool   `json:"insecure" yaml:"insecure" help:"listen beyond 127.0.0.1 without a secret: whoever reaches the port can join" resume:"free"`
}

// Default is what a run is when nothing is said.
func Default() Spec {
	return Spec{
		Task: "auto", Model: "gcn", Mode: "full", Strategy: "auto", Staleness: "epoch:2", G3Pipeline: "both", Preload: "auto", WireDType: "none",
		Layers: 3, Hidden: 256, Heads: 4, OutHeads: 1, Dropout: 0.5, Norm: "auto", Aggregator: "mean",
		BatchSize: 1024, Fanout: "auto", Sampler: "neighbour",
		Decoder: "dot", ValEdges: 0.05, TestEdges: 0.1, Negatives: "auto", AvoidEdges: true, RankNegatives: 100, Walks: 5,
		Optimizer: "adam", LR: 0.01, Schedule: "none",
		Epochs: 200, EvalEvery: 1, Seed: 1,
		DType: "f32", CacheFirst: "auto", SIMD: "auto", MemoryCheck: true,
		Partitioner: "multilevel", Transport: "auto", Timeout: 60, OnFailure: "restart", Heartbeat: 7, Launcher: "auto", SSHCommand: "ssh -o BatchMode=yes -o ConnectTimeout=10",
		CheckpointEvery: 10, KeepCheckpoints: 3,
	}
}

// field is one setting of a spec.
type field struct {
	name  string // weight_decay
	help  string
	topic string // it stands under in the help of a command
	free  bool   // may differ when a run is resumed
	value reflect.Value
}

// flag is the setting's name on the command line.
func (f field) flag() string { return "--" + strings.ReplaceAll(f.name, "_", "-") }

// fields lists the settings of s in order.
func (s *Spec) fields() []field {
	v := reflect.ValueOf(s).Elem()
	var out []field
	topic := ""
	for i := range v.NumField() {
		t := v.Type().Field(i)
		topic = cmp.Or(t.Tag.Get("topic"), topic)
		out = append(out, field{name: t.Tag.Get("json"), help: t.Tag.Get("help"), topic: topic, free: t.Tag.Get("resume") == "free", value: v.Field(i)})
	}
	return out
}

// FlagTopic annotates a flag with what it is about.
const FlagTopic = "topic"

// Flags registers a flag for every setting but the dataset, with the present
// values as defaults.
func (s *Spec) Flags(fs *pflag.FlagSet) {
	for _, f := range s.fields() {
		if f.help == "" {
			continue
		}
		name := strings.TrimPrefix(f.flag(), "--")
		switch p := f.value.Addr().Interface().(type) {
		case *string:
			fs.StringVar(p, name, *p, f.help)
		case *int:
			fs.IntVar(p, name, *p, f.help)
		case *uint64:
			fs.Uint64Var(p, name, *p, f.help)
		case *float64:
			fs.Float64Var(p, name, *p, f.help)
		case *bool:
			fs.BoolVar(p, name, *p, f.help)
		}
		fs.SetAnnotation(name, FlagTopic, []string{f.topic})
	}
}

// unread says which file could not be opened, and why, without the system's name of the call.
func unread(err error) string {
	var at *fs.PathError
	switch {
	case !errors.As(err, &at):
		return err.Error()
	case errors.Is(err, fs.ErrNotExist):
		return "no such file as " + at.Path
	}
	return at.Path + ": " + at.Err.Error()
}

const maxSpecBytes = 1 << 20

// readAtMost reads a file, or so many bytes of it.
func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// LoadFile sets s to the defaults with what the file at path says, and then again
// to what was said on the command line: flags win over the file.
func (s *Spec) LoadFile(path string, fs *pflag.FlagSet) error {
	b, err := readAtMost(path, maxSpecBytes+1)
	if err != nil {
		return &graph.InputError{Field: "--config", Found: unread(err), Want: "a starling.yaml", Fix: "starling train DIR --dry-run prints one"}
	}
	said := map[string]string{}
	fs.Visit(func(f *pflag.Flag) { said[f.Name] = f.Value.String() })
	read, err := ParseSpec(b)
	if err != nil {
		return graph.InFile(path, err)
	}
	*s = read
	for name, value := range said {
		if err := fs.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// ParseSpec reads the text form: settings that are left out have their defaults,
// unknown ones are refused.
func ParseSpec(b []byte) (Spec, error) {
	s := Default()
	if len(b) > maxSpecBytes {
		return s, &graph.InputError{Found: "a file too large for a spec", Want: fmt.Sprintf("at most %d bytes", maxSpecBytes)}
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return s, nil
	}
	in := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict())
	if err := in.Decode(&s); err != nil && err != io.EOF { // nothing but comments
		text, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
		return s, &graph.InputError{Found: text, Want: "settings as starling train DIR --dry-run prints them", Fix: s.meant(text)}
	}
	var more any
	if err := in.Decode(&more); more != nil || err != nil && err != io.EOF {
		return s, &graph.InputError{Found: "more settings after ---", Want: "one list of them", Fix: "only the first would count: put them together"}
	}
	return s, wholeNumbers(&s, b)
}

// meant is a setting that resembles the unknown one that the reader complains of, as
// weight_decay for weight-decay.
func (s *Spec) meant(complaint string) string {
	_, name, _ := strings.Cut(complaint, "unknown field \"")
	name, _, ok := strings.Cut(name, "\"")
	if !ok {
		return ""
	}
	var known []string
	for _, f := range s.fields() {
		known = append(known, f.name)
	}
	return suggest(strings.ReplaceAll(name, "-", "_"), known)
}

// wholeNumbers refuses 1.5 layers, which the YAML reader would quietly cut to 1.
func wholeNumbers(s *Spec, b []byte) error {
	var given map[string]any
	if err := yaml.Unmarshal(b, &given); err != nil {
		return &graph.InputError{Found: "no settings", Want: "name: value lines"}
	}
	for _, f := range s.fields() {
		x, ok := given[f.name].(float64)
		if kind := f.value.Kind(); ok && (kind == reflect.Int || kind == reflect.Uint64) {
			return &graph.InputError{Field: f.name, Found: fmt.Sprint(x), Want: "a whole number"}
		}
	}
	return nil
}

// String is the text form, YAML.
func (s Spec) String() string {
	b, err := yaml.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("run: a spec that is no YAML: %v", err)) // plain fields always are
	}
	return string(b)
}
