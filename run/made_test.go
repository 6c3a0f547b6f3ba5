package run

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"starling/report"
	"starling/spec"
)

// TestResultsSayHowTheyWereMade: a result and a comparison have every setting, version, date and machine.
func TestResultsSayHowTheyWereMade(t *testing.T) {
	s := quick(block(t, nil))
	s.Model.Hidden, s.Seed = 12, 77
	all := strings.Count(s.String(), "\n")
	check := func(what string, v any) {
		t.Helper()
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Spec map[string]any
			Made report.Made
			Rows []struct{ Spec map[string]any }
		}
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if got.Rows != nil {
			got.Spec = got.Rows[0].Spec
		}
		if len(got.Spec) != all || fmt.Sprint(got.Spec["hidden"], got.Spec["seed"]) != "12 77" {
			t.Errorf("%s: %d of %d settings: %v", what, len(got.Spec), all, got.Spec)
		}
		m := got.Made
		if at, err := time.Parse(time.RFC3339, m.Date); err != nil || time.Since(at) > time.Hour {
			t.Errorf("%s: the date %q, %v", what, m.Date, err)
		}
		if m.Version != Version() || m.Machine.Cores < 1 || m.Machine.MemoryBytes < 1<<20 || m.Machine.Host == "" {
			t.Errorf("%s: %+v", what, m)
		}
	}
	r, err := Train(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	check("one worker", r)
	read := report.Run{}
	b, _ := json.Marshal(r)
	if err := json.Unmarshal(b, &read); err != nil || !reflect.DeepEqual(read.Spec.String(), r.Spec.String()) {
		t.Errorf("settings change on the way through JSON: %v", err)
	}
	s.Cluster.Workers, s.Cluster.InProcess = 2, true
	c, err := Compare(t.Context(), spec.Compare{Spec: s, Strategies: []string{"halo"}, Rounds: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	check("a comparison", c)
	page := string(c.HTML())
	for _, want := range []string{c.Made.Date, "<dt>hidden</dt><dd>12</dd>", "<dt>dropout</dt>", c.Made.Machine.Host} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}
