package train

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"starling/nn"
	"starling/partition"
)

// Mode is what a step of training goes over.
type Mode string

const (
	FullGraph Mode = "full" // the whole graph
	MiniBatch Mode = "mini" // a batch of training vertices
)

// Descriptor is a strategy as it describes itself: flags, YAML, --help, comparisons, plans
// and tables in the docs are derived from it. Make one with Describe and list it in its
// package's list; nothing else knows its name.
type Descriptor struct {
	Name  string
	Mode  Mode
	Paper *Paper // nil: none of its own

	// The strategy's row in the table of docs/strategies: with which settings it is
	// exact, what an epoch sends beside gradients of parameters, when to use it.
	Exact, Sends, UseWhen string

	// Default: several workers have it where none is chosen. A mode without one has the first of its list.
	Default bool
	// Lacks is what it cannot do of the options that were given without a strategy; "": it can do all. They then have
	// the strategy Instead, which can. nil: it lacks nothing.
	Lacks   func(c Choice) string
	Instead string
	// Typical: a comparison that names no strategies has this one.
	Typical bool
	// HaloRows: it exchanges the rows of the halo, or the same share of all of them, so
	// that relaying them inside servers saves what BetweenServers counts.
	HaloRows bool
	// Pairs: it learns from pairs of vertices too (--task link, unsupervised), and rows of vertices
	// (--learn-embeddings).
	Pairs bool
	// Untyped says why it does not train on typed graphs; "": it does.
	Untyped string
	// Baseline is the strategy that its paper compares with, where that is not the default.
	Baseline string
	// ReplicaBytes is the memory that a worker, one of some on its host, may fill with
	// replicas that it chooses itself; nil: it never does.
	ReplicaBytes func(c Choice, workers int) int64
	// Check refuses what does not go together with the strategy, as graph.Apart says it; nil: all does.
	// It is called by Check, with facts that may not be known yet, and must not depend on
	// anything else.
	Check func(o *Options, f Facts) error

	// Overlap is how much of its transfers it hides.
	Overlap Overlap
	// New builds the strategy of a worker. Check has refused what it is not for.
	New func(s *Site) (Strategy, error)

	options func() any       // a pointer to the strategy's options with their defaults
	list    func() []*Option // what they are, read once
}

// What one strategy alone has is a method of the pointer to its options, beside Validate:
type (
	// Needing names what a run must have beside workers, as a switch. Plans leave the strategy out where that is
	// not given.
	Needing interface{ Needs() string }
	// Warming is the number of epochs beyond the first two until all is held that the strategy will hold.
	Warming interface{ WarmUp() int }
	// Messaging is the number of messages that it sends to a peer for what it exchanges at once, of a part and rows
	// of some bytes, as they leave in the layer. Others send one.
	Messaging interface {
		Messages(b *partition.Book, row int) float64
	}
	// Alike names the strategy that it is but for the defaults of its options.
	Alike interface{ Like() string }
	// Anew: unless it is asked for, sums over features that never change are not kept.
	Anew interface{ FeaturesAnew() bool }
	// Reshaping changes the model that it trains: another than the one that is asked for, with the same settings.
	Reshaping interface{ Reshape(m *nn.Config) }
	// Relieving is a strategy of mini-batches that takes over from a full-graph strategy with BatchOption whose batch
	// does not fit memory: how users would write it.
	Relieving interface{ TakesOver(from Choice) string }
)

// Needs is what a run must have beside workers; "": nothing.
func (d *Descriptor) Needs() string {
	if n, ok := d.options().(Needing); ok {
		return n.Needs()
	}
	return ""
}

// Messages is the number of messages to a peer for what is exchanged at once.
func (d *Descriptor) Messages(b *partition.Book, row int) float64 {
	if m, ok := d.options().(Messaging); ok {
		return m.Messages(b, row)
	}
	return 1
}

// FeaturesAnew reports whether sums over features are made in every epoch, unless it is asked for to keep them.
func (d *Descriptor) FeaturesAnew() bool {
	a, ok := d.options().(Anew)
	return ok && a.FeaturesAnew()
}

// Like is the strategy that this one is but for the defaults of its options; "": none.
func (d *Descriptor) Like() string {
	if a, ok := d.options().(Alike); ok && a.Like() != d.Name {
		return a.Like()
	}
	return ""
}

// Overlap is what of a strategy's transfers goes on while workers compute, for predictions of its epochs.
type Overlap struct {
	// Rows and Gradients are the shares of an epoch's computing that rows of vertices, and gradients of
	// parameters, may travel under.
	Rows, Gradients float64
	// Ahead: what a batch needs is drawn and fetched while others are trained on.
	Ahead bool
}

// Paper is what a strategy's paper claims, and why figures of a run here differ.
type Paper struct {
	Title string `json:"title"` // with authors and venue, short
	Claim string `json:"claim"` // its headline figure, and over what
	Why   string `json:"why"`   // reasons for another figure here
	// Own is the strategy with the setting that the paper has, where the default is another.
	Own string `json:"own,omitempty"`
}

// Describe completes a descriptor with the strategy's options and its constructor. O is
// a struct whose exported fields are the options, with these tags:
//
//	json     the name in YAML, JSON and, with dashes, on the command line
//	help     what it does, for --help
//	values   the values it may have, separated by commas; none: any
//	flag:"-" it is given after the strategy's name only
//	main     it follows the name and a colon
//	suffix   what a comparison appends to the name with a +; * is the value itself
//	why      other strategies do not have it, for the error that says so
//	resume:"free" it may differ when a run is resumed
//	omit:"default" reports leave it out where it has its default
//	exact    the values, separated by commas, with which an exact strategy stays so; none: all
//	try      the values that starling plan tries beside the default
//
// Fields of embedded structs, of exported types, are options too. If *O has Validate()
// error, that checks them. Where several options follow the name, *O has Parse(text string)
// error to read what does, and Setting() string to write it.
func Describe[O any](d Descriptor, defaults O, build func(s *Site, o O) (Strategy, error)) Descriptor {
	d.options = func() any {
		o := defaults
		return &o
	}
	d.list = sync.OnceValue(func() []*Option { return optionsIn(reflect.ValueOf(defaults), nil, d.Name) })
	d.New = func(s *Site) (Strategy, error) { return build(s, *s.Opt.Strategy.Options.(*O)) }
	return d
}

