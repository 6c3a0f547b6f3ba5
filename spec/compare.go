package spec

import (
	"fmt"
	"slices"
	"strings"

	"starling/train"
)

// Compare is everything a user can say to starling compare: a training run, and what to vary in
// it. Lists that are empty stay as the training run has them.
type Compare struct {
	Spec
	Strategies   []string
	Models       []string
	Modes        []string
	Samplers     []string
	Partitioners []string
	Rounds       int      // runs per case, interleaved
	VarySeed     bool     // every round has the next seed
	From         []string // results of earlier runs, instead of running
	HTML         string
	Papers       bool
}

// Case is one row of a comparison.
type Case struct {
	Name string // the strategy first, where strategies vary; what does not vary is left out
	Spec Spec   // complete
}

// DefaultCompare is the spec of a comparison without any flag.
func DefaultCompare() Compare {
	s := Compare{Spec: Default(), Rounds: 1, Papers: true}
	s.Training.Epochs = 20
	return s
}

// typicalModels are compared on one worker where nothing is listed.
var typicalModels = []string{"gcn", "sage", "gat", "gin"}

// SplitStrategies reads a list such as NAME,NAME:0.1,NAME:eas1,15. A name starts with a
// letter: what starts with a digit continues the option before it.
func SplitStrategies(text string) (list []string) {
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		switch {
		case word == "":
		case len(list) > 0 && (word[0] >= '0' && word[0] <= '9' || word[0] == '.'):
			list[len(list)-1] += "," + word
		default:
			list = append(list, word)
		}
	}
	return list
}

// Cases completes the spec, and names the first setting that some case cannot have. Where
// nothing is listed, a typical set is compared: strategies on several workers, else models.
func (s *Compare) Cases() ([]Case, error) {
	if err := s.checkLists(); err != nil {
		return nil, err
	}
	typical := s.chooseTypical()
	var cases []Case
	for _, one := range s.product() {
		plain := one.Spec.ForStrategy("default")
		err := one.Spec.Complete()
		if err == nil {
			err = one.Spec.Validate()
		}
		if err == nil {
			one.Spec.shareModel(plain)
		}
		switch {
		case err == nil:
			cases = append(cases, one)
		case typical && len(cases) > 0: // it was not asked for, and is not for these settings
		default:
			return nil, Renamed(err, map[string]string{"--strategy": "--strategies", "--model": "--models",
				"--mode": "--modes", "--sampler": "--samplers", "--partitioner": "--partitioners"})
		}
	}
	if len(cases) == 0 {
		return nil, Mistake("--strategies", "none of the mode", "at least one of "+
			strings.Join(train.NamesOf(train.Mode(s.Mode)), ", "), "")
	}
	return cases, s.checkUnused()
}

// shareModel takes the settings of the model from the run with the default strategy, so that all rows train one model.
// A strategy that cannot have one of them keeps its own, and the report names what differs.
func (s *Spec) shareModel(plain Spec) {
	shared := *s
	if plain.Complete() != nil {
		return
	}
	if shared.Model = plain.Model; shared.Validate() == nil {
		*s = shared
	}
}

func (s *Compare) checkLists() error {
	if err := s.CompleteParts(); err != nil {
		return err
	}
	for _, l := range []struct {
		flag string
		list []string
	}{{"--strategies", s.Strategies}, {"--models", s.Models}, {"--modes", s.Modes}, {"--samplers", s.Samplers},
		{"--partitioners", s.Partitioners}} {
		for i, name := range l.list {
			if slices.Contains(l.list[:i], name) {
				return Mistake(l.flag, name+" twice", "each once", "for several runs of each use --rounds")
			}
		}
	}
	switch {
	case s.Rounds < 1 || s.Rounds > 1000:
		return Mistake("--rounds", fmt.Sprint(s.Rounds), "1 to 1000", "")
	case s.Dataset == "" && s.Cluster.Partition == "":
		return Mistake("DIR", "no dataset", "a dataset or partition folder",
			"make one with starling generate or starling import")
	case len(s.Strategies)+len(s.Partitioners) > 0 && !s.several():
		return Mistake("--workers", "none", "how many workers to compare on", "for example --workers 4")
	case len(s.Partitioners) > 0 && s.PartitionFolder() != "":
		return Mistake("--partitioners", s.PartitionFolder()+", a partition", "a dataset to cut",
			"give the dataset that it was cut from")
	}
	return nil
}

