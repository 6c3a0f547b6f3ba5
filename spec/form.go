package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"

	"starling/graph"
	"starling/internal/yamltext"
	"starling/train"
)

// The text forms of a spec, YAML and JSON, list the options of strategies beside its own
// settings. A form is a struct of all of them, made once the strategies are registered, so
// that both encoders see one ordinary type.

// form is a pointer to a struct of all settings with their values.
func (s *Spec) form() reflect.Value {
	list := s.fields()
	fields := make([]reflect.StructField, len(list))
	for i, f := range list {
		kind := f.value.Type()
		if f.auto != "" {
			kind = reflect.TypeFor[any]() // a number, or auto
		}
		tag := fmt.Sprintf("json:%q yaml:%q", f.name, f.name)
		fields[i] = reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: kind, Tag: reflect.StructTag(tag)}
	}
	form := reflect.New(reflect.StructOf(fields))
	for i, f := range list {
		if f.auto != "" {
			form.Elem().Field(i).Set(reflect.ValueOf(f.autoValue().plain()))
		} else {
			form.Elem().Field(i).Set(f.value)
		}
	}
	return form
}

// unread is a form to read a text into. Options whose default a strategy decides, which the text may name, are empty.
func (s *Spec) unread() reflect.Value {
	form := s.form()
	for i, f := range s.fields() {
		if _, given := s.Settings[f.name]; f.option != nil && f.option.Varies() && !given {
			form.Elem().Field(i).SetZero()
		}
	}
	return form
}

// fromForm sets s to the values of a form that was read.
func (s *Spec) fromForm(form reflect.Value) error {
	list := s.fields()
	for i, f := range list {
		value := form.Elem().Field(i)
		switch {
		case f.auto != "":
			if err := f.autoValue().read(value.Interface()); err != nil {
				return Renamed(err, map[string]string{f.flag(): f.name})
			}
		case f.option == nil:
			f.value.Set(value)
		case !f.option.Varies() || !value.IsZero():
			s.Settings = s.Settings.With(f.option, value.Interface())
		}
	}
	for _, f := range list {
		if f.option != nil && s.Settings[f.name] == f.option.DefaultOf(s.StrategyName()) {
			s.Settings = s.Settings.Without(f.name)
		}
	}
	return nil
}

func (s Spec) MarshalJSON() ([]byte, error) { return json.Marshal(s.form().Interface()) }

// UnmarshalJSON leaves settings that are not in b as they are.
func (s *Spec) UnmarshalJSON(b []byte) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(b, &given); err != nil {
		return err
	}
	lifted, err := lift(given, func(v json.RawMessage) (in map[string]json.RawMessage) {
		json.Unmarshal(v, &in) // what is no object stays
		return in
	})
	if err != nil {
		return err
	}
	if lifted {
		b, _ = json.Marshal(given)
	}
	form := s.unread()
	if err := json.Unmarshal(b, form.Interface()); err != nil {
		return err
	}
	return s.fromForm(form)
}

// String is the text form, YAML.
func (s Spec) String() string {
	b, err := yaml.Marshal(s.form().Interface())
	if err != nil {
		panic(fmt.Sprintf("spec: a spec that is no YAML: %v", err)) // plain fields always are
	}
	return string(b)
}

// Parse reads the text form: settings that are left out have their defaults, unknown ones
// are refused.
func Parse(b []byte) (Spec, error) {
	s := Default()
	if err := checkLimits(b); err != nil {
		return s, err
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return s, nil
	}
	var given map[string]any
	noMap := yaml.Unmarshal(b, &given)
	lifted, err := lift(given, func(v any) map[string]any {
		in, _ := v.(map[string]any)
		return in
	})
	if err != nil {
		return s, err
	}
	if err := s.readYAML(b, given, lifted); err != nil {
		return s, err
	}
	if noMap != nil {
		return s, &graph.InputError{Found: "no settings", Want: "name: value lines"}
	}
	return s, wholeNumbers(&s, given)
}

// readYAML reads the only document of a text, or what is given in it once groups were lifted.
func (s *Spec) readYAML(b []byte, given map[string]any, lifted bool) (err error) {
	in, form := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict()), s.unread()
	if lifted {
		in.Decode(new(any))
		b, _ = yaml.Marshal(given)
		err = yaml.UnmarshalWithOptions(b, form.Interface(), yaml.Strict())
	} else {
		err = in.Decode(form.Interface())
	}
	if err != nil && err != io.EOF { // EOF: only comments
		text, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
		if _, message, ok := strings.Cut(text, "] "); ok && lifted { // its line is not the file's
			text = message
		}
		return notSettings(text, s.suggest(text))
	}
	if len(given) > 0 { // what has no settings empties the form
		if err := s.fromForm(form); err != nil {
			return err
		}
	}
	var more any
	if err := in.Decode(&more); more != nil || err != nil && err != io.EOF {
		return &graph.InputError{Found: "more settings after ---", Want: "one document",
			Fix: "only the first would count: merge them"}
	}
	return nil
}

func notSettings(found, fix string) error {
	return &graph.InputError{Found: found, Want: "settings as starling train DIR --dry-run prints them", Fix: fix}
}

// suggest names a setting that resembles the unknown one of a decoder's message, as
// weight_decay for weight-decay.
func (s *Spec) suggest(message string) string {
	_, name, _ := strings.Cut(message, "unknown field \"")
	name, _, ok := strings.Cut(name, "\"")
	if !ok {
		return ""
	}
	var known []string
	for _, f := range s.fields() {
		known = append(known, f.name)
	}
	return train.Suggest(strings.ReplaceAll(name, "-", "_"), known)
}

// wholeNumbers refuses 1.5 layers, which the YAML decoder would truncate to 1.
func wholeNumbers(s *Spec, given map[string]any) error {
	for _, f := range s.fields() {
		x, ok := given[f.name].(float64)
		if kind := f.value.Kind(); ok && (kind == reflect.Int || kind == reflect.Uint64) {
			return &graph.InputError{Field: f.name, Found: fmt.Sprint(x), Want: "a whole number"}
		}
	}
	return nil
}

// SameRun names the first setting in which s differs from the spec of a run that it
// resumes, and that decides the result. Another strategy may continue a run, with options
// of its own.
func (s *Spec) SameRun(before *Spec) error {
	old, sameStrategy := before.fields(), s.StrategyName() == before.StrategyName()
	for i, f := range s.fields() {
		free := f.free || !sameStrategy && f.option != nil
		if free || reflect.DeepEqual(f.value.Interface(), old[i].value.Interface()) {
			continue
		}
		return Mistake(f.flag(), f.text(), old[i].text()+", as the checkpoint in --checkpoint-dir was trained with",
			"give the same setting, or another --checkpoint-dir without --resume")
	}
	return nil
}

// text is the setting's value in a message.
func (f field) text() string {
	text := fmt.Sprint(f.value)
	if f.auto != "" {
		text = f.autoValue().String()
	}
	if text != "" {
		return text
	}
	return "none"
}

// checkLimits refuses text that is too much for a spec, before the YAML decoder sees it.
func checkLimits(b []byte) error {
	found, want := yamltext.Excess(b)
	if found == "" {
		return nil
	}
	return &graph.InputError{Found: found, Want: want,
		Fix: "give settings as starling train DIR --dry-run prints them, one per line"}
}
