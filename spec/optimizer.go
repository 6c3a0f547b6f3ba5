package spec

import (
	"fmt"

	"starling/nn"
)

// Optimizer is how gradients change the weights.
type Optimizer struct {
	Name        string  `json:"optimizer"`
	LR          float64 `json:"lr" range:"(0,1000000]" auto:"true"`
	WeightDecay float64 `json:"weight_decay" range:"[0,1000000]" auto:"true"`
	DecayFirst  bool    `json:"decay_first"`
	Momentum    float64 `json:"momentum" range:"[0,1)"`
	Nesterov    bool    `json:"nesterov"`
	Schedule    string  `json:"schedule"`
}

func defaultOptimizer() Optimizer {
	return Optimizer{Name: "adam", LR: Auto, WeightDecay: Auto, Schedule: "none"}
}

func (o *Optimizer) Validate() error {
	if err := checkFields(o); err != nil {
		return err
	}
	if _, err := nn.ParseSchedule(o.Schedule); err != nil {
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
