package spec

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"starling/train"
)

// field is one setting of a spec.
type field struct {
	name   string // weight_decay
	help   string
	topic  string // its heading in a command's help
	free   bool   // may differ when a run is resumed
	auto   bool   // a number that may be Auto
	value  reflect.Value
	option *train.Option // nil: not an option of strategies
}

// flag is the setting's name on the command line.
func (f field) flag() string { return "--" + strings.ReplaceAll(f.name, "_", "-") }

// fields lists the settings of s in order, the options of strategies among them.
func (s *Spec) fields() []field {
	v := reflect.ValueOf(s).Elem()
	values := s.choices()
	var out []field
	topic := ""
	for i := range v.NumField() {
		t := v.Type().Field(i)
		topic = cmp.Or(t.Tag.Get("topic"), topic)
		if t.Name == "Settings" {
			out = append(out, s.optionFields(topic)...)
			continue
		}
		name := t.Tag.Get("json")
		text := strings.ReplaceAll(help[name], "{}", orList(values.of(name)))
		free, auto := t.Tag.Get("resume") == "free", t.Tag.Get("auto") != ""
		out = append(out, field{name: name, help: text, topic: topic, free: free, auto: auto, value: v.Field(i)})
	}
	return out
}

// optionFields are the options of strategies that have a flag.
func (s *Spec) optionFields(topic string) (out []field) {
	for _, o := range train.AllOptions() {
		if o.HasFlag {
			value := reflect.ValueOf(s.setting(o))
			out = append(out, field{name: o.Name, help: helpOf(o), topic: topic, free: o.Free, value: value, option: o})
		}
	}
	return out
}

// setting is the value of an option: as given, or the strategy's default.
func (s *Spec) setting(o *train.Option) any {
	if v, ok := s.Settings[o.Name]; ok {
		return v
	}
	return o.DefaultOf(s.StrategyName())
}

// helpOf is the help of an option, with the strategies that have it, unless all do.
func helpOf(o *train.Option) string {
	if len(o.Strategies) == len(train.Strategies()) {
		return o.Help
	}
	return fmt.Sprintf("%s (%s)", o.Help, strings.Join(o.Strategies, ", "))
}

// orList is a, b or c.
func orList(list []string) string {
	n := len(list)
	if n < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:n-1], ", ") + " or " + list[n-1]
}
