package nn

import (
	"fmt"
	"slices"
	"strings"

	"starling/tensor"
)

// OptimConfig are the settings of an optimiser.
type OptimConfig struct {
	Name        string  `json:"name" yaml:"name"` // adam, adamw or sgd
	LR          float64 `json:"lr" yaml:"lr"`
	WeightDecay float64 `json:"weight_decay" yaml:"weight_decay"`
	// DecayFirst limits weight decay to the first layer, as the GCN paper does.
	DecayFirst bool    `json:"decay_first" yaml:"decay_first"`
	Momentum   float64 `json:"momentum" yaml:"momentum"` // sgd
	Nesterov   bool    `json:"nesterov" yaml:"nesterov"` // sgd
	Beta1      float64 `json:"beta1" yaml:"beta1"`
	Beta2      float64 `json:"beta2" yaml:"beta2"`
	Eps        float64 `json:"eps" yaml:"eps"`
}

// Optimisers are the names OptimConfig.Name may have.
var Optimisers = []string{"adam", "adamw", "sgd"}

// DefaultOptim is Adam as PyTorch starts it.
func DefaultOptim() OptimConfig {
	return OptimConfig{Name: "adam", LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}
}

// Validate names the first setting that makes no sense.
func (c *OptimConfig) Validate() error {
	switch {
	case !slices.Contains(Optimisers, c.Name):
		return fmt.Errorf("optimiser %q is not one of %s", c.Name, strings.Join(Optimisers, ", "))
	case !(c.LR > 0) || c.LR > 1e6:
		return fmt.Errorf("learning rate is %g; it must be above 0", c.LR)
	case !(c.WeightDecay >= 0) || c.WeightDecay > 1e6:
		return fmt.Errorf("weight decay is %g; it must not be negative", c.WeightDecay)
	case !(c.Momentum >= 0 && c.Momentum < 1):
		return fmt.Errorf("momentum is %g; it must be at least 0 and below 1", c.Momentum)
	case c.Nesterov && c.Momentum == 0:
		return fmt.Errorf("nesterov needs a momentum above 0")
	case !(c.Beta1 >= 0 && c.Beta1 < 1) || !(c.Beta2 >= 0 && c.Beta2 < 1) || !(c.Eps > 0):
		return fmt.Errorf("adam's betas %g and %g must be in [0,1) and eps %g above 0", c.Beta1, c.Beta2, c.Eps)
	}
	return nil
}

// Optimiser updates parameters from their gradients.
type Optimiser struct {
	Config OptimConfig
	Steps  int // taken so far

	dev    tensor.Device
	params []*Param
}

// NewOptimiser keeps its state beside the parameters.
func NewOptimiser(dev tensor.Device, params []*Param, c OptimConfig) *Optimiser {
	o := &Optimiser{Config: c, dev: dev, params: params}
	for _, p := range params {
		p.state = p.state[:0]
		for range o.stateNames() {
			p.state = append(p.state, dev.New(dev.Type(), p.Value.Rows, p.Value.Cols))
		}
	}
	return o
}

// stateNames are what is kept of every parameter.
func (o *Optimiser) stateNames() []string { return o.Config.stateNames() }

// States is the number of matrices that are kept beside every parameter.
func (c *OptimConfig) States() int { return len(c.stateNames()) }

func (c *OptimConfig) stateNames() []string {
	switch {
	case c.Name != "sgd":
		return []string{"exp_avg", "exp_avg_sq"}
	case c.Momentum != 0:
		return []string{"momentum_buffer"}
	}
	return nil
}

// Step updates every parameter once, at the given learning rate.
func (o *Optimiser) Step(lr float64) {
	o.Steps++
	for _, p := range o.params {
		decay := o.Config.WeightDecay
		if o.Config.DecayFirst && p.Layer > 0 {
			decay = 0
		}
		if o.Config.Name == "sgd" {
			o.sgd(p, lr, decay)
			continue
		}
		o.dev.Adam(p.Value, p.Grad, p.state[0], p.state[1], tensor.Adam{LR: lr, Beta1: o.Config.Beta1,
			Beta2: o.Config.Beta2, Eps: o.Config.Eps, Decay: decay, Decoupled: o.Config.Name == "adamw", Step: o.Steps})
	}
}

func (o *Optimiser) sgd(p *Param, lr, decay float64) {
	var buf tensor.Matrix
	if len(p.state) > 0 {
		buf = p.state[0]
	}
	o.dev.SGD(p.Value, p.Grad, buf, tensor.SGD{LR: lr, Momentum: o.Config.Momentum, Decay: decay,
		Nesterov: o.Config.Nesterov, Step: o.Steps})
}
