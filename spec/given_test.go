package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"starling/train"
)

// away are values of a boolean or number other than its default, or both of a boolean that is auto.
func away(f field) []string {
	switch f.value.Kind() {
	case reflect.Bool:
		return []string{fmt.Sprint(!f.value.Bool())}
	case reflect.Int8:
		return []string{"true", "false"}
	case reflect.Int, reflect.Uint64:
		return []string{"2", "3"}
	case reflect.Float64:
		return []string{"0.25"}
	}
	return nil
}

// givenBy is a spec with a setting by its flag or by its key, on workers with a strategy that has it.
func givenBy(t *testing.T, f field, way, value string) Spec {
	s, err := Default(), error(nil)
	if way == "key" {
		s, err = Parse([]byte(f.name + ": " + value))
	} else {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.Flags(fs)
		err = fs.Parse([]string{f.flag() + "=" + value})
	}
	if err != nil {
		t.Fatalf("%s %s by %s: %v", f.name, value, way, err)
	}
	if f.option != nil {
		d := train.Find(f.option.Strategies[0])
		s.Strategy, s.Mode, s.Cluster.Workers, s.Cluster.Servers = d.Name, string(d.Mode), 4, 2
	}
	return s
}

// held is the text of a setting of a spec, under its name or under the one it stands for.
func held(s *Spec, f field) string {
	switch {
	case f.option != nil:
		return fmt.Sprint(s.setting(f.option))
	case f.name == "parts":
		return s.ownFields()["workers"].text()
	}
	return s.ownFields()[f.name].text()
}

// TestEveryGivenSettingWins: every boolean and number that is given, by flag or by key, is in the completed spec or is
// refused by its name, whatever the model and the features.
func TestEveryGivenSettingWins(t *testing.T) {
	s := Default()
	checked := 0
	for _, f := range s.fields() {
		for _, value := range away(f) {
			for _, way := range []string{"flag", "key"} {
				given := givenBy(t, f, way, value)
				if err := given.CompleteParts(); err != nil {
					t.Fatal(err)
				}
				for _, model := range []string{"gcn", "sage", "gat", "gin", "ressage+"} {
					for _, data := range []dataset{{}, {sparse: true}, {train: manyLabels}} {
						s := given
						s.Model.Name = model
						s.complete(data)
						if got := held(&s, f); got != value && !isMistake(s.Validate(), f.flag()) {
							t.Errorf("%s, %+v: %s %s by %s is %s", model, data, f.name, value, way, got)
						}
						checked++
					}
				}
			}
		}
	}
	if checked < 1500 {
		t.Errorf("only %d were checked", checked)
	}
}

// TestInputDropoutFalseIsObeyed: neither the model's default nor sparse features turn it on again.
func TestInputDropoutFalseIsObeyed(t *testing.T) {
	for _, text := range []string{"model: sage\ninput_dropout: false", "model: {name: sage, input_dropout: false}"} {
		s, err := Parse([]byte(text))
		if s.complete(dataset{sparse: true}); err != nil || s.Model.InputDropout != Off || s.Model.Dropout != 0.5 {
			t.Errorf("%s: %v, %+v", text, err, s.Model)
		}
	}
	s := Default()
	s.Model.Name = "sage"
	if s.complete(dataset{}); s.Model.InputDropout != On {
		t.Error("sage has no input dropout where nothing is given")
	}
}

// TestAutoIsAWord: auto is accepted, shown and written as a word, and no number means it.
func TestAutoIsAWord(t *testing.T) {
	s := Default()
	for _, f := range s.fields() {
		if f.auto == "" {
			continue
		}
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		one := Default()
		one.Flags(fs)
		flag := fs.Lookup(f.flag()[2:])
		if flag.DefValue != "auto" || flag.Value.Set("auto") != nil ||
			!strings.Contains(one.String(), f.name+": auto\n") {
			t.Errorf("%s: %s by default", f.flag(), flag.DefValue)
		}
		if read, err := Parse([]byte(f.name + ": auto")); err != nil || read.String() != Default().String() {
			t.Errorf("%s: auto: %v", f.name, err)
		}
		if f.value.Kind() == reflect.Int8 {
			continue
		}
		bad := []string{"-1", "-9223372036854775808"}
		if f.auto == "zero" {
			bad = append(bad, "0")
		}
		for _, number := range bad {
			one := Default()
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			one.Flags(fs)
			err := fs.Set(f.flag()[2:], number)
			if err == nil {
				one.complete(dataset{})
				err = one.Validate()
			}
			if !isMistake(err, f.flag()+": found "+number) || !strings.Contains(err.Error(), "want auto, or ") {
				t.Errorf("%s %s: %v", f.flag(), number, err)
			}
		}
	}
}

// TestSettingsOfEarlierVersionsAreRead: they wrote 0 where auto was not replaced.
func TestSettingsOfEarlierVersionsAreRead(t *testing.T) {
	const before = `"lr":0.01,"epochs":200,"hidden":64,"dropout":0.5,"attention_dropout":0,"input_dropout":false,
"threads":0,"servers":0,"parts":0,"workers":1,"embedding":0,"negatives_each":0,"walk_length":0,"clusters":0`
	s := Default()
	if err := json.Unmarshal([]byte("{"+before+"}"), &s); err != nil {
		t.Fatal(err)
	}
	yaml := strings.NewReplacer(`"`, "", ":", ": ", ",\n", "\n", ",", "\n").Replace(before)
	read, err := Parse([]byte(yaml))
	if err != nil || !reflect.DeepEqual(read, s) || s.Training.Epochs != 200 || s.Machine.Threads != 0 ||
		s.Model.InputDropout != Off {
		t.Errorf("%v\n%+v\n%+v", err, read, s)
	}
	if s.complete(dataset{sparse: true}); s.Validate() != nil || s.Model.InputDropout != Off || s.Model.Hidden != 64 {
		t.Errorf("%v\n%+v", s.Validate(), s)
	}
}
