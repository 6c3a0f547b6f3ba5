package train

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"starling/graph"
)

// Two strategies for tests of options. They share pace, and have no workers.

type PaceOption struct {
	Pace string `json:"pace" values:"slow,fast" suffix:"*" resume:"free" omit:"default" help:"how fast"`
}

type kiteOptions struct {
	Height float64 `json:"height" main:"" help:"how high"`
	PaceOption
	Tail bool `json:"tail_knots" suffix:"tail" omit:"default" help:"knots in the tail"`
	Loop int  `json:"loops" flag:"-" help:"loops per flight"`
}

func (o *kiteOptions) Validate() error {
	if o.Height > 100 {
		return fmt.Errorf("a kite flies at most 100 high, not %g", o.Height)
	}
	return nil
}

type boatOptions struct {
	Sails int    `json:"sails" flag:"-" main:"" help:"how many"`
	Name  string `json:"called" flag:"-" main:"" help:"its name"`
	PaceOption
}

// Parse reads a number, a name, or both.
func (o *boatOptions) Parse(text string) error {
	number, name, both := strings.Cut(text, ":")
	n, err := fmt.Sscan(number, &o.Sails)
	switch {
	case n == 1 && both:
		o.Name = name
	case n == 0 && !both && number != "":
		o.Name = number
	case n == 0:
		return err
	}
	return nil
}

func (o *boatOptions) Setting() string {
	if o.Name == "" {
		return fmt.Sprint(o.Sails)
	}
	return fmt.Sprint(o.Sails, ":", o.Name)
}

func init() {
	Register(
		Describe(Descriptor{Name: "kite", Mode: FullGraph},
			kiteOptions{Height: 10, PaceOption: PaceOption{"slow"}, Loop: 2},
			func(*Site, kiteOptions) (Strategy, error) { return nil, nil }),
		Describe(Descriptor{Name: "boat", Mode: FullGraph}, boatOptions{Sails: 1, PaceOption: PaceOption{"slow"}},
			func(s *Site, o boatOptions) (Strategy, error) {
				return nil, fmt.Errorf("%d sails", o.Sails)
			}),
		Describe(Descriptor{Name: "stone"}, struct{}{}, func(*Site, struct{}) (Strategy, error) { return nil, nil }),
	)
}

// TestDescribe: options are the fields of a struct and of those it embeds, as their tags
// have it.
func TestDescribe(t *testing.T) {
	d := Find("kite")
	want := []Option{
		{Name: "height", Help: "how high", Main: true, HasFlag: true, Default: 10.0},
		{Name: "pace", Help: "how fast", Values: []string{"slow", "fast"}, Suffix: "*", HasFlag: true, Free: true,
			Omit: true, Default: "slow"},
		{Name: "tail_knots", Help: "knots in the tail", Suffix: "tail", HasFlag: true, Omit: true, Default: false},
		{Name: "loops", Help: "loops per flight", Default: 2},
	}
	got := d.Options()
	if len(got) != len(want) {
		t.Fatalf("%d options", len(got))
	}
	for i, o := range got {
		w := want[i]
		w.Strategies, w.index = []string{"kite"}, o.index
		if !reflect.DeepEqual(*o, w) {
			t.Errorf("%+v, want %+v", *o, w)
		}
	}
	if got[2].Flag() != "--tail-knots" {
		t.Error(got[2].Flag())
	}
	if _, err := Find("boat").New(&Site{Opt: Options{Strategy: Choice{Find("boat"),
		&boatOptions{Sails: 7}}}}); err == nil || err.Error() != "7 sails" {
		t.Errorf("the constructor was given other options: %v", err)
	}
}

// TestAllOptions: each name once, with those that have it.
func TestAllOptions(t *testing.T) {
	users := map[string]string{}
	for _, o := range AllOptions() {
		if users[o.Name] != "" {
			t.Errorf("%s twice", o.Name)
		}
		users[o.Name] = strings.Join(o.Strategies, " ")
	}
	if users["pace"] != "kite boat" || users["sails"] != "boat" || users["height"] != "kite" {
		t.Error(users)
	}
	for range 2 { // a second call sees what the first did
		if o := AllOptions()[1]; len(o.Strategies) != 2 {
			t.Error(o.Strategies)
		}
	}
}

func TestRegistry(t *testing.T) {
	if Default().Name != "kite" || !slices.Equal(Names(), []string{"kite", "boat", "stone"}) || len(Strategies()) != 3 {
		t.Error(Default().Name, Names())
	}
	for _, text := range []string{"boat", "boat:3", "boat+fast", "boat:3+fast", "boat loops=3"} {
		if NameOf(text) != "boat" || Find(text) == nil {
			t.Error(text)
		}
	}
	if Find("") != nil || Find("boats") != nil {
		t.Error("found what is not there")
	}
	defer func() {
		if recover() == nil {
			t.Error("two strategies have one name")
		}
	}()
	Register(Descriptor{Name: "kite"})
}

