package spec

import (
	"cmp"
	"fmt"

	"starling/nn"
)

// Optimizer is how gradients change the weights.
type Optimizer struct {
	Name        string  `json:"optimizer"`
	LR          float64 `json:"lr" auto:"true"`
	WeightDecay float64 `json:"weight_decay" auto:"true"`
	DecayFirst  bool    `json:"decay_first"`
	Momentum    float64 `json:"momentum"`
	Nesterov    bool    `json:"nesterov"`
	Schedule    string  `json:"schedule"`
}

func defaultOptimizer() Optimizer {
	return Optimizer{Name: "adam", LR: Auto, WeightDecay: Auto, Schedule: "none"}
}

func (o *Optimizer) Validate() error {
	if err := cmp.Or(checkFields(o), checkShare("--momentum", o.Momentum)); err != nil {
		return err
	}
	_, err := nn.ParseSchedule(o.Schedule)
	switch {
	case !(o.LR > 0 && o.LR <= 1e6):
		return Mistake("--lr", fmt.Sprint(o.LR), "above 0, and at most a million", "")
	case !(o.WeightDecay >= 0 && o.WeightDecay <= 1e6):
		return Mistake("--weight-decay", fmt.Sprint(o.WeightDecay), "0 to a million", "")
	case err != nil:
		return Mistake("--schedule", fmt.Sprintf("%q", o.Schedule), "none, step:EPOCHS,FACTOR or cosine:EPOCHS[,MIN]",
			"for example step:100,0.5")
	}
	return nil
}

func (o *Optimizer) effects() []effect {
	return []effect{
		{"--momentum", o.Momentum != 0, o.Name == "sgd", "only --optimizer sgd has momentum"},
		{"--nesterov", o.Nesterov, o.Momentum > 0, "it needs a --momentum above 0"},
		{"--decay-first", o.DecayFirst, o.WeightDecay > 0, "it needs a --weight-decay above 0"},
	}
}

func (o *Optimizer) config() nn.OptimConfig {
	c := nn.DefaultOptim()
	c.Name, c.LR, c.WeightDecay, c.DecayFirst = o.Name, o.LR, o.WeightDecay, o.DecayFirst
	c.Momentum, c.Nesterov = o.Momentum, o.Nesterov
	return c
}
