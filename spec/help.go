package spec

// topic is a heading of a command's help, with its settings in order: the order of all text forms.
type topic struct {
	name     string
	settings []setting
}

// setting is a setting's name and its help text, in which {} stands for the values it may have.
type setting struct{ name, help string }

// topics are all settings. A topic without any has the options of strategies.
var topics = []topic{
	{"", []setting{{"dataset", ""}}}, // which is an argument
	{"The model", []setting{
		{"task", "what is learnt: classify (one class per vertex), multilabel (any number of classes), regression " +
			"(numbers), link (edges) or unsupervised (embeddings); auto: as the labels say"},
		{"target", "type of vertices whose labels are learnt (typed graphs); by default the only one with labels. " +
			"With --task link: the relation whose edges are predicted, as \"user buys item\"; several with a ; " +
			"between them"},
		{"model", "{}; rgcn, hsage, rgat, hgt and simplehgn are for typed graphs, which the others are not for"},
		{"mode", "full: one step per epoch, over the whole graph; mini: one step per batch"},
		{"layers", "number of layers; auto, here and below: by model and dataset, as --dry-run shows"},
		{"hidden", "width of hidden layers, all heads together"},
		{"heads", "attention heads (gat, gatv2, rgat, hgt, simplehgn)"},
		{"out_heads", "heads that the last layer averages (gat, gatv2)"},
		{"bases", "weights of relations are sums of this many matrices (rgcn); 0: each relation has its own"},
		{"blocks", "weights of relations have this many blocks on a diagonal (rgcn); 0: they are full"},
		{"dropout", "dropout between layers"},
		{"input_dropout", "apply --dropout to the features too; auto: not where --dropout is given"},
		{"attention_dropout", "dropout of attention coefficients (gat, gatv2, rgat, hgt, simplehgn)"},
		{"norm", "normalization: {}; auto: layer for gin and res models, else none"},
		{"aggregator", "{} (sage)"},
		{"train_eps", "train the weight of a vertex's own row (gin)"},
		{"edge_features", "use edge features (gat, gatv2, gin)"},
	}},
	{"Training", []setting{
		{"epochs", "epochs to train"},
		{"lr", "learning rate"},
		{"optimizer", "{}"},
		{"weight_decay", "weight decay (L2; decoupled with adamw)"},
		{"decay_first", "decay only the first layer's weights"},
		{"momentum", "momentum (sgd)"},
		{"nesterov", "Nesterov momentum (sgd)"},
		{"schedule", "learning rate over epochs: none, step:EPOCHS,FACTOR or cosine:EPOCHS[,MIN]"},
		{"loss", "what is minimized for classes: cross-entropy, or focal or focal:GAMMA (2), which counts vertices " +
			"less that are predicted well; auto: cross-entropy, and the squared error of numbers"},
		{"class_weights", "what classes count in the loss: balanced (the rarer the more), none, a FILE with a class " +
			"and its weight on each line, or the weights in the order of classes, as in 1,20"},
		{"metric", "what epochs are compared by, for the best one and --patience: {}; auto: by task, and " +
			"average_precision where one of two classes has less than a fifth of the training vertices"},
		{"threshold", "probability from which on the rarer of two classes, or each of several labels, is predicted: " +
			"a number, or best, which is chosen on the validation vertices; auto: 0.5, or best for two classes with " +
			"another --metric than accuracy"},
		{"standardize_targets", "learn numbers with mean 0 and deviation 1 over the training vertices; metrics and " +
			"predictions are in the numbers' own units; auto: yes for --task regression"},
		{"eval_every", "epochs between evaluations of the metric; 0: only after the last epoch"},
		{"patience", "stop after this many epochs without a better validation metric; 0: never"},
		{"seed", "seed of all random draws"},
		{"inductive", "train on the subgraph of the training vertices, evaluate on the whole graph"},
		{"row_normalize", "scale each vertex's features to sum to one"},
		{"init_from", "start from the weights of this folder, which --out of another run wrote, with a new " +
			"optimizer"},
	}},
	{"Batches (--mode mini)", []setting{
		{"batch_size", "seed vertices per batch; vertices, edges or walks drawn per batch (saint samplers)"},
		{"fanout", "neighbours drawn per vertex, as 15,10,5, the last layer first (all: every neighbour); vertices " +
			"drawn per layer (fastgcn, ladies); auto: 15,10,5,5,... or 512 each. Of a typed graph, they are " +
			"drawn of " +
			"each relation, and writes=5,2 is for that relation alone (given again for each)"},
		{"sampler", "how batches are drawn: {}"},
		{"replace", "draw neighbours with replacement (neighbour)"},
		{"weighted", "draw neighbours in proportion to edge weights (neighbour)"},
		{"temporal", "a seed vertex sees what is from before its own time (times.npy): uniform: any of it, " +
			"recent: the " +
			"latest; none: all edges (neighbour)"},
		{"clusters", "clusters to cut the graph into (cluster); auto: ten per batch, of 150 vertices or more"},
		{"walk_length", "steps per walk (saint-walk, --task unsupervised), at most (pinsage); auto: one per layer, " +
			"5 or 3"},
		{"vertex_walks", "walks of each vertex and hop, whose --fanout most visited are its neighbours (pinsage)"},
		{"restart", "probability that a walk goes back to its vertex after a step (pinsage)"},
	}},
	{"Pairs of vertices (--task link, unsupervised)", []setting{
		{"decoder", "how pairs are scored (link): {}; mlp takes the product of both ends"},
		{"embedding", "width of a vertex embedding (link, unsupervised); auto: as --hidden"},
		{"split", "edges held out (link): random, by --val-edges and --test-edges, or time:0.7,0.85: in the order of " +
			"their times those up to 0.7 of all train, those up to 0.85 validate, and the rest tests"},
		{"val_edges", "share of edges held out for validation (link)"},
		{"test_edges", "share of edges held out for testing (link)"},
		{"val_candidates", "file of validation pairs, and of the candidates that they are ranked among (link; .npz, " +
			".npy or .csv as in docs/links.md); edges that are among the pairs are held out, and no others"},
		{"test_candidates", "the same for the test"},
		{"negatives", "negatives (link, unsupervised): uniform, degree:POWER, in-batch, joint:PAIRS or hard:M; auto: " +
			"uniform for link, degree:0.75 for unsupervised (docs/links.md)"},
		{"negatives_each", "negatives per pair (link, unsupervised); auto: 1 for link, 5 for unsupervised"},
		{"negatives_from", "vertices that a worker draws negatives from (link, unsupervised): all (global, exact), " +
			"or its own (local)"},
		{"avoid_edges", "draw no negative that is a training edge (link)"},
		{"rank_negatives", "negatives that a held-out edge is ranked among, for MRR and hits (link, unsupervised)"},
		{"walks", "walks per vertex and epoch (unsupervised), of --walk-length steps"},
	}},
	{"Learnt rows of vertices (--mode mini)", []setting{
		{"learn_embeddings", "learn this many numbers per vertex beside its features, or instead of them; 0: none " +
			"(--embedding is the width of a model's output)"},
		{"embedding_optimizer", "optimizer of learnt rows: {}"},
		{"async_embeddings", "update learnt rows when gradients arrive, in any order (as DistDGL does); such a run " +
			"is not repeatable"},
	}},
	{"Output", []setting{
		{"out", "write the best weights (safetensors) and config.json to this folder"},
		{"overwrite", "replace the model in the --out folder"},
		{"json", "write the result to this file, - for standard output"},
		{"html", "write a page of the run to this file, as --web shows it, with the report by class"},
		{"events", "write every event of the run to this file, one JSON object per line"},
		{"trace", "write a timeline to this file, for ui.perfetto.dev"},
		{"tensorboard", "write the curves to this folder, for TensorBoard"},
		{"web", "show the run on a page while it goes on, at this address; without one at " + WebAddr + "; beyond " +
			"127.0.0.1 the link has a token"},
		{"metrics_listen", "serve Prometheus metrics on this address, as 127.0.0.1:9400, and each worker's on " +
			"the port plus 1 and its rank; port 0: any"},
		{"quiet", "show only warnings and failures"},
	}},
	{"Checkpoints", []setting{
		{"checkpoint_dir", "folder for checkpoints"},
		{"checkpoint_every", "epochs between checkpoints, or steps, as 500steps (--mode mini: also inside an " +
			"epoch); " +
			"0: only at the end or when interrupted"},
		{"keep_checkpoints", "how many of the newest checkpoints to keep"},
		{"resume", "continue from the newest checkpoint in --checkpoint-dir"},
		{"resume_if_any", "--resume if there is a checkpoint, else start from the beginning: for launchers that " +
			"restart runs"},
	}},
	{"This machine", []setting{
		{"device", "what computes: {}; cuda:1 is the second GPU; auto: the GPU if there is one and the run fits it"},
		{"dtype", "storage type of features and activations: {}; f64 is the slow reference device"},
		{"features_on", "where dense features are (--mode mini): {}; card: in the GPU's memory; host: in the " +
			"host's, mapped, for a GPU pinned, the rows read most often also on the GPU; disk: in their file, from " +
			"where rows are read ahead of batches; auto: card or, on a CPU, host if they fit"},
		{"feature_memory", "memory for rows with --features-on disk, as 4GiB; auto: half of what is free"},
		{"feature_scratch", "folder for rows that --features-on disk packs by batch; none: that of the features"},
		{"draw_on", "where one worker's batches are drawn when a GPU computes (--sampler neighbour): {}; auto: card, " +
			"the GPU, if the graph fits beside the run and it can; batches are the same to the bit"},
		{"cache_first", "compute the first layer's aggregation once and keep it, one more matrix of vertices x " +
			"features: {}"},
		{"simd", "instruction set: {}"},
		{"matmul", "dense products: {}; split is the fastest (with AMX, float32 as half-precision parts, and " +
			"bfloat16 with weights rounded to it), f32 uses float32 FMA only; tf32, on a GPU, rounds factors to 10 " +
			"bits"},
		{"threads", "cores per worker; auto: all, shared by the workers of a host"},
		{"memory_check", "refuse to start if the planned memory does not fit"},
	}},
	{"Several workers", []setting{
		{"workers", "number of workers; auto: one per part of a partition, else one"},
		{"strategy", "which rows workers send, and when: none (one worker) or {}, with an option as in NAME:VALUE " +
			"(docs/strategies); default: none or, for several workers, {default}; auto or auto:RATE: the fastest " +
			"exact one that starling plan predicts, with links of that rate between servers"},
		{"servers", "group the workers, in rank order, into this many servers; auto: every host is a server"},
		{"partition", "folder of a partition, one part per worker; or a method, as in --partitioner"},
		{"parts", "parts to cut the dataset into: the same as --workers"},
		{"partitioner", "method to cut the dataset with if it is not a partition: {} (--method, too)"},
		{"in_process", "run the workers as goroutines of this process"},
		{"transport", "how workers reach each other: {}; mpi needs mpirun; auto: shm on one host, else tcp"},
		{"send_order", "order in which queued messages leave: {}; type: the most urgent first, fifo: as sent, " +
			"hermod: what is consumed first"},
		{"all_reduce", "who sums gradients over workers: {}; host: in the order of ranks; nccl: NCCL between GPUs, " +
			"one per worker, in its own order, so that losses differ in the last bits"},
		{"dscp", "mark packets by urgency (DSCP), for networks with priorities: one TCP connection per class " +
			"and peer"},
		{"paths", "use every link between hosts: auto (one path per network of this host) or a FILE, on every " +
			"host, " +
			"that describes them"},
		{"on_failure", "when a worker is lost: restart it, or wait for it to be started by hand, and continue from " +
			"the newest checkpoint; or stop"},
		{"heartbeat", "seconds of silence after which a worker counts as dead"},
		{"timeout", "seconds that a worker waits for another before it fails"},
	}},
	{"Options of strategies", nil},
	{"Several hosts", []setting{
		{"listen", "address of the rendezvous; empty: a port of 127.0.0.1"},
		{"hosts", "file of hosts to start workers on over ssh, one per line, as alpha slots=4"},
		{"ssh_command", "command that reaches --hosts"},
		{"launcher", "which launcher started this process as one of several: {}; auto: as the environment says"},
		{"rendezvous", "where workers find the run: tcp:HOST:PORT, file:FOLDER (shared by all hosts) or " +
			"etcd:URL/PREFIX; empty: as the launcher says"},
		{"no_launch", "start no workers; wait for those started with starling worker"},
		{"token_file", "file with the secret that all workers share; required beyond 127.0.0.1"},
		{"tls", "folder with this host's certificate, from starling certs; all need the same authority"},
		{"insecure", "listen beyond 127.0.0.1 without a secret: anyone who reaches the port can join"},
	}},
}
