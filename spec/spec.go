package spec

import "starling/train"

// Spec is everything a user can say about a training run. The tag topic is the heading of a
// setting and those after it in a command's help; the help texts are in help.go. Settings tagged
// resume:"free" may differ between a run and its continuation; all others decide the result. Those
// tagged auto are numbers that Complete chooses by model and graph where they are Auto.
type Spec struct {
	Dataset string `json:"dataset" resume:"free"`

	Task             string  `json:"task" topic:"The model"`
	Model            string  `json:"model"`
	Mode             string  `json:"mode"`
	Layers           int     `json:"layers" auto:"true"`
	Hidden           int     `json:"hidden" auto:"true"`
	Heads            int     `json:"heads" auto:"true"`
	OutHeads         int     `json:"out_heads"`
	Dropout          float64 `json:"dropout" auto:"true"`
	InputDropout     bool    `json:"input_dropout"`
	AttentionDropout float64 `json:"attention_dropout"`
	Norm             string  `json:"norm"`
	Aggregator       string  `json:"aggregator"`
	TrainEps         bool    `json:"train_eps"`
	EdgeFeatures     bool    `json:"edge_features"`

	Epochs       int     `json:"epochs" auto:"true" resume:"free" topic:"Training"`
	LR           float64 `json:"lr" auto:"true"`
	Optimizer    string  `json:"optimizer"`
	WeightDecay  float64 `json:"weight_decay" auto:"true"`
	DecayFirst   bool    `json:"decay_first"`
	Momentum     float64 `json:"momentum"`
	Nesterov     bool    `json:"nesterov"`
	Schedule     string  `json:"schedule"`
	EvalEvery    int     `json:"eval_every"`
	Patience     int     `json:"patience"`
	Seed         uint64  `json:"seed"`
	Inductive    bool    `json:"inductive"`
	RowNormalize bool    `json:"row_normalize"`
	InitFrom     string  `json:"init_from"`

	BatchSize  int    `json:"batch_size" topic:"Batches (--mode mini)"`
	Fanout     string `json:"fanout"`
	Sampler    string `json:"sampler"`
	Replace    bool   `json:"replace"`
	Weighted   bool   `json:"weighted"`
	Clusters   int    `json:"clusters"`
	WalkLength int    `json:"walk_length"`

	Decoder       string  `json:"decoder" topic:"Pairs of vertices (--task link, unsupervised)"`
	Embedding     int     `json:"embedding"`
	ValEdges      float64 `json:"val_edges"`
	TestEdges     float64 `json:"test_edges"`
	Negatives     string  `json:"negatives"`
	NegativesEach int     `json:"negatives_each"`
	NegativesFrom string  `json:"negatives_from"`
	AvoidEdges    bool    `json:"avoid_edges"`
	RankNegatives int     `json:"rank_negatives"`
	Walks         int     `json:"walks"`

	LearnEmbeddings    int    `json:"learn_embeddings" topic:"Learnt rows of vertices (--mode mini)"`
	EmbeddingOptimizer string `json:"embedding_optimizer"`
	AsyncEmbeddings    bool   `json:"async_embeddings"`

	Out           string `json:"out" resume:"free" topic:"Output"`
	Overwrite     bool   `json:"overwrite" resume:"free"`
	JSON          string `json:"json" resume:"free"`
	Events        string `json:"events" resume:"free"`
	Trace         string `json:"trace" resume:"free"`
	MetricsListen string `json:"metrics_listen" resume:"free"`
	Quiet         bool   `json:"quiet" resume:"free"`

	CheckpointDir   string   `json:"checkpoint_dir" resume:"free" topic:"Checkpoints"`
	CheckpointEvery Interval `json:"checkpoint_every" resume:"free"`
	KeepCheckpoints int      `json:"keep_checkpoints" resume:"free"`
	Resume          bool     `json:"resume" resume:"free"`
	ResumeIfAny     bool     `json:"resume_if_any" resume:"free"`

	Device      string `json:"device" resume:"free" topic:"This machine"`
	DType       string `json:"dtype"`
	FeaturesOn  string `json:"features_on"`
	CacheFirst  string `json:"cache_first"`
	SIMD        string `json:"simd"`
	MatMul      string `json:"matmul"`
	Threads     int    `json:"threads" resume:"free"`
	MemoryCheck bool   `json:"memory_check" resume:"free"`

	Workers     int    `json:"workers" resume:"free" topic:"Several workers"`
	Strategy    string `json:"strategy" resume:"free"`
	Servers     int    `json:"servers" resume:"free"`
	Partition   string `json:"partition" resume:"free"`
	Parts       int    `json:"parts" resume:"free"`
	Partitioner string `json:"partitioner" resume:"free"`
	InProcess   bool   `json:"in_process" resume:"free"`
	Transport   string `json:"transport" resume:"free"`
	SendOrder   string `json:"send_order" resume:"free"`
	AllReduce   string `json:"all_reduce" resume:"free"`
	DSCP        bool   `json:"dscp" resume:"free"`
	Paths       string `json:"paths" resume:"free"`
	OnFailure   string `json:"on_failure" resume:"free"`
	Heartbeat   int    `json:"heartbeat" resume:"free"`
	Timeout     int    `json:"timeout" resume:"free"`

	// Settings are the options of all strategies: see train.Option.
	Settings train.Settings `topic:"Options of strategies"`

	Listen     string `json:"listen" resume:"free" topic:"Several hosts"`
	Hosts      string `json:"hosts" resume:"free"`
	SSHCommand string `json:"ssh_command" resume:"free"`
	Launcher   string `json:"launcher" resume:"free"`
	Rendezvous string `json:"rendezvous" resume:"free"`
	NoLaunch   bool   `json:"no_launch" resume:"free"`
	TokenFile  string `json:"token_file" resume:"free"`
	TLS        string `json:"tls" resume:"free"`
	Insecure   bool   `json:"insecure" resume:"free"`
}

// Default is the spec of a run without any flag.
func Default() Spec {
	return Spec{
		Task: "auto", Model: "gcn", Mode: "full", Strategy: "default",
		Layers: Auto, Hidden: Auto, Heads: Auto, OutHeads: 1, Dropout: Auto, Norm: "auto", Aggregator: "mean",
		BatchSize: 1024, Fanout: "auto", Sampler: "neighbour",
		Decoder: "dot", ValEdges: 0.05, TestEdges: 0.1, Negatives: "auto", NegativesFrom: "global",
		AvoidEdges: true, RankNegatives: 100, Walks: 5, EmbeddingOptimizer: "adam",
		Optimizer: "adam", LR: Auto, WeightDecay: Auto, Schedule: "none",
		Epochs: Auto, EvalEvery: 1, Seed: 1,
		Device: "cpu", DType: "f32", FeaturesOn: "auto",
		CacheFirst: "auto", SIMD: "auto", MatMul: "split", MemoryCheck: true,
		Partitioner: "multilevel", Transport: "auto", SendOrder: "type", AllReduce: "host", Timeout: 60,
		OnFailure: "restart", Heartbeat: 7,
		Launcher: "auto", SSHCommand: "ssh -o BatchMode=yes -o ConnectTimeout=10",
		CheckpointEvery: 10, KeepCheckpoints: 3,
	}
}
