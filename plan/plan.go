package plan

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
)

// Plan is what a run will need, computed before it starts.
type Plan struct {
	Parameters int
	// Matrices is the memory of parameters, activations, gradients, and rows of other
	// workers.
	Matrices int64
	// Graph is the memory of further copies of the graph and the features that the
	// model and the strategy need: with self-loops, transposed, of others' vertices.
	Graph int64
	// States is what keeping the state of the run takes: weights, and rows where the
	// strategy needs them from one epoch to the next.
	States int64
	// Early is for rows that arrive before they are waited for.
	Early int64
	// Processes is what the processes of the run take whatever they train.
	Processes int64
	// Mapped is the size of the dataset's files in use. The kernel may drop and reread
	// their pages, so they need not fit.
	Mapped int64
	// Features is the part of Mapped that is dense features of one worker.
	Features int64
	// Peak is the most of Matrices in use at once, of the worker with most.
	Peak int64
	// CacheFirst is whether the first layer's aggregation is kept.
	CacheFirst bool

	// Of several workers: the above is of all together, Each the memory of each of them. Sent is
	// what all of them send: once, per epoch, and per evaluation.
	Workers                             int
	Each                                []int64
	SentOnce, SentEpoch, SentEvaluation int64
	Trained                             string // what is sent for
	AtMost                              bool   // they may send less: that depends on the numbers computed
	Unplanned                           bool   // what they send is known only once they have joined
	AtLeast                             bool   // and so is the memory for replicas, or it is far too much
	// Replicas is about how much more a worker may take for replicas; 0: unknown.
	Replicas int64
	// BetweenServers is the rows per layer that cross servers, OnceEach how many they are if each
	// is sent to a server once.
	BetweenServers, OnceEach int64
}

// Needed is the memory that must fit; 0 of no plan.
func (p *Plan) Needed() int64 {
	if p == nil {
		return 0
	}
	return p.Matrices + p.Graph + p.Early + p.States + p.Processes
}

// String is the plan as comment lines of a starling.yaml.
func (p *Plan) String() string {
	free := "unknown"
	if n := tensor.MemoryFree(); n > 0 {
		free = event.Bytes(n)
	}
	if p.Workers == 0 {
		cache := map[bool]string{true: "kept", false: "not kept"}[p.CacheFirst]
		return comment("plan:", "  parameters "+event.Count(int64(p.Parameters)),
			fmt.Sprintf("  memory %s; available %s", p.Memory(), free), "  mapped files "+event.Bytes(p.Mapped),
			"  first layer's aggregation "+cache, "  bytes sent 0")
	}
	lines := []string{"plan:", fmt.Sprintf("  workers %d, parameters %s", p.Workers, event.Count(int64(p.Parameters))),
		fmt.Sprintf("  memory %s; available %s", p.Memory(), free), "  the largest worker " + event.Bytes(p.largest()),
		"  mapped files " + event.Bytes(p.Mapped), "  bytes sent " + p.sends()}
	if hint := exchange.RelayHint(p.BetweenServers, p.OnceEach); hint != "" {
		lines = append(lines, "  "+hint)
	}
	return comment(lines...)
}

// comment is lines as comments of YAML.
func comment(lines ...string) string { return "# " + strings.Join(lines, "\n# ") + "\n" }

// largest is the memory of the worker with most.
func (p *Plan) largest() (most int64) {
	for _, m := range p.Each {
		most = max(most, m)
	}
	return most
}

// Memory is what must fit, and what it is for.
func (p *Plan) Memory() string {
	text := fmt.Sprintf("%s: matrices %s, graph %s", event.Bytes(p.Needed()), event.Bytes(p.Matrices),
		event.Bytes(p.Graph))
	if p.Early > 0 {
		text += ", rows that arrive early " + event.Bytes(p.Early)
	}
	text += fmt.Sprintf(", states kept %s, processes %s", event.Bytes(p.States), event.Bytes(p.Processes))
	if p.AtLeast {
		text = "at least " + text
	}
	if p.Replicas > 0 {
		text += fmt.Sprintf(", and for replicas up to about %s per worker", event.Bytes(p.Replicas))
	}
	return text
}

