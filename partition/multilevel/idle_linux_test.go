package multilevel

import "testing"

func TestRunningIsRead(t *testing.T) {
	for text, want := range map[string]int{"0.20 0.18 0.12 1/80 11206\n": 1, "12.40 16.69 14.91 18/134 8242\n": 18,
		"": 0, "a b c d": 0} {
		if got := parseRunnable([]byte(text)); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
	if runnableThreads() < 1 { // this thread runs
		t.Error("no thread runs")
	}
}
