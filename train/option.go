package train

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"starling/graph"
)

// Option is a setting of one or more strategies, from the tags of their structs: see
// Describe.
type Option struct {
	Name       string // weight_decay
	Help       string
	Values     []string // that it may have; nil: any
	Suffix     string
	Main       bool
	HasFlag    bool
	Free       bool   // may differ when a run is resumed
	Omit       bool   // of reports, where it has its default
	Default    any    // a string, an int, a float64 or a bool
	Why        string // other strategies do not have it
	Of         string // the option without which it has no effect
	Exact, Try []string
	Strategies []string

	index  []int          // of the field in the strategy's struct
	others map[string]any // defaults that are not Default, by strategy
}

// Flag is the option on the command line.
func (o *Option) Flag() string { return "--" + strings.ReplaceAll(o.Name, "_", "-") }

// AllOptions are the options of all strategies, each name once, in the order of registration. They are
// asked for often, and must not be changed.
func AllOptions() []*Option {
	known := allOptions.Load()
	if known == nil || known.of != len(registry) {
		known = &optionList{len(registry), joinOptions()}
		allOptions.Store(known)
	}
	return known.list
}

// allOptions are the options of the strategies that were registered when they were last asked for.
var allOptions atomic.Pointer[optionList]

type optionList struct {
	of   int // strategies
	list []*Option
}

func joinOptions() (list []*Option) {
	byName := map[string]*Option{}
	for _, d := range registry {
		for _, o := range d.Options() {
			if known, ok := byName[o.Name]; ok {
				known.join(d.Name, o.Default)
				continue
			}
			own := *o
			byName[o.Name] = &own
			list = append(list, &own)
		}
	}
	return list
}

func (o *Option) join(strategy string, value any) {
	o.Strategies = append(o.Strategies, strategy)
	if value == o.Default {
		return
	}
	if o.others == nil {
		o.others = map[string]any{}
	}
	o.others[strategy] = value
}

// Varies reports whether strategies have different defaults of it.
func (o *Option) Varies() bool { return o.others != nil }

// DefaultOf is the default that it has with a strategy.
func (o *Option) DefaultOf(strategy string) any {
	if v, ok := o.others[strategy]; ok {
		return v
	}
	return o.Default
}

// Options are the strategy's own, those of embedded structs among them. They are not to be changed.
func (d *Descriptor) Options() []*Option { return d.list() }

// Option finds an option by name; nil: the strategy does not have it.
func (d *Descriptor) Option(name string) *Option {
	for _, o := range d.Options() {
		if o.Name == name {
			return o
		}
	}
	return nil
}

func optionsIn(v reflect.Value, index []int, strategy string) (list []*Option) {
	for i := range v.NumField() {
		f, at := v.Type().Field(i), append(slices.Clone(index), i)
		if f.Anonymous {
			list = append(list, optionsIn(v.Field(i), at, strategy)...)
			continue
		}
		o := &Option{Name: f.Tag.Get("json"), Help: f.Tag.Get("help"), Suffix: f.Tag.Get("suffix"),
			Why: f.Tag.Get("why"), Of: f.Tag.Get("of"), HasFlag: f.Tag.Get("flag") != "-",
			Free: f.Tag.Get("resume") == "free",
			Omit: f.Tag.Get("omit") == "default", Default: v.Field(i).Interface(),
			Strategies: []string{strategy}, index: at}
		_, o.Main = f.Tag.Lookup("main")
		o.Values = listed(f.Tag.Get("values"))
		o.Exact, o.Try = listed(f.Tag.Get("exact")), listed(f.Tag.Get("try"))
		list = append(list, o)
	}
	return list
}

// listed are the words of a tag; - is the empty one.
func listed(tag string) []string {
	switch tag {
	case "":
		return nil
	case "-":
		return []string{""}
	}
	return strings.Split(tag, ",")
}

// Exact reports whether a choice follows the loss curve of one worker.
func (c Choice) Exact() bool {
	if c.Descriptor == nil {
		return true
	}
	for _, o := range c.Descriptor.Options() {
		if o.Exact != nil && !slices.Contains(o.Exact, fmt.Sprint(c.Get(o))) {
			return false
		}
	}
	return true
}

// Settings are values of options by name, as flags and files give them; what is not there
// has its default. A Settings is never changed: With makes another.
type Settings map[string]any

// Get is an option's value.
func (s Settings) Get(o *Option) any {
	if v, ok := s[o.Name]; ok {
		return v
	}
	return o.Default
}

// With is s with another value of an option; its default is the same as none, unless strategies have different ones.
func (s Settings) With(o *Option, value any) Settings {
	out := maps.Clone(s)
	if out == nil {
		out = Settings{}
	}
	if out[o.Name] = value; value == o.Default && !o.Varies() {
		delete(out, o.Name)
	}
	return out
}

// Without is s with an option at its default.
func (s Settings) Without(name string) Settings {
	out := maps.Clone(s)
	delete(out, name)
	return out
}