// BatchOption is of full-graph strategies that leave a batch that does not fit memory to a strategy of
// mini-batches, which is Relieving.
type BatchOption struct {
	Batch string `json:"batch" values:"full,auto" suffix:"*" omit:"default" help:"the full batch, or auto: cooperative batches where the full batch does not fit memory"`
}

// TakingOver is the strategy that takes over from one whose full batch does not fit, as users write it;
// ok is false where that is not wanted.
func TakingOver(from Choice) (text string, ok bool) {
	if o, has := OptionOf[BatchOption](from); !has || o.Batch != "auto" {
		return "", false
	}
	for _, d := range registry {
		if r, ok := d.options().(Relieving); ok {
			return r.TakesOver(from), true
		}
	}
	return "", false
}

// Setting is an option's value by name, empty where the strategy has none of it.
func (c Choice) Setting(name string) string {
	if c.Descriptor != nil {
		if o := c.Descriptor.Option(name); o != nil {
			return fmt.Sprint(c.Get(o))
		}
	}
	return ""
}

// registry is all strategies, in the order of the lists that registered them.
var registry []*Descriptor

// Register adds strategies. The first of a mode is what others are rated over.
func Register(list ...Descriptor) {
	for i := range list {
		d := &list[i]
		if Find(d.Name) != nil {
			panic(fmt.Sprintf("train: two strategies are called %s", d.Name))
		}
		registry = append(registry, d)
	}
}

// Strategies are all that are registered.
func Strategies() []*Descriptor { return registry }

// Names lists all strategies.
func Names() (names []string) {
	for _, d := range registry {
		names = append(names, d.Name)
	}
	return names
}

// NamesOf lists the strategies of a mode.
func NamesOf(m Mode) (names []string) {
	for _, d := range registry {
		if d.Mode == m {
			names = append(names, d.Name)
		}
	}
	return names
}

// NamesOfPairs lists the strategies that learn from pairs of vertices.
func NamesOfPairs() (names []string) {
	for _, d := range registry {
		if d.Pairs {
			names = append(names, d.Name)
		}
	}
	return names
}

// namesOfTyped lists the strategies that train on typed graphs.
func namesOfTyped() (names []string) {
	for _, d := range registry {
		if d.Untyped == "" {
			names = append(names, d.Name)
		}
	}
	return names
}

// TypicalOf lists the strategies of a mode that a comparison has where it names none.
func TypicalOf(m Mode) (names []string) {
	for _, d := range registry {
		if d.Mode == m && d.Typical {
			names = append(names, d.Name)
		}
	}
	return names
}

// Find is the strategy of a name, or nil. What follows a colon, plus or space is not of it.
func Find(text string) *Descriptor {
	name := NameOf(text)
	for _, d := range registry {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// NameOf is the name in a strategy as users write it.
func NameOf(text string) string {
	if i := strings.IndexAny(text, ":+ "); i >= 0 {
		return text[:i]
	}
	return text
}

// Default is the strategy of several workers where none is chosen.
func Default() *Descriptor { return DefaultOf(FullGraph) }

// DefaultOf is the one of a mode.
func DefaultOf(m Mode) *Descriptor {
	for _, d := range registry {
		if d.Mode == m && d.Default {
			return d
		}
	}
	return ReferenceOf(m)
}

// DefaultFor is the one of a mode where options were given, and which of them another lacks that would be it otherwise.
func DefaultFor(m Mode, given Settings) (d *Descriptor, lacks string) {
	d = DefaultOf(m)
	if d == nil || d.Lacks == nil {
		return d, ""
	}
	c, err := read(d.Name, given)
	if err != nil {
		return d, "" // the choice refuses them
	}
	if lacks = d.Lacks(c); lacks != "" {
		d = Find(d.Instead)
	}
	return d, lacks
}

// ReferenceOf is the strategy of a mode that comparisons rate others over, the first that was registered.
func ReferenceOf(m Mode) *Descriptor {
	for _, d := range registry {
		if d.Mode == m {
			return d
		}
	}
	return nil
}

// Choice is a strategy with its options. The zero Choice is for one worker.
type Choice struct {
	Descriptor *Descriptor
	Options    any // a pointer to the strategy's own struct
}

// Name is the strategy's; none of the zero Choice.
func (c Choice) Name() string {
	if c.Descriptor == nil {
		return ""
	}
	return c.Descriptor.Name
}

// OptionOf is the part of a choice's options of a type: the struct itself, or one embedded
// in it. ok is false where there is no such part.
func OptionOf[O any](c Choice) (o O, ok bool) {
	if c.Options == nil {
		return o, false
	}
	return find[O](reflect.ValueOf(c.Options).Elem())
}

func find[O any](v reflect.Value) (o O, ok bool) {
	if v.CanInterface() { // embedded structs may be of types that are not exported
		if o, ok := v.Interface().(O); ok {
			return o, true
		}
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Anonymous && f.Type.Kind() == reflect.Struct {
			if o, ok := find[O](v.Field(i)); ok {
				return o, true
			}
		}
	}
	return o, false
}