// sends is what the workers will send, as far as is known.
func (p *Plan) sends() string {
	if p.Unplanned {
		return "are planned once the workers have joined"
	}
	text := fmt.Sprintf("once %s, an epoch %s, a measurement %s", event.Bytes(p.SentOnce), event.Bytes(p.SentEpoch),
		event.Bytes(p.SentEvaluation))
	if p.AtMost {
		text += ", or less"
	}
	return text + " (" + p.Trained + ")"
}

// PlaceFeatures settles --features-on auto of a run of one worker on a CPU.
func PlaceFeatures(s *spec.Spec, data *graph.Dataset, events event.Listener) error {
	list := []*graph.Features{data.Features}
	if data.Typed() {
		list = nil
	}
	return setup.PlaceFeatures(s, mappedBytes(data), denseBytes(data), list, events)
}

// leastOnDisk is what buffers of features from disk take beside rows.
const leastOnDisk = 64 << 20

// Alone makes a dry run of s.
func Alone(s *spec.Spec, data *graph.Dataset) (*Plan, error) {
	p := &Plan{CacheFirst: s.Machine.CacheFirst == "on", Mapped: mappedBytes(data), Features: denseBytes(data),
		Processes: processBytes}
	n, err := dryRun(s, dryRunAlone(s, data), &data.Meta)
	if large := tooLarge(0); errors.As(err, &large) {
		p.Matrices, p.AtLeast = int64(large), true
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p.Parameters, p.Matrices, p.Peak = n.Parameters, n.matrices, n.peak
	p.States = n.weights()
	p.Graph = n.graph(s.Mode == "mini") + n.Ranking + normalizedBytes(s, featuresOf(data)...)
	if s.Machine.FeaturesOn == "disk" {
		p.Graph += min(setup.FeatureMemory(s), 2*p.Features+leastOnDisk)
	}
	debug.FreeOSMemory() // the run needs it
	return p, nil
}

// Fits refuses a run that needs more than the free memory (0: unknown), and says what
// would fit.
func Fits(s *spec.Spec, p *Plan, data *graph.Dataset, free int64) error {
	if !s.Machine.MemoryCheck || free == 0 || p.Needed() <= free {
		return nil
	}
	err := &graph.InputError{Field: "memory", Found: "a run that needs " + p.Memory(),
		Want: fmt.Sprintf("at most the %s available", event.Bytes(free)),
		Fix: "nothing smaller of this model fits: use a machine with more memory " +
			"(or try anyway with --memory-check=false)"}
	fix := fitting(smallerSpecs(s), func(other *spec.Spec) (int64, bool) {
		q, err := Alone(other, data)
		if err != nil {
			return 0, false
		}
		return q.Needed(), q.Needed() <= free
	})
	err.Fix = cmp.Or(fix, err.Fix)
	return err
}

// fitting says which variants of a run fit, up to three of them, with the bytes that each needs; "": none does.
func fitting(list []variant, fits func(*spec.Spec) (need int64, ok bool)) string {
	var found []string
	for _, other := range list {
		if len(found) == 3 {
			break
		}
		if need, ok := fits(&other.spec); ok {
			found = append(found, fmt.Sprintf("%s (%s)", other.flags, event.Bytes(need)))
		}
	}
	if found == nil {
		return ""
	}
	return "these would fit: " + strings.Join(found, ", ") + "; --memory-check=false tries anyway"
}

// variant is a spec with other flags.
type variant struct {
	flags string
	spec  spec.Spec
}

// smallerSpecs lists ways to need less memory, those that change the result least first.
func smallerSpecs(s *spec.Spec) (list []variant) {
	now, flags := *s, ""
	step := func(flag string, change func(*spec.Spec)) {
		change(&now)
		flags = strings.TrimSpace(flags + " " + flag)
		list = append(list, variant{flags, now})
	}
	if now.Machine.CacheFirst == "on" {
		step("--cache-first off", func(s *spec.Spec) { s.Machine.CacheFirst = "off" })
	}
	if now.Machine.DType == "f32" || now.Machine.DType == "f64" {
		step("--dtype bf16", func(s *spec.Spec) { s.Machine.DType = "bf16" })
	}
	base := flags
	for h := s.Model.Hidden / 2; h >= 16 && (!nn.Attends(s.Model.Name) || h%s.Model.Heads == 0); h /= 2 {
		flags = base
		step(fmt.Sprintf("--hidden %d", h), func(s *spec.Spec) { s.Model.Hidden = h })
	}
	return list
}
