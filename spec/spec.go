package spec

import (
	"starling/nn"
	"starling/train"
)

// Spec is everything a user can say about a training run: what decides which of the other settings
// matter, and groups of settings, each with its defaults and checks in a file of its own. The tag
// json is a setting's name in all text forms; help.go has their order and help texts. Settings tagged
// resume:"free" may differ between a run and its continuation; all others decide the result. Settings
// tagged auto are numbers that Complete chooses by model and graph where they are Auto.
type Spec struct {
	Dataset  string `json:"dataset" resume:"free"`
	Task     string `json:"task"`
	Mode     string `json:"mode"`
	Seed     uint64 `json:"seed"`
	Strategy string `json:"strategy" resume:"free"`
	// Settings are the options of all strategies: see train.Option.
	Settings train.Settings

	Model       Model       `json:"model"`
	Training    Training    `json:"training"`
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
		Model: defaultModel(), Training: defaultTraining(), Optimizer: defaultOptimizer(), Batches: defaultBatches(),
		Pairs: defaultPairs(), Embeddings: defaultEmbeddings(), Checkpoints: defaultCheckpoints(),
		Machine: defaultMachine(), Cluster: defaultCluster(), Launch: defaultLaunch()}
}

// group is a part of a spec. Validate names the first of its settings that makes no sense, or
// contradicts another of the group; it is for a spec that is complete.
type group interface{ Validate() error }

func (s *Spec) groups() []group {
	return []group{&s.Model, &s.Training, &s.Optimizer, &s.Batches, &s.Pairs, &s.Embeddings, &s.Output, &s.Checkpoints,
		&s.Machine, &s.Cluster, &s.Launch}
}

// ownChoices are the choices that are in no group.
func (s *Spec) ownChoices() []choice {
	return []choice{
		{"task", s.Task, append([]string{"auto"}, nn.Tasks...)},
		{"mode", s.Mode, []string{string(train.FullGraph), string(train.MiniBatch)}},
	}
}

// choices are all settings with a list of values, for help and validation. The strategy may be
// followed by options, so that its value is not compared with the list.
func (s *Spec) choices() choiceList {
	all := append(s.ownChoices(), choice{"strategy", "", train.Names()})
	for _, g := range s.groups() {
		if g, ok := g.(interface{ choices() []choice }); ok {
			all = append(all, g.choices()...)
		}
	}
	return all
}
