package spec

import (
	"fmt"
	"reflect"

	"github.com/spf13/pflag"

	"starling/graph"
	"starling/internal/yamltext"
	"starling/train"
)

// FlagTopic annotates a flag with its heading in the help.
const FlagTopic = "topic"

// Flags registers a flag for every setting but the dataset, with the present values as
// defaults.
func (s *Spec) Flags(fs *pflag.FlagSet) {
	for _, f := range s.fields() {
		if f.name == "dataset" {
			continue
		}
		name := f.flag()[2:]
		if f.option != nil {
			fs.Var(&optionFlag{s, f.option}, name, f.help)
			if f.value.Kind() == reflect.Bool {
				fs.Lookup(name).NoOptDefVal = "true"
			}
		} else {
			f.register(fs, name)
		}
		if name == "web" { // alone it is enough
			fs.Lookup(name).NoOptDefVal = WebAddr
		}
		fs.SetAnnotation(name, FlagTopic, []string{f.topic})
	}
}

// register makes a flag of a field of the struct.
func (f field) register(fs *pflag.FlagSet, name string) {
	if f.also != "" {
		TwoNames(fs, f.value.Addr().Interface().(*string), name, f.also, f.help)
		fs.SetAnnotation(f.also, FlagTopic, []string{f.topic})
		return
	}
	if f.auto != "" {
		fs.Var(f.autoValue(), name, f.help)
		if f.value.Kind() == reflect.Int8 {
			fs.Lookup(name).NoOptDefVal = "true"
		}
		return
	}
	switch p := f.value.Addr().Interface().(type) {
	case *string:
		fs.StringVar(p, name, *p, f.help)
	case *int:
		fs.IntVar(p, name, *p, f.help)
	case *uint64:
		fs.Uint64Var(p, name, *p, f.help)
	case *float64:
		fs.Float64Var(p, name, *p, f.help)
	case *bool:
		fs.BoolVar(p, name, *p, f.help)
	case pflag.Value:
		fs.Var(p, name, f.help)
	}
}

// twoNames is a setting that other commands call by another name: one flag, two names.
type twoNames struct {
	value *string
	name  string            // of this flag
	given map[string]string // by the names of both
}

// TwoNames registers a flag under its name, and hidden from help under another.
func TwoNames(fs *pflag.FlagSet, p *string, name, other, help string) {
	given := map[string]string{}
	for _, n := range []string{name, other} {
		fs.Var(&twoNames{p, n, given}, n, help)
	}
	fs.MarkHidden(other)
}

func (f *twoNames) String() string {
	if f.value == nil { // pflag compares with the zero flag
		return ""
	}
	return *f.value
}

func (f *twoNames) Type() string { return "string" }

// Set refuses two values under two names.
func (f *twoNames) Set(text string) error {
	for name, value := range f.given {
		if name != f.name && value != text {
			return Mistake("--"+f.name, text+" beside --"+name+" "+value, "one of the two: they are one setting",
				"leave out one of them")
		}
	}
	f.given[f.name], *f.value = text, text
	return nil
}

// optionFlag is an option of strategies on the command line.
type optionFlag struct {
	spec   *Spec
	option *train.Option
}

func (f *optionFlag) String() string { return fmt.Sprint(f.spec.Settings.Get(f.option)) }

func (f *optionFlag) Type() string {
	switch f.option.Default.(type) {
	case float64:
		return "float"
	case int:
		return "int"
	case bool:
		return "bool"
	}
	return "string"
}

func (f *optionFlag) Set(text string) error {
	value, err := f.option.Parse(text)
	if err == nil {
		f.spec.Settings = f.spec.Settings.With(f.option, value)
	}
	return err
}

// Set sets an option of strategies by name, as its flag does.
func (s *Spec) Set(name, text string) error {
	for _, o := range train.AllOptions() {
		if o.Name == name {
			return (&optionFlag{s, o}).Set(text)
		}
	}
	return fmt.Errorf("no strategy has the option %s", name)
}

// LoadFile sets s to the defaults with the settings of the file at path, and then sets what the
// command line gives again: flags win over the file.
func (s *Spec) LoadFile(path string, fs *pflag.FlagSet) error {
	b, err := ReadFile("--config", path, yamltext.MaxBytes+1, "a starling.yaml",
		"starling train DIR --dry-run prints one")
	if err != nil {
		return err
	}
	given := map[string]string{}
	fs.Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	read, err := Parse(b)
	if err != nil {
		return graph.InFile(path, err)
	}
	*s = read
	for name, value := range given {
		if err := fs.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}
