package spec

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"starling/graph"
)

// twoClasses is a dataset of two named classes.
func twoClasses() *graph.Meta {
	return &graph.Meta{Name: "g", Task: graph.SingleLabel, Classes: 2, ClassNames: []string{"ok", "bad one"}}
}

// TestClassWeightsFromFiles: by name and in any order; and one sentence for each file that is wrong.
func TestClassWeightsFromFiles(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"ok,1\nbad one,20\n", "1,20"}, {"\ufeffclass,weight\r\n\"bad one\",20\r\nok,0.5\r\n", "0.5,20"},
		{"bad one 3\nok 1\n", "1,3"}, {"ok\t1\nbad one\t2\n\n", "1,2"},
		{"ok,1\n", "no weight for class bad one"}, {"ok,1\nok,2\nbad one,3", "class \"ok\" again"},
		{"ok,-1\nbad one,1", "line 1"}, {"ok,1\nbad one,many", "line 2"}, {"ok,1\nother,2\nbad one,1", "line 2"},
		{"ok\nbad one", "line"}, {"ok,NaN\nbad one,1", "line 1"},
	} {
		path := filepath.Join(t.TempDir(), "weights.csv")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := Default()
		s.Objective.ClassWeights = path
		err := s.ForLabels(twoClasses())
		got := s.Objective.ClassWeights
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%q: %s; want %s", c.text, got, c.want)
		}
	}
}

// TestObjectiveIsObeyedOrRefused by its flag.
func TestObjectiveIsObeyedOrRefused(t *testing.T) {
	three, numbers := twoClasses(), &graph.Meta{Task: graph.Regression, Classes: 1}
	three.Classes, three.ClassNames = 3, nil
	for _, c := range []struct {
		flag, value string
		data        *graph.Meta
		refused     bool
	}{
		{"loss", "focal", twoClasses(), false}, {"loss", "focal:0.5", three, false}, {"loss", "focal:-1", three, true},
		{"loss", "hinge", three, true}, {"loss", "focal", numbers, true}, {"loss", "cross-entropy", three, false},
		{"class-weights", "balanced", three, false}, {"class-weights", "1,2", twoClasses(), false},
		{"class-weights", "1,2", three, true}, {"class-weights", "1,-2", twoClasses(), true},
		{"class-weights", "nowhere.csv", three, true}, {"class-weights", "balanced", numbers, true},
		{"metric", "average-precision", three, false}, {"metric", "rmse", numbers, false},
		{"metric", "rmse", three, true},
		{"metric", "f7", three, true}, {"metric", "mcc", numbers, true}, {"threshold", "best", twoClasses(), false},
		{"threshold", "0.3", twoClasses(), false}, {"threshold", "-1", twoClasses(), true},
		{"threshold", "1.5", twoClasses(), true}, {"threshold", "best", three, true},
		{"threshold", "best", numbers, true},
	} {
		s := Default()
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.Flags(fs)
		err := fs.Set(c.flag, c.value)
		if err == nil {
			s.complete(dataset{})
			s.canonical()
			err = s.Validate()
		}
		if err == nil {
			err = s.ForLabels(c.data)
		}
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "--"+c.flag) {
			t.Errorf("--%s %s with %d classes: %v", c.flag, c.value, c.data.Classes, err)
		}
	}
}

// TestNoNumberOutOfRange: -1 is refused by the name of its flag wherever it is out of range, and never means auto.
func TestNoNumberOutOfRange(t *testing.T) {
	d, checked := Default(), 0
	for _, f := range d.fields() {
		if f.bounds == "" || f.option != nil || f.value.Kind() == reflect.String {
			continue
		}
		s := Default()
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.Flags(fs)
		err := fs.Set(f.flag()[2:], "-1")
		if err == nil {
			s.complete(dataset{})
			err = s.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), f.flag()) {
			t.Errorf("%s -1: %v", f.flag(), err)
		}
		checked++
	}
	if checked < 15 {
		t.Errorf("only %d flags were checked", checked)
	}
}