// options are the options of a choice that must succeed, as text.
func options(t *testing.T, text string, given Settings) string {
	t.Helper()
	c, err := Choose(text, given)
	if err != nil {
		t.Errorf("%s with %v: %v", text, given, err)
		return ""
	}
	return fmt.Sprintf("%+v", reflect.ValueOf(c.Options).Elem())
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		text  string
		given Settings
		want  string
	}{
		{"kite", nil, "{Height:10 PaceOption:{Pace:slow} Tail:false Loop:2}"},
		{"kite:3.5", nil, "{Height:3.5 PaceOption:{Pace:slow} Tail:false Loop:2}"},
		{"kite:3.5+fast", nil, "{Height:3.5 PaceOption:{Pace:fast} Tail:false Loop:2}"},
		{"kite+tail+fast", nil, "{Height:10 PaceOption:{Pace:fast} Tail:true Loop:2}"},
		{"kite+tail", Settings{"pace": "fast", "sails": 3}, "{Height:10 PaceOption:{Pace:fast} Tail:true Loop:2}"},
		{"kite:3", Settings{"height": 3.0}, "{Height:3 PaceOption:{Pace:slow} Tail:false Loop:2}"}, // said twice
		{"boat", nil, "{Sails:1 Name: PaceOption:{Pace:slow}}"},
		{"boat:3", nil, "{Sails:3 Name: PaceOption:{Pace:slow}}"},
		{"boat:3:argo", nil, "{Sails:3 Name:argo PaceOption:{Pace:slow}}"},
		{"boat:argo+fast", Settings{"sails": 4}, "{Sails:4 Name:argo PaceOption:{Pace:fast}}"},
		{"stone", Settings{"pace": "fast"}, "{}"},
	} {
		if got := options(t, c.text, c.given); got != c.want {
			t.Errorf("%s with %v: %s, want %s", c.text, c.given, got, c.want)
		}
	}
	a, b := options(t, "kite:1", nil), options(t, "kite", nil)
	if a == b || options(t, "kite", nil) != b {
		t.Error("one choice has changed the defaults of others")
	}
}

// TestChooseMistakes: each is the user's, names what it is about, and says what to do.
func TestChooseMistakes(t *testing.T) {
	for _, c := range []struct {
		text  string
		given Settings
		words string // separated by |
	}{
		{"kiet", nil, `--strategy|"kiet"|one of kite, boat, stone|did you mean kite?`},
		{"", nil, "--strategy|one of kite, boat, stone"},
		{"kiet:3+fast", nil, `"kiet"|did you mean kite?`},
		{"kite:high", nil, `--strategy|"kite:high"|a number`},
		{"kite:", nil, `--strategy|"kite:"|a number`},
		{"kite:101", nil, `--strategy|"kite:101"|at most 100 high, not 101`},
		{"kite:101+fast", nil, `"kite:101+fast"|at most 100`},
		{"kite", Settings{"height": 101.0}, `"kite"|at most 100`},
		{"kite+quick", nil, `"kite+quick"|kite takes +fast, +tail, not +quick`},
		{"kite+", nil, "takes +fast, +tail, not +"},
		{"kite+fast+", nil, "not +"},
		{"kite junk", nil, `"kite junk"|a colon and a setting may follow kite`},
		{"boat:", nil, `--strategy|"boat:"`},
		{"stone:3", nil, "stone has no setting"},
		{"kite", Settings{"pace": "quick"}, `--pace|"quick"|one of slow, fast`},
		{"kite", Settings{"pace": "fats"}, "did you mean fast?"},
		{"kite:3", Settings{"height": 4.0}, "--height|4 beside --strategy kite:3|one of the two|leave out"},
		{"kite+slow", Settings{"pace": "fast"}, "--pace|fast beside --strategy kite+slow"},
	} {
		_, err := Choose(c.text, c.given)
		if !errors.Is(err, graph.ErrInput) {
			t.Errorf("%q with %v: %v", c.text, c.given, err)
			continue
		}
		for _, word := range strings.Split(c.words, "|") {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q with %v: %q is not in %q", c.text, c.given, word, err)
			}
		}
	}
}