// several reports whether the comparison is on several workers.
func (s *Compare) several() bool {
	return s.Cluster.Workers > 0 || s.PartitionFolder() != "" || s.Launch.Hosts != ""
}

// ChoosesModels reports whether models are compared because nothing is listed.
func (s *Compare) ChoosesModels() bool { return !s.listed() && !s.several() && len(s.From) == 0 }

func (s *Compare) listed() bool {
	return len(s.Strategies)+len(s.Models)+len(s.Modes)+len(s.Samplers)+len(s.Partitioners) > 0
}

// chooseTypical lists what to compare where nothing is listed.
func (s *Compare) chooseTypical() bool {
	if s.listed() {
		return false
	}
	if s.several() {
		s.Strategies = train.TypicalOf(train.Mode(s.Mode))
	} else {
		s.Models = typicalModels
	}
	return true
}

// product is every choice from the lists. A mode has its own strategies, and samplers are of
// mini-batches only.
func (s *Compare) product() (cases []Case) {
	for _, mode := range orOne(s.Modes, s.Mode) {
		if len(s.Samplers) > 0 && len(s.Modes) == 0 {
			mode = "mini"
		}
		samplers := []string{s.Batches.Sampler}
		if mode == "mini" {
			samplers = orOne(s.Samplers, s.Batches.Sampler)
		}
		for _, strategy := range s.strategiesOf(mode) {
			for _, model := range orOne(s.Models, s.Model.Name) {
				for _, sampler := range samplers {
					for _, partitioner := range orOne(s.Partitioners, s.Cluster.Partitioner) {
						one := s.ForStrategy(strategy)
						one.Output.JSON, one.Mode, one.Model.Name = "", mode, model
						one.Batches.Sampler, one.Cluster.Partitioner = sampler, partitioner
						cases = append(cases, Case{s.nameOf(&one, strategy), one})
					}
				}
			}
		}
	}
	return cases
}

// strategiesOf are those to compare in a mode: of several modes, each has its own.
func (s *Compare) strategiesOf(mode string) []string {
	switch {
	case !s.several():
		return []string{"none"}
	case len(s.Strategies) == 0:
		one := s.Spec
		one.Mode = mode
		return []string{one.DefaultStrategy()}
	case len(s.Modes) == 0:
		return s.Strategies
	}
	other := func(name string) bool {
		d := train.Find(name)
		return d != nil && string(d.Mode) != mode
	}
	return slices.DeleteFunc(slices.Clone(s.Strategies), other)
}

// nameOf names a case by what varies.
func (s *Compare) nameOf(one *Spec, strategy string) string {
	var words []string
	add := func(list []string, word string) {
		if len(list) > 0 {
			words = append(words, word)
		}
	}
	add(s.Strategies, strategy)
	add(s.Modes, one.Mode)
	add(s.Models, one.Model.Name)
	if one.Mode == "mini" {
		add(s.Samplers, one.Batches.Sampler)
	}
	add(s.Partitioners, one.Cluster.Partitioner)
	if len(words) == 0 {
		return strategy
	}
	return strings.Join(words, " ")
}

func orOne(list []string, one string) []string {
	if len(list) == 0 {
		return []string{one}
	}
	return list
}

// checkUnused refuses options that none of the strategies has.
func (s *Compare) checkUnused() error {
	for _, o := range s.given() {
		used := func(name string) bool { return slices.Contains(o.Strategies, train.NameOf(name)) }
		if !slices.ContainsFunc(s.Strategies, used) {
			return Mistake(o.Flag(), noEffect, "one of "+strings.Join(o.Strategies, ", ")+" among --strategies", "")
		}
	}
	return nil
}
