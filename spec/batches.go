package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/train"
)

// Batches is how mini-batches are drawn (--mode mini).
type Batches struct {
	Size       int    `json:"batch_size" range:"1,1073741824"`
	Fanout     Fanout `json:"fanout"`
	Sampler    string `json:"sampler"`
	Replace    bool   `json:"replace"`
	Weighted   bool   `json:"weighted"`
	Temporal   string `json:"temporal" values:"none,uniform,recent"`
	Clusters   int    `json:"clusters" auto:"zero" range:"1,1073741824"`
	WalkLength int    `json:"walk_length" auto:"zero" range:"1,1048576"`
	// Of pinsage.
	VertexWalks int     `json:"vertex_walks" range:"1,65536"`
	Restart     float64 `json:"restart"`
}

func defaultBatches() Batches {
	return Batches{Size: 1024, Fanout: "auto", Sampler: "neighbour", Temporal: "none", VertexWalks: 16, Restart: 0.5}
}

// Samplers are the values of --sampler.
func Samplers() []string { return sample.Names }

func (b *Batches) Validate() error {
	if !(b.Restart >= 0 && b.Restart < 1) {
		return Mistake("--restart", fmt.Sprint(b.Restart), "a probability from 0 to below 1", "for example 0.5")
	}
	return checkFields(b)
}

// What --fanout auto is for each layer, the last layer's first; the last number repeats.
var (
	autoFanouts = []int{15, 10, 5}
	autoDraws   = 512
)

// layered reports whether the sampler draws for every layer, as --fanout says.
func (b *Batches) layered() bool {
	return slices.Contains([]string{"neighbour", "pinsage", "fastgcn", "ladies"}, b.Sampler)
}

// byHops reports whether each vertex draws neighbours of its own.
func (b *Batches) byHops() bool { return b.Sampler == "neighbour" || b.Sampler == "pinsage" }

// fanouts reads --fanout: one number per layer.
func (s *Spec) fanouts() (list []int, err error) {
	b := &s.Batches
	if !b.layered() || s.Model.Name == "mlp" {
		return nil, nil
	}
	all := b.Fanout.all()
	if all == "auto" {
		return b.autoFanouts(s.Model.Layers), nil
	}
	return s.layerFanouts(all)
}

// layerFanouts reads one number per layer.
func (s *Spec) layerFanouts(text string) ([]int, error) {
	list, err := readFanouts(text, s.Batches.byHops())
	if err == nil && len(list) != s.Model.Layers {
		return nil, Mistake("--fanout", fmt.Sprintf("%s, %s", event.Tally(len(list), "number"), text),
			fmt.Sprintf("one for each of the %s", event.Tally(s.Model.Layers, "layer")),
			"the first is the last layer's, the seed vertices' own; or change --layers")
	}
	return list, err
}

// Fanouts reads neighbours per layer, one number for each layer.
func Fanouts(text string) ([]int, error) { return readFanouts(text, true) }

// FanoutFlag is a flag of such numbers; none are auto.
type FanoutFlag struct{ To *[]int }

func (f FanoutFlag) String() string {
	if f.To == nil || *f.To == nil { // pflag compares with the zero flag
		return "auto"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(*f.To), " ", ","), "[]")
}

// Type is what a command's help calls the value.
func (f FanoutFlag) Type() string { return "string" }

func (f FanoutFlag) Set(text string) (err error) {
	if *f.To = nil; text != "auto" {
		*f.To, err = Fanouts(text)
	}
	return err
}

func readFanouts(text string, orAll bool) (list []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		f, err := strconv.Atoi(strings.TrimSpace(word))
		all := strings.TrimSpace(word) == "all" || err == nil && f == sample.All
		if all && orAll {
			f = sample.All
		} else if err != nil || f < 1 || f > 1<<24 {
			return nil, Mistake("--fanout", fmt.Sprintf("%q", word),
				"whole numbers from 1, separated by commas (or, for the neighbour sampler, all)",
				"for example --fanout 15,10,5")
		}
		list = append(list, f)
	}
	return list, nil
}

func (b *Batches) autoFanouts(layers int) (list []int) {
	for l := range layers {
		f := autoFanouts[min(l, len(autoFanouts)-1)]
		if !b.byHops() {
			f = autoDraws
		}
		list = append(list, f)
	}
	return list
}

// checkFanouts checks --fanout, where there are batches.
func (s *Spec) checkFanouts() error {
	if s.Mode == "full" {
		return nil
	}
	_, err := s.fanouts()
	if err == nil {
		_, err = s.relationFanouts(nil)
	}
	return err
}

// batchEffects are the settings of mini-batches.
func (s *Spec) batchEffects() []effect {
	b, d, mini := &s.Batches, defaultBatches(), s.Mode == "mini"
	neighbour := mini && b.Sampler == "neighbour"
	pinsage := mini && b.Sampler == "pinsage"
	walks := pinsage || mini && b.Sampler == "saint-walk" || s.Task == nn.TaskUnsupervised
	const forMini, forNeighbour = "it is for --mode mini", "it is for --mode mini and --sampler neighbour"
	return []effect{
		{"--batch-size", b.Size != d.Size, mini, forMini},
		{"--sampler", b.Sampler != d.Sampler, mini, forMini},
		{"--fanout", b.Fanout != d.Fanout, mini && b.layered(),
			"it is for --mode mini and the samplers neighbour, pinsage, fastgcn and ladies"},
		{"--fanout", len(b.Fanout.relations()) > 0, nn.IsTyped(s.Model.Name),
			"only a typed graph has relations to draw from, with --model " + orList(nn.TypedModels)},
		{"--replace", b.Replace, neighbour, forNeighbour},
		{"--weighted", b.Weighted, neighbour, forNeighbour},
		{"--temporal", b.Temporal != d.Temporal, mini,
			"a pass over the full graph shows every vertex all edges, later ones too: use --mode mini"},
		{"--clusters", b.Clusters != 0, mini && strings.HasPrefix(b.Sampler, "cluster"),
			"it is for --mode mini and --sampler cluster or cluster-local"},
		{"--walk-length", b.WalkLength != 0, walks,
			"it is for --task unsupervised, and for --mode mini and --sampler saint-walk or pinsage"},
		{"--vertex-walks", b.VertexWalks != d.VertexWalks, pinsage, "it is for --mode mini and --sampler pinsage"},
		{"--restart", b.Restart != d.Restart, pinsage, "it is for --mode mini and --sampler pinsage"},
	}
}

// BatchSettings are the settings of mini-batches as the training on them takes them.
// The schema of data says which relations there are; without one there are none.
func (s *Spec) BatchSettings(data *graph.Meta) (train.BatchSettings, error) {
	b := &s.Batches
	fanouts, err := s.fanouts()
	var own [][]int
	if err == nil && data != nil {
		own, err = s.relationFanouts(data.Schema)
	}
	temporal := b.Temporal
	if temporal == "none" {
		temporal = ""
	}
	return train.BatchSettings{Temporal: temporal, Sampler: b.Sampler, Size: b.Size, Fanouts: fanouts,
		RelationFanouts: own,
		Replace:         b.Replace, Weighted: b.Weighted, Clusters: b.Clusters, WalkLength: b.WalkLength,
		VertexWalks: b.VertexWalks, Restart: b.Restart, Threads: s.Machine.Cores(), DrawOn: s.Machine.DrawOn}, err
}
