package store

import (
	"slices"
	"strings"
	"testing"

	"starling/internal/testseed"
)

// TestCheckMessages: requests are read as they were written, and answers go to who asked.
func TestCheckMessages(t *testing.T) {
	r := testseed.Rand(t)
	for range 100 {
		var list []Checked
		request := []byte{byte(r.IntN(3))}
		for range r.IntN(9) {
			list = append(list, Checked{r.Uint32(), r.Uint32()})
			request = list[len(list)-1].append(request)
		}
		method, got, err := parseChecks(request)
		if err != nil || method != int(request[0]) || !slices.Equal(got, list) {
			t.Fatalf("%d %v, %v, want %v", method, got, err, list)
		}
		if _, _, err := parseChecks(append(request, 0)); err == nil {
			t.Fatal("a request that is cut off is taken")
		}
	}
	out := make([]bool, 3)
	if err := takeChecks(out, []uint32{2, 0}, []byte{1, 0}); err != nil || !slices.Equal(out, []bool{false, false, true}) {
		t.Errorf("%v, %v", out, err)
	}
	for want, answer := range map[string][]byte{"1 answers, expected 2": {1}, "an answer of 2": {1, 2}} {
		if err := takeChecks(out, []uint32{2, 0}, answer); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