// Parse reads an option's value. A bool without text is true.
func (o *Option) Parse(text string) (value any, err error) {
	want := "a text"
	switch o.Default.(type) {
	case string:
		value = text
	case bool:
		value, err = strconv.ParseBool(text)
		want = "true or false"
	case int:
		value, err = strconv.Atoi(text)
		want = "a whole number"
	case float64:
		value, err = strconv.ParseFloat(text, 64)
		want = "a number"
	default:
		panic(fmt.Sprintf("train: option %s of type %T", o.Name, o.Default))
	}
	if err != nil {
		return nil, &graph.InputError{Field: o.Flag(), Found: fmt.Sprintf("%q", text), Want: want}
	}
	return value, o.check(value)
}

// check refuses what is not among the option's values.
func (o *Option) check(value any) error {
	if text := fmt.Sprint(value); o.Values != nil && !slices.Contains(o.Values, text) {
		return &graph.InputError{Field: o.Flag(), Found: fmt.Sprintf("%q", text), Want: "one of " +
			strings.Join(o.Values, ", "), Fix: Suggest(text, o.Values)}
	}
	return nil
}

// Choose reads a strategy as users write it, NAME or NAME:SETTING, each perhaps with
// +SUFFIX behind it, with settings that were given elsewhere. Settings of other strategies
// are ignored.
func Choose(text string, given Settings) (Choice, error) {
	c, err := read(text, given)
	if err != nil {
		return c, err
	}
	for _, o := range c.Descriptor.Options() {
		if value, ok := given[o.Name]; ok && !c.has(o, value) {
			return c, &graph.InputError{Field: o.Flag(), Found: fmt.Sprintf("%v beside --strategy %s", value, text),
				Want: "one of the two",
				Fix:  "leave out the flag, or what follows the strategy's name"}
		}
	}
	if err := c.validate(text); err != nil {
		return c, err
	}
	return c, c.checkUnused()
}

// validate checks the options of a strategy as it was written.
func (c Choice) validate(text string) error {
	if check, ok := c.Options.(interface{ Validate() error }); ok {
		if err := check.Validate(); err != nil {
			return wrong(text, err)
		}
	}
	return nil
}

// CheckSettings refuses a value that no strategy takes which has the option.
func CheckSettings(given Settings) error {
	for _, o := range AllOptions() {
		if _, ok := given[o.Name]; !ok {
			continue
		}
		var refused error
		for _, name := range o.Strategies {
			err := given.validate(name)
			if refused = cmp.Or(refused, err); err == nil {
				refused = nil
				break
			}
		}
		if refused != nil {
			return refused
		}
	}
	return nil
}

// validate checks the settings that are for a strategy.
func (s Settings) validate(name string) error {
	c, err := read(name, s)
	if err != nil {
		return err
	}
	return c.validate(name)
}

// checkUnused refuses an option of another that is off: a user who gives one expects an effect.
func (c Choice) checkUnused() error {
	for _, o := range c.Descriptor.Options() {
		if of := c.idle(o); of != nil && c.Get(o) != o.Default {
			return &graph.InputError{Field: o.Flag(), Found: fmt.Sprintf("%v, a setting without effect", c.Get(o)),
				Fix: fmt.Sprintf("it is for %s, which is %v: set that too, or leave this out", of.Flag(), c.Get(of))}
		}
	}
	return nil
}

// idle is the option that another is for, if it is off; nil: the other has its effect.
func (c Choice) idle(o *Option) *Option {
	for _, of := range c.Descriptor.Options() {
		if of.Name == o.Of && slices.Contains([]string{"false", "0", "none"}, fmt.Sprint(c.Get(of))) {
			return of
		}
	}
	return nil
}

// InForce are the settings that have an effect with a strategy as users write it.
func (s Settings) InForce(text string) Settings {
	out := s.Under(text)
	c, err := read(text, out)
	if err != nil {
		return out
	}
	for _, o := range c.Descriptor.Options() {
		if c.idle(o) != nil {
			out = out.Without(o.Name)
		}
	}
	return out
}

// Under are the settings that a strategy as users write it leaves in force: what follows
// the name wins.
func (s Settings) Under(text string) Settings {
	c, err := read(text, s)
	if err != nil {
		return s
	}
	out := s
	for _, o := range c.Descriptor.Options() {
		if value, ok := s[o.Name]; ok && !c.has(o, value) {
			out = out.Without(o.Name)
		}
	}
	return out
}

// read is a choice whose values may contradict each other: what follows the name wins over
// what was given elsewhere.
func read(text string, given Settings) (Choice, error) {
	d := Find(text)
	if d == nil {
		name := NameOf(text)
		return Choice{}, &graph.InputError{Field: "--strategy", Found: fmt.Sprintf("%q", name), Want: "one of " +
			strings.Join(Names(), ", "), Fix: Suggest(name, Names())}
	}
	c := Choice{d, d.options()}
	v := reflect.ValueOf(c.Options).Elem()
	for _, o := range d.Options() {
		value := given.Get(o)
		if err := o.check(value); err != nil {
			return c, err
		}
		v.FieldByIndex(o.index).Set(reflect.ValueOf(value))
	}
	setting, suffixes, more := strings.Cut(strings.TrimPrefix(text, d.Name), "+")
	err := c.parse(setting)
	if more {
		for _, suffix := range strings.Split(suffixes, "+") {
			if err == nil {
				err = c.suffix(suffix)
			}
		}
	}
	if err != nil {
		return c, wrong(text, err)
	}
	return c, nil
}

