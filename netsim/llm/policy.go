package llm

import (
	"fmt"
	"slices"
	"strings"

	"starling/coflow"
)

// kind is what a coflow is for.
type kind uint8

const (
	expert   kind = iota // EP
	pipeline             // PP
	scatter              // DP: gradients, in the backward pass
	gather               // DP: parameters, for the next iteration
	kinds
)

func (k kind) String() string {
	return [kinds]string{"ep", "pp", "dp reduce-scatter", "dp all-gather"}[k]
}

// traits are a coflow's factors. A gather's iteration is the one that waits for it.
type traits struct {
	kind       kind
	microbatch int
	layer      int
	backward   bool
}

// Policy is an order of transfers. Priorities are enforced in the network, hosts included, where
// urgency is set; where turn is, by hosts alone, at the time that a piece of a tensor is handed to
// the network.
type Policy struct {
	Name  string
	Paper string
	// urgency is the code point, 0 to 63.
	urgency func(r *run, t traits) uint8
	// turn is a transfer's place at its host, the lower the earlier; -1: it neither waits nor is waited for.
	turn func(r *run, t traits) int
	// credit is how many pieces a host has in the network at most, whatever their turns; 0: any number, of one turn.
	credit int
	// matchings: an all-to-all goes in sub-phases without two flows to one receiver.
	matchings bool
}

// Policies returns the policies that are compared, the baseline first.
func Policies() []Policy {
	return []Policy{
		{Name: "fifo", Paper: "Megatron-LM: all transfers share links evenly"},
		{Name: "dp-first", Paper: "table 5.2", urgency: first(scatter, gather)},
		{Name: "pp-first", Paper: "table 5.2", urgency: first(pipeline)},
		{Name: "ep-first", Paper: "table 5.2", urgency: first(expert)},
		{Name: "lina", Paper: "Lina (ATC 2023): hosts let EP pass DP in the backward pass", turn: linaTurn},
		{Name: "bytescheduler", Paper: "ByteScheduler (SOSP 2019): hosts send DP of lower layers first, in pieces, " +
			"a credit of them at once", turn: byteTurn, credit: byteCredit},
		{Name: "hermod", Paper: "Hermod: order by factors, matchings", urgency: hermodUrgency, matchings: true},
		{Name: "hermod-order", Paper: "Hermod without matchings (figure 5.11)", urgency: hermodUrgency},
		{Name: "hermod-matchings", Paper: "Hermod's matchings alone", matchings: true},
	}
}

// PolicyNames are what they are called.
func PolicyNames() (names []string) {
	for _, p := range Policies() {
		names = append(names, p.Name)
	}
	return names
}

// PolicyNamed is the policy of a name.
func PolicyNamed(name string) (Policy, error) {
	for _, p := range Policies() {
		if p.Name == name {
			return p, nil
		}
	}
	return Policy{}, fmt.Errorf("scheduler: found %q, want one of %s", name, strings.Join(PolicyNames(), ", "))
}

// first is the urgency that has some kinds before all others.
func first(some ...kind) func(*run, traits) uint8 {
	return func(_ *run, t traits) uint8 {
		if slices.Contains(some, t.kind) {
			return 63
		}
		return 0
	}
}

func linaTurn(_ *run, t traits) int {
	switch t.kind {
	case expert:
		if t.backward {
			return 0
		}
	case scatter:
		return 1
	}
	return -1
}

// byteCredit is ByteScheduler's credit, in pieces: what is in the network already cannot be overtaken, and less would
// leave links idle between pieces.
const byteCredit = 4

func byteTurn(_ *run, t traits) int {
	if t.kind == scatter || t.kind == gather {
		return t.layer
	}
	return -1
}

// hermodUrgency packs the factors. Microbatches and layers share the few values that there are evenly. Gradients have
// the last microbatch's, behind what the iteration under way consumes (cases I and II). Parameters belong to the next
// iteration's first microbatch, among whose transfers the layer decides (case III).
func hermodUrgency(r *run, t traits) uint8 {
	layer := t.layer * 4 / r.Layers
	switch {
	case t.kind == scatter:
		return coflow.HermodDSCP(7, false, layer)
	case t.kind == gather:
		return coflow.HermodDSCP(0, true, layer)
	}
	interleaved := t.kind == pipeline && r.VirtualStages > 1
	return coflow.HermodDSCP(min(6, t.microbatch*8/max(8, r.Microbatches)), !interleaved, layer)
}
