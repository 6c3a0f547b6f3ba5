package supervise

import (
	"testing"

	"starling/spec"
)

// TestJoinCommandHasTheTokenFile: what a run prints is the command that joins it.
func TestJoinCommandHasTheTokenFile(t *testing.T) {
	for _, c := range []struct {
		launch  spec.Launch
		workers int
		want    string
	}{
		{spec.Launch{}, 2, "starling worker --join h:7 --rank R, R from 0 to 1"},
		{spec.Launch{TokenFile: "token"}, 1, "starling worker --join h:7 --token-file token --rank 0"},
		{spec.Launch{TokenFile: "my token", TLS: "certs/a"}, 4,
			"starling worker --join h:7 --token-file 'my token' --tls certs/a --rank R, R from 0 to 3"},
		{spec.Launch{Insecure: true}, 2, "starling worker --join h:7 --insecure --rank R, R from 0 to 1"},
	} {
		r := &Run{}
		r.Spec.Launch, r.Spec.Cluster.Workers = c.launch, c.workers
		if got := r.howToJoin("h:7"); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
