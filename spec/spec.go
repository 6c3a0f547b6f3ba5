package spec

import (
	"slices"

	"starling/coflow"
	"starling/nn"
	"starling/partition"
	"starling/sample"
	"starling/train"
)

// Spec is everything a user can say about a training run: what decides which of the other settings
// matter, and groups of settings, each with its defaults and checks in a file of its own. The tag
// json is a setting's name in all text forms; help.go has their order and help texts. The tags values
// and range are what it may have; lists that other packages have are in listOf. Settings tagged
// resume:"free" may differ between a run and its continuation; all others decide the result. Settings
// tagged auto are numbers that Complete chooses by model and graph where they are Auto.
type Spec struct {
	Dataset string `json:"dataset" resume:"free"`
	Task    string `json:"task"`
	// Target, of a typed graph, is the type whose labels are learnt; "": the only one that has any. With --task link,
	// it is the relation whose edges are predicted, or several with a ; between them.
	Target   string `json:"target"`
	Mode     string `json:"mode" values:"full,mini"`
	Seed     uint64 `json:"seed"`
	Strategy string `json:"strategy" resume:"free"`
	// Settings are the options of all strategies: see train.Option.
	Settings train.Settings

	Model       Model       `json:"model"`
	Training    Training    `json:"training"`
	Objective   Objective   `json:"objective"`
	Optimizer   Optimizer   `json:"optimizer"`
	Batches     Batches     `json:"batches"`
	Pairs       Pairs       `json:"pairs"`
	Embeddings  Embeddings  `json:"embeddings"`
	Output      Output      `json:"output"`
	Checkpoints Checkpoints `json:"checkpoints"`
	Machine     Machine     `json:"machine"`
	Cluster     Cluster     `json:"cluster"`
	Launch      Launch      `json:"launch"`
}

// Default is the spec of a run without any flag.
func Default() Spec {
	return Spec{Task: "auto", Mode: "full", Seed: 1, Strategy: "default",
		Model: defaultModel(), Training: defaultTraining(), Objective: defaultObjective(),
		Optimizer: defaultOptimizer(), Batches: defaultBatches(),
		Pairs: defaultPairs(), Embeddings: defaultEmbeddings(), Checkpoints: defaultCheckpoints(),
		Machine: defaultMachine(), Cluster: defaultCluster(), Launch: defaultLaunch()}
}

// group is a part of a spec. Validate names the first of its settings that makes no sense, or
// contradicts another of the group; it is for a spec that is complete.
type group interface{ Validate() error }

func (s *Spec) groups() []group {
	return []group{&s.Model, &s.Training, &s.Objective, &s.Optimizer, &s.Batches, &s.Pairs, &s.Embeddings, &s.Output,
		&s.Checkpoints,
		&s.Machine, &s.Cluster, &s.Launch}
}

// listOf are the values of a setting that other packages list; nil: none do.
func listOf(setting string) []string {
	switch setting {
	case "task":
		return append([]string{"auto"}, nn.Tasks...)
	case "metric":
		return append([]string{"auto"}, nn.MetricNames("")...)
	case "strategy":
		return train.Names()
	case "model":
		return slices.Concat(nn.Models, nn.TypedModels)
	case "optimizer":
		return nn.Optimisers
	case "sampler":
		return sample.Names
	case "decoder":
		return nn.RelationDecoders
	case "send_order":
		return coflow.OrderNames()
	case "partitioner":
		return partition.Names()
	case "device":
		return DeviceNames
	case "simd":
		return SIMDNames
	case "launcher":
		return Launchers
	}
	return nil
}
