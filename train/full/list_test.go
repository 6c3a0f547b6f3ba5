package full

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"starling/train"
)

// TestDescriptors: every strategy says what a user must know of it.
func TestDescriptors(t *testing.T) {
	if train.Default().Name != halo.Name {
		t.Errorf("the default is %s", train.Default().Name)
	}
	for _, d := range train.Strategies() {
		if !regexp.MustCompile(`^[a-z][a-z0-9]*$`).MatchString(d.Name) || d.New == nil || d.Mode != train.FullGraph {
			t.Errorf("%q, mode %q", d.Name, d.Mode)
		}
		if d.Exact == "" || d.Sends == "" || d.UseWhen == "" {
			t.Errorf("%s does not say all of its row in docs/strategies/README.md", d.Name)
		}
		if p := d.Paper; p != nil && (p.Title == "" || p.Claim == "" || p.Why == "") {
			t.Errorf("%s: %+v", d.Name, p)
		}
		if d.Baseline != "" && train.Find(d.Baseline) == nil {
			t.Errorf("%s is compared with %s, which there is not", d.Name, d.Baseline)
		}
		if _, err := train.Choose(d.Name, nil); err != nil {
			t.Errorf("%s with its defaults: %v", d.Name, err)
		}
	}
}

// TestOptionsAgree: strategies that share an option mean the same by it: one flag and one
// line of YAML is of all of them.
func TestOptionsAgree(t *testing.T) {
	type seen struct {
		by string
		o  train.Option
	}
	first := map[string]seen{}
	for _, d := range train.Strategies() {
		own := map[string]bool{}
		for _, o := range d.Options() {
			if o.Name == "" || o.Help == "" || own[o.Name] {
				t.Errorf("%s: an option %q without a name or help, or twice", d.Name, o.Name)
			}
			own[o.Name] = true
			if text := fmt.Sprint(o.Default); text != "" {
				if v, err := o.Parse(text); err != nil || v != o.Default {
					t.Errorf("%s: %s has a default that is no value of it: %v", d.Name, o.Name, err)
				}
			}
			was, ok := first[o.Name]
			if !ok {
				first[o.Name] = seen{d.Name, *o}
				continue
			}
			for _, differ := range differences(was.o, *o) {
				t.Errorf("%s and %s both have %s, with another %s", was.by, d.Name, o.Name, differ)
			}
		}
	}
}

// differences are the fields in which two descriptions of an option differ.
func differences(a, b train.Option) (list []string) {
	for what, pair := range map[string][2]any{
		"type": {reflect.TypeOf(a.Default), reflect.TypeOf(b.Default)}, "default": {a.Default, b.Default},
		"help":   {a.Help, b.Help},
		"suffix": {a.Suffix, b.Suffix}, "flag": {a.HasFlag, b.HasFlag}, "resume": {a.Free, b.Free},
		"omit": {a.Omit, b.Omit},
	} {
		if pair[0] != pair[1] {
			list = append(list, what)
		}
	}
	if !slices.Equal(a.Values, b.Values) {
		list = append(list, "values")
	}
	return list
}

// TestDifferencesAreFound: the comparison above would see each.
func TestDifferencesAreFound(t *testing.T) {
	a := train.Option{Name: "x", Help: "h", Values: []string{"v"}, Default: "v", HasFlag: true}
	for _, change := range []func(*train.Option){
		func(o *train.Option) { o.Help = "other" }, func(o *train.Option) { o.Values = nil },
		func(o *train.Option) { o.Default = "w" },
		func(o *train.Option) { o.HasFlag = false }, func(o *train.Option) { o.Suffix = "s" },
		func(o *train.Option) { o.Free = true },
	} {
		b := a
		change(&b)
		if len(differences(a, b)) == 0 || len(differences(a, a)) > 0 {
			t.Errorf("%+v and %+v", a, b)
		}
	}
}

// ofStaleRows reports whether an option is only for stale rows.
func ofStaleRows(option string) bool { return option == "means" || option == "skip_gradients" }

// withoutStaleRows reports whether a text chooses what has no stale rows.
func withoutStaleRows(text string) bool {
	plain := strings.HasPrefix(text, "bns") && !strings.Contains(text, "cached")
	return plain || text == "pipegcn:0" || text == "sancus:epoch:0"
}

// TestTextOfEveryStrategy: what is chosen by a text has a label, which is a text that
// chooses the same.
func TestTextOfEveryStrategy(t *testing.T) {
	settings := map[string][]string{
		"bns":      {"0.1", "1", "0.5:cached", "cached", "0.25:shrunk"},
		"pipegcn":  {"0", "1"},
		"sancus":   {"epoch:0", "epoch:2", "adaptive:3", "variation:0.05", "relative:0.5"},
		"skipg":    {"0", "1", "7"},
		"granndis": {"auto", "most", "0", "3", "eas", "eas2,9", "2:eas", "2:eas1,9"},
		"g3":       {"none", "inter", "intra", "both"},
	}
	for _, d := range train.Strategies() {
		texts := []string{d.Name}
		for _, setting := range settings[d.Name] {
			texts = append(texts, d.Name+":"+setting)
		}
		for _, text := range slices.Clone(texts) {
			for _, o := range d.Options() {
				switch {
				case o.Suffix == "*":
					for _, v := range o.Values {
						texts = append(texts, text+"+"+v)
					}
				case o.Suffix != "" && !(ofStaleRows(o.Name) && withoutStaleRows(text)):
					texts = append(texts, text+"+"+o.Suffix)
				}
			}
		}
		for _, text := range texts {
			c, err := train.Choose(text, nil)
			if err != nil {
				t.Error(err)
				continue
			}
			label := train.Label(d.Name, c.Report())
			again, err := train.Choose(label, nil)
			if err != nil || !reflect.DeepEqual(again.Options, c.Options) {
				t.Errorf("%s is called %s, which is %+v, not %+v: %v", text, label, again.Options, c.Options, err)
			}
			if got := train.Label(text, c.Report()); got != text {
				t.Errorf("%s is called %s", text, got)
			}
		}
	}
}