func TestOptionParse(t *testing.T) {
	byName := map[string]*Option{}
	for _, o := range AllOptions() {
		byName[o.Name] = o
	}
	for _, c := range []struct {
		name, text string
		want       any // nil: a mistake
	}{
		{"height", "1e3", 1000.0}, {"height", "x", nil},
		{"loops", "-3", -3}, {"loops", "1.5", nil}, {"loops", "", nil},
		{"tail_knots", "true", true}, {"tail_knots", "0", false}, {"tail_knots", "yes", nil},
		{"pace", "fast", "fast"}, {"pace", "quick", nil}, {"called", "any thing", "any thing"},
	} {
		got, err := byName[c.name].Parse(c.text)
		if c.want == nil && !errors.Is(err, graph.ErrInput) || c.want != nil && (err != nil || got != c.want) {
			t.Errorf("%s %q: %v, %v", c.name, c.text, got, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("an option of a type that no text gives")
		}
	}()
	(&Option{Name: "odd", Default: []int{}}).Parse("1")
}

// TestSettings: one is never changed, and a default is the same as none.
func TestSettings(t *testing.T) {
	height, pace := Find("kite").Options()[0], Find("kite").Options()[1]
	var none Settings
	one := none.With(height, 3.0)
	two := one.With(pace, "fast")
	if none != nil || len(one) != 1 || len(two) != 2 || none.Get(height) != 10.0 || two.Get(height) != 3.0 ||
		one.Get(pace) != "slow" {
		t.Error(none, one, two)
	}
	if back := two.With(height, 10.0); len(back) != 1 || two.Get(height) != 3.0 {
		t.Error(back, two)
	}
	if less := two.Without("pace"); len(less) != 1 || len(two) != 2 {
		t.Error(less, two)
	}
	if got := two.Under("kite:5"); !maps.Equal(got, Settings{"pace": "fast"}) || len(two) != 2 {
		t.Errorf("what follows the name does not win: %v of %v", got, two)
	}
	if got := two.Under("kite:10+slow"); len(got) != 0 { // defaults, but said
		t.Error(got)
	}
	for _, text := range []string{"kite", "kite:3", "kite:x", "unknown", "stone"} {
		if got := two.Under(text); !maps.Equal(got, two) {
			t.Errorf("%s leaves %v", text, got)
		}
	}
}

// TestReport: options by name, without those that have their default and say so.
func TestReport(t *testing.T) {
	for text, want := range map[string]string{
		"kite":             "map[height:10 loops:2]",
		"kite:3+fast+tail": "map[height:3 loops:2 pace:fast tail_knots:true]",
		"stone":            "map[]",
	} {
		if c, err := Choose(text, nil); err != nil || fmt.Sprint(c.Report()) != want {
			t.Errorf("%s: %v, %v", text, c.Report(), err)
		}
	}
	if (Choice{}).Report() != nil || (Choice{}).Name() != "" {
		t.Error("a run of one worker reports options")
	}
}

// TestLabel: a run is called as it was written, with what was given elsewhere as it would
// have been written. Numbers may have been through JSON.
func TestLabel(t *testing.T) {
	for _, c := range []struct {
		text     string
		reported map[string]any
		want     string
	}{
		{"kite", nil, "kite"},
		{"kite:3", map[string]any{"height": 3.0}, "kite:3"},
		{"kite", map[string]any{"height": 3.0}, "kite:3"},
		{"kite", map[string]any{"loops": 4.0, "pace": "fast", "tail_knots": true}, "kite loops=4+fast+tail"},
		{"kite+fast", map[string]any{"pace": "fast"}, "kite+fast"},
		{"boat", map[string]any{"sails": 3.0, "called": "argo"}, "boat:3:argo"},
		{"boat:argo", map[string]any{"sails": 3.0, "called": "argo"}, "boat:3:argo"},
		{"boat", map[string]any{"sails": "many", "unknown": 1}, "boat"}, // of another version
		{"none", map[string]any{"sails": 3.0}, "none"},
	} {
		if got := Label(c.text, c.reported); got != c.want {
			t.Errorf("%s with %v is %q, want %q", c.text, c.reported, got, c.want)
		}
	}
}

func TestOptionOf(t *testing.T) {
	c, err := Choose("boat:3+fast", nil)
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := OptionOf[boatOptions](c); !ok || o.Sails != 3 {
		t.Error(o, ok)
	}
	if o, ok := OptionOf[PaceOption](c); !ok || o.Pace != "fast" {
		t.Error(o, ok)
	}
	if o, ok := OptionOf[kiteOptions](c); ok {
		t.Error(o)
	}
	if o, ok := OptionOf[PaceOption](Choice{}); ok {
		t.Error(o)
	}
}

// FuzzChoose: whatever users write is a choice, or their mistake; and what is chosen has a
// label.
func FuzzChoose(f *testing.F) {
	for _, text := range []string{"kite", "kite:3+fast", "boat:3:argo", "boat:", "kite+tail+tail", "stone:", "kite:NaN",
		"+", ":", " kite"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Choose(text, nil)
		switch {
		case err != nil && !errors.Is(err, graph.ErrInput):
			t.Fatalf("%q: %v", text, err)
		case err == nil:
			if got := Label(text, c.Report()); got != text && !strings.Contains(text, "NaN") {
				t.Fatalf("%q is called %q", text, got)
			}
		}
	})
}