// wrong is the error of a strategy's setting, which names the option.
func wrong(text string, err error) error {
	if _, ok := err.(*graph.InputError); ok {
		return err
	}
	return &graph.InputError{Field: "--strategy", Found: fmt.Sprintf("%q", text), Fix: err.Error()}
}

// parse reads what follows the strategy's name: nothing, or a colon and a setting.
func (c Choice) parse(text string) error {
	if text == "" {
		return nil
	}
	text, ok := strings.CutPrefix(text, ":")
	if !ok {
		return fmt.Errorf("a colon and a setting may follow %s, not %q", c.Name(), text)
	}
	if p, ok := c.Options.(interface{ Parse(text string) error }); ok {
		return p.Parse(text)
	}
	for _, o := range c.Descriptor.Options() {
		if o.Main {
			return c.unflagged(text, c.set(o, text))
		}
	}
	return fmt.Errorf("%s has no setting", c.Descriptor.Name)
}

// unflagged is the error of an option's value that was given after the strategy's name,
// and not by a flag.
func (c Choice) unflagged(text string, err error) error {
	if in, ok := err.(*graph.InputError); ok {
		out := *in
		out.Field, out.Found = "--strategy", fmt.Sprintf("%q", c.Name()+":"+text)
		return &out
	}
	return err
}

func (c Choice) set(o *Option, text string) error {
	value, err := o.Parse(text)
	if err == nil {
		reflect.ValueOf(c.Options).Elem().FieldByIndex(o.index).Set(reflect.ValueOf(value))
	}
	return err
}

// suffix sets the option that a +SUFFIX stands for.
func (c Choice) suffix(text string) error {
	var known []string
	for _, o := range c.Descriptor.Options() {
		switch {
		case o.Suffix == text && text != "":
			return c.set(o, "true")
		case o.Suffix == "*" && slices.Contains(o.Values, text):
			return c.set(o, text)
		case o.Suffix == "*":
			known = append(known, slices.DeleteFunc(slices.Clone(o.Values),
				func(v string) bool { return v == o.Default })...)
		case o.Suffix != "":
			known = append(known, o.Suffix)
		}
	}
	return fmt.Errorf("%s takes +%s, not +%s", c.Descriptor.Name, strings.Join(known, ", +"), text)
}

// has reports whether an option has a value. NaN is unlike itself, and the same here.
func (c Choice) has(o *Option, value any) bool { return fmt.Sprint(value) == fmt.Sprint(c.Get(o)) }

// Get is an option's value. REQUIRES: the option is of the choice's strategy.
func (c Choice) Get(o *Option) any {
	return reflect.ValueOf(c.Options).Elem().FieldByIndex(o.index).Interface()
}

// Report is the options by name, for results.
func (c Choice) Report() map[string]any {
	if c.Descriptor == nil {
		return nil
	}
	out := map[string]any{}
	for _, o := range c.Descriptor.Options() {
		if v := c.Get(o); v != o.Default || !o.Omit {
			out[o.Name] = v
		}
	}
	return out
}

// Label is what a comparison calls a run: its strategy as it was written, with options that
// were given elsewhere. reported are its options as Report has them.
func Label(text string, reported map[string]any) string {
	plain, err := Choose(text, nil)
	if err != nil {
		return text
	}
	c := plain.with(reported)
	written, suffixes, more := text, "", ""
	if setting := c.setting(); setting != plain.setting() {
		written = c.Name() + ":" + setting
	}
	for _, o := range c.Descriptor.Options() {
		switch value := c.Get(o); {
		case o.Main || value == plain.Get(o):
		case o.Suffix == "*":
			suffixes += fmt.Sprintf("+%v", value)
		case o.Suffix != "":
			suffixes += "+" + o.Suffix
		default:
			more += fmt.Sprintf(" %s=%v", o.Name, value)
		}
	}
	return written + more + suffixes
}

// with is a copy of c with values of a report, whose numbers JSON may have changed the type
// of.
func (c Choice) with(reported map[string]any) Choice {
	out := Choice{c.Descriptor, c.Descriptor.options()}
	v := reflect.ValueOf(out.Options).Elem()
	v.Set(reflect.ValueOf(c.Options).Elem())
	for _, o := range c.Descriptor.Options() {
		if value, ok := reported[o.Name]; ok {
			if x := reflect.ValueOf(value); x.CanConvert(reflect.TypeOf(o.Default)) {
				v.FieldByIndex(o.index).Set(x.Convert(reflect.TypeOf(o.Default)))
			}
		}
	}
	return out
}

// setting is what would follow the name and a colon.
func (c Choice) setting() string {
	if s, ok := c.Options.(interface{ Setting() string }); ok {
		return s.Setting()
	}
	for _, o := range c.Descriptor.Options() {
		if o.Main {
			return fmt.Sprint(c.Get(o))
		}
	}
	return ""
}
