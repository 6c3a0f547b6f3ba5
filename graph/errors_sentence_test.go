package graph

import "testing"

// TestSentence: the template stays English whatever is put into it.
func TestSentence(t *testing.T) {
	for want, e := range map[string]*InputError{
		"--lr: found 0, want above 0; give one": {Field: "--lr", Found: "0", Want: "above 0", Fix: "give one"},
		"--rendezvous: no way to nosuchhost is known": {Field: "--rendezvous",
			Found: Sentence("no way to nosuchhost is known")},
		"f: the disk is full; want another; go": {File: "f", Found: Sentence("the disk is full"), Want: "another",
			Fix: "go"},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
