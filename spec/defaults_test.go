package spec

import (
	"testing"

	"github.com/spf13/pflag"

	"starling/nn"
)

// TestDefaults: whatever the model and the graph, no setting is left auto, and all make sense.
func TestDefaults(t *testing.T) {
	for _, model := range nn.Models {
		for _, data := range []dataset{{}, {sparse: true, train: 140}, {train: 140},
			{sparse: true, train: manyLabels}, {train: manyLabels}} {
			for _, task := range append([]string{"auto"}, nn.Tasks...) {
				s := Default()
				s.Model.Name, s.Task = model, task
				s.complete(data)
				for _, f := range s.fields() {
					if f.auto != "" && f.autoValue().auto == Auto && f.autoValue().isAuto() {
						t.Errorf("%s, %+v: --%s is auto", model, data, f.name)
					}
				}
				if err := s.Validate(); err != nil {
					t.Errorf("%s, %+v: %v", model, data, err)
				}
			}
		}
	}
}

// TestGivenSettingsWin: a setting that is given stays, be it the one that would be chosen.
func TestGivenSettingsWin(t *testing.T) {
	s := Default()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.Flags(fs)
	for _, arg := range []string{"layers", "hidden", "epochs", "dropout", "lr", "weight-decay"} {
		if got := fs.Lookup(arg).DefValue; got != "auto" {
			t.Errorf("--%s is %s by default, want auto", arg, got)
		}
	}
	if err := fs.Parse([]string{"--layers", "5", "--dropout=0", "--weight-decay", "0", "--lr", "0.3", "--hidden=7",
		"--epochs", "1"}); err != nil {
		t.Fatal(err)
	}
	s.complete(dataset{sparse: true})
	if s.Model.Layers != 5 || s.Model.Dropout != 0 || s.Optimizer.WeightDecay != 0 || s.Optimizer.LR != 0.3 ||
		s.Model.Hidden != 7 || s.Training.Epochs != 1 {
		t.Errorf("%+v", s)
	}
	if err := fs.Parse([]string{"--layers", "auto", "--dropout", "auto"}); err != nil || s.Model.Layers != Auto ||
		s.Model.Dropout != Auto {
		t.Errorf("%v, %d layers, dropout %g", err, s.Model.Layers, s.Model.Dropout)
	}
	for _, bad := range []string{"--layers=two", "--lr=fast", "--hidden=1.5"} {
		if fs.Parse([]string{bad}) == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
