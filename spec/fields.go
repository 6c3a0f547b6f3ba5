package spec

import (
	"fmt"
	"reflect"
	"strings"

	"starling/train"
)

// field is one setting of a spec.
type field struct {
	name   string // weight_decay
	group  string // optimizer; "": none
	help   string
	topic  string   // its heading in a command's help
	free   bool     // may differ when a run is resumed
	auto   string   // where it may be auto: zero, if 0 stands for that, else Auto does
	also   string   // another name of its flag
	values []string // it has one of these; nil: any
	bounds string   // 1,1000, or (0,1]: the least and the most it may be
	value  reflect.Value
	option *train.Option // nil: not an option of strategies
}

// inGroup is the setting's name inside its group: as elsewhere, but name where the group has the same.
func (f field) inGroup() string {
	if f.name == f.group {
		return "name"
	}
	return f.name
}

// flag is the setting's name on the command line.
func (f field) flag() string { return "--" + strings.ReplaceAll(f.name, "_", "-") }

// autoValue is the value of a setting that may be auto.
func (f field) autoValue() autoValue {
	v := autoValue{f.flag(), f.value, Auto, f.wanted(), Auto}
	if f.auto == "zero" {
		v.auto = 0
	}
	return v
}

// fields lists the settings of s in the order of topics, the options of strategies among them.
func (s *Spec) fields() []field {
	own := s.ownFields()
	var out []field
	for _, t := range topics {
		if t.settings == nil {
			out = append(out, s.optionFields(t.name)...)
		}
		for _, one := range t.settings {
			f := own[one.name]
			f.topic, f.help = t.name, strings.ReplaceAll(one.help, "{}", orList(f.values))
			if one.name == "strategy" {
				f.help = strings.ReplaceAll(f.help, "{default}", strategyDefaults())
			}
			out = append(out, f)
		}
	}
	return out
}

// ownFields are the settings other than options of strategies, by name.
func (s *Spec) ownFields() map[string]field {
	out := map[string]field{}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		switch t, f := v.Type().Field(i), v.Field(i); f.Kind() {
		case reflect.Map: // the options
		case reflect.Struct:
			for j := range f.NumField() {
				one := newField(t.Tag.Get("json"), f.Type().Field(j), f.Field(j))
				out[one.name] = one
			}
		default:
			one := newField("", t, f)
			out[one.name] = one
		}
	}
	return out
}

// newField is a setting by its tags.
func newField(group string, t reflect.StructField, v reflect.Value) field {
	f := field{name: t.Tag.Get("json"), group: group, free: t.Tag.Get("resume") == "free",
		auto: t.Tag.Get("auto"), also: t.Tag.Get("also"), bounds: t.Tag.Get("range"), value: v}
	if f.values = listOf(f.name); t.Tag.Get("values") != "" {
		f.values = strings.Split(t.Tag.Get("values"), ",")
	}
	return f
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
