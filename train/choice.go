package train

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Choice is a strategy and its settings; those of other strategies are ignored.
type Choice struct {
	Name string

	Keep      float64 // bns: the share of border vertices kept
	Cached    bool    // bns: the others count as they last came
	Unbiased  bool    // bns: those kept are scaled by 1/Keep, as in the paper
	Staleness string  // sancus: epoch:K, adaptive:K or variation:X
	Clip      float64 // sancus: the norm gradients are clipped to; 0: not
	SkipG     int     // skipg: epochs in a row without gradients of rows
	Late      int     // pipegcn: epochs that rows are late, 0 or 1
	Smooth    float64 // pipegcn: weight of the past in its moving average; 0: none
	Pipeline  string  // g3: none, inter, intra or both
	Preload   string  // granndis: how many layers, or auto: by cost, with sampling all
	Sample    string  // granndis: HOPS,FANOUT of expansion-aware sampling; empty: none
	Budget    int64   // bytes of memory a worker may use; 0: what is free

	// Relay sends a row that several workers of a server need between servers once: see relay.go.
	Relay bool
	// Means puts rows that are late or old right on average (pipegcn, sancus, bns cached): see means.go.
	Means bool
	// SparseRows sends hidden rows without their zeros: see sparse_rows.go.
	SparseRows bool
	// WireRows is the type rows travel in: empty as they are, bf16 or int8.
	WireRows string
}

// DefaultChoice is a strategy as its paper has it.
func DefaultChoice(name string) Choice {
	return Choice{Name: name, Keep: 0.1, Staleness: "epoch:2", SkipG: 1, Late: 1, Pipeline: "both", Preload: "auto"}
}

// settings read what follows a strategy's name and a colon.
var settings = map[string]func(c *Choice, text string) error{
	"bns": func(c *Choice, text string) (err error) { // bns:0.1, bns:0.1:cached, bns:cached, bns:0.1:unbiased
		share := ":" + text
		if share, c.Cached = strings.CutSuffix(share, ":cached"); !c.Cached {
			share, c.Unbiased = strings.CutSuffix(share, ":unbiased")
		}
		if share != "" {
			c.Keep, err = strconv.ParseFloat(share[1:], 64)
		}
		return err
	},
	"sancus": func(c *Choice, text string) error {
		c.Staleness = text
		return nil
	},
	"skipg": func(c *Choice, text string) (err error) {
		c.SkipG, err = strconv.Atoi(text)
		return err
	},
	"pipegcn": func(c *Choice, text string) (err error) {
		c.Late, err = strconv.Atoi(text)
		return err
	},
	"g3": func(c *Choice, text string) error {
		c.Pipeline = text
		return nil
	},
	"granndis": func(c *Choice, text string) error { // granndis:2, granndis:eas, granndis:eas1,15, granndis:2:eas1,15
		preload, sample, sampled := strings.Cut(":"+text, ":eas")
		if preload != "" {
			c.Preload = preload[1:]
		}
		if sampled {
			c.Sample = cmp.Or(sample, "1,15")
		}
		return nil
	},
}

// examples are settings of those that may be written wrongly; the others' are checked later.
var examples = map[string]string{
	"bns":     "bns:0.1, bns:0.1:cached or bns:0.1:unbiased",
	"skipg":   "skipg:1",
	"pipegcn": "pipegcn:0",
}

// Parse reads NAME or NAME:SETTING over the settings that c has, as in bns:0.1, bns:0.1:cached, bns:0.1:unbiased,
// sancus:epoch:2, pipegcn:0, g3:inter, granndis:2, granndis:eas or granndis:2:eas.
func (c Choice) Parse(text string) (Choice, error) {
	name, setting, given := strings.Cut(text, ":")
	c.Name = name
	if _, ok := strategies[name]; !ok {
		return c, fmt.Errorf("strategy %q is not one of %s", name, strings.Join(Strategies(), ", "))
	}
	if given {
		set, ok := settings[name]
		if !ok {
			return c, fmt.Errorf("strategy %q: %s has no setting", text, name)
		}
		if err := set(&c, setting); err != nil {
			return c, fmt.Errorf("strategy %q: setting %q makes no sense; it is one as in %s", text, setting, examples[name])
		}
	}
	return c, c.check()
}

// check names the first setting that cannot be.
func (c *Choice) check() error {
	if _, ok := wireTypes[c.WireRows]; !ok {
		return fmt.Errorf("rows travel as bf16 or int8, not as %q", c.WireRows)
	}
	switch {
	case c.SparseRows && c.WireRows != "":
		return fmt.Errorf("rows travel without their zeros (--sparse-rows) or as %s (--wire-dtype), not both: what rounding leaves over fills the zeros", c.WireRows)
	case c.Name == "sancus" && !(c.Clip >= 0):
		return fmt.Errorf("sancus clips gradients to a norm above 0, or with 0 not at all; not to %g", c.Clip)
	case c.Name == "sancus":
		_, err := parseStaleness(c.Staleness)
		return err
	case c.Name == "skipg" && !(c.SkipG >= 0 && c.SkipG <= 1<<20):
		return fmt.Errorf("skipg leaves out gradients for a number of epochs from 0, not %d", c.SkipG)
	case c.Name == "bns" && !(c.Keep > 0 && c.Keep <= 1):
		return fmt.Errorf("bns keeps a share of border vertices above 0 and at most 1, not %g", c.Keep)
	case c.Name == "bns" && c.Means && !c.Cached:
		return fmt.Errorf("--means puts old rows right, and plain bns has none; use bns:%g:cached", c.Keep)
	case c.Name == "g3" && !slices.Contains([]string{"none", "inter", "intra", "both"}, c.Pipeline):
		return fmt.Errorf("g3's pipeline is none, inter, intra or both, not %q", c.Pipeline)
	case c.Name == "granndis":
		if c.Sample != "" {
			if _, err := newSampling(c.Sample); err != nil {
				return err
			}
		}
		_, err := preloaded(c.Preload, 1)
		return err
	case c.Name == "pipegcn" && c.Late != 0 && c.Late != 1:
		return fmt.Errorf("pipegcn's rows are 0 or 1 epochs late, not %d", c.Late)
	case c.Name == "pipegcn" && !(c.Smooth >= 0 && c.Smooth < 1):
		return fmt.Errorf("pipegcn's smoothing is at least 0 and below 1, not %g", c.Smooth)
	}
	return nil
}
