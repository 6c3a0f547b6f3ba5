package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/cost"
	"starling/event"
	"starling/setup/setuptest"
	"starling/spec"
)

// Without a folder for caches rates are used and not kept, and a note has the remedy. A file that was named is written
// or refused.
func TestRatesWithoutWritableHome(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var said string
	events := event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok {
			said = n.Text
		}
	})
	known := &cost.Known{Format: cost.KnownFormat, Machine: Machine()}
	for _, home := range []string{"", file} { // none, and one in which no folder can be made
		t.Setenv("XDG_CACHE_HOME", "")
		t.Setenv("HOME", home)
		o := &Options{}
		if _, err := ReadRates(o.ratesPath()); !o.absent(err) {
			t.Errorf("HOME=%q: %v", home, err)
		}
		if err := o.noteKept(known, events); err != nil || !strings.Contains(said, "--rates-file") {
			t.Errorf("HOME=%q: %v, said %q", home, err, said)
		}
		if err := o.Learn(spec.Default(), 1, 2); err != nil {
			t.Errorf("HOME=%q: %v", home, err)
		}
	}
	o := &Options{RatesFile: filepath.Join(file, "rates")}
	if err := o.noteKept(known, events); !setuptest.IsMistake(err, "--rates-file") {
		t.Error(err)
	}
}
