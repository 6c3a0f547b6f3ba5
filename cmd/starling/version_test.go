package main

import (
	"encoding/json"
	"maps"
	"runtime"
	"strings"
	"testing"
)

// TestVersionShowsTheCommit: that of the build, where git is not looked at while building.
func TestVersionShowsTheCommit(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"version", "--version"} {
		if o := starling(t, t.TempDir(), how); o.status != 0 ||
			!strings.HasPrefix(o.stdout, "starling commit "+builtCommit+" go") {
			t.Errorf("%s: %+v", how, o)
		}
	}
	if s := buildName("v1.2.3", "0123456789ab"); s != "v1.2.3 (commit 0123456789ab)" {
		t.Error(s)
	}
	var about map[string]string
	o := works(t, t.TempDir(), "version", "--json")
	want := map[string]string{"version": builtCommit, "commit": builtCommit, "go": runtime.Version(),
		"system": runtime.GOOS, "arch": runtime.GOARCH}
	if err := json.Unmarshal([]byte(o.stdout), &about); err != nil || !maps.Equal(about, want) {
		t.Errorf("version --json: %v, %v, want %v", err, about, want)
	}
	make := command(t, "../..", "make", "-n", "build")
	if !strings.Contains(make.stdout, "-X starling/internal/version.commit=") {
		t.Errorf("make build does not name the commit: %s", make.stdout)
	}
}
