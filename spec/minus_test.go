package spec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"starling/train"
)

// TestMinusOneIsRefused: no number of a setting may be -1, by flag or by key: it means neither auto nor no limit.
func TestMinusOneIsRefused(t *testing.T) {
	s := Default()
	checked := 0
	for _, f := range s.fields() {
		switch f.value.Kind() {
		case reflect.Int, reflect.Float64, reflect.Uint64:
		default:
			continue
		}
		for _, way := range []string{"flag", "key"} {
			checked++
			if err := minusOne(f, way); err == nil || !strings.Contains(err.Error(), "-1") {
				t.Errorf("%s -1 by %s: %v", f.flag(), way, err)
			}
		}
	}
	if checked < 80 {
		t.Errorf("only %d were checked", checked)
	}
}

// minusOne is what is said of a setting that is -1.
func minusOne(f field, way string) error {
	s, err := Default(), error(nil)
	if way == "key" {
		s, err = Parse([]byte(fmt.Sprintf("%s: -1", f.name)))
	} else {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.Flags(fs)
		err = fs.Parse([]string{f.flag() + "=-1"})
	}
	if err != nil {
		return err
	}
	if f.option != nil {
		d := train.Find(f.option.Strategies[0])
		s.Strategy, s.Mode, s.Cluster.Workers, s.Cluster.Servers = d.Name, string(d.Mode), 4, 2
	}
	if err := s.CompleteParts(); err != nil {
		return err
	}
	s.complete(dataset{})
	return s.Validate()
}

// TestPartitionRefusesMinusOne: numbers of starling partition are counts.
func TestPartitionRefusesMinusOne(t *testing.T) {
	for flag, change := range map[string]func(*Partition){
		"--parts": func(p *Partition) { p.Parts = -1 }, "--workers": func(p *Partition) { p.Workers = -1 },
		"--servers": func(p *Partition) { p.Servers = -1 }, "--tries": func(p *Partition) { p.Tries = -1 },
		"--threads": func(p *Partition) { p.Threads = -1 }, "--batch-size": func(p *Partition) { p.BatchSize = -1 },
	} {
		p := DefaultPartition()
		p.Parts = 2
		change(&p)
		if _, err := p.Options(); !isMistake(err, flag+": found -1") {
			t.Errorf("%s -1: %v", flag, err)
		}
	}
}
