package spec

import (
	"strings"
	"testing"
)

func TestSplitStrategies(t *testing.T) {
	for text, want := range map[string]string{
		"halo":                               "halo",
		"halo, bns:0.1,,g3":                  "halo|bns:0.1|g3",
		"granndis:eas1,15,halo":              "granndis:eas1,15|halo",
		"granndis:2:eas1,15,halo":            "granndis:2:eas1,15|halo",
		"sancus:epoch:2,granndis:eas1,15,g3": "sancus:epoch:2|granndis:eas1,15|g3",
		"":                                   "",
	} {
		if got := strings.Join(SplitStrategies(text), "|"); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
