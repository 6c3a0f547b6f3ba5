package worker

import "testing"

func TestAtATime(t *testing.T) {
	for _, c := range []struct {
		all, here, workers, threads, want int
		why                               string
	}{
		{2, 2, 2, 1, 1, "a processor each"},
		{1, 1, 1, 1, 1, "one of all"},
		{2, 4, 4, 1, 2, "half a processor each"},
		{4, 2, 2, 1, 4, "two processors each"},
		{4, 2, 2, 2, 4, "two processors and threads each"},
		{2, 2, 2, 2, 2, "more threads than processors, as asked for"},
		{2, 2, 4, 1, 2, "two more on another host"},
		{1, 1, 2, 1, 2, "one more on another host"},
		{8, 1, 1, 1, 8, "one worker"},
	} {
		if got := atATime(c.all, c.here, c.workers, c.threads); got != c.want {
			t.Errorf("%s: %d at a time of %d, expected %d", c.why, got, c.all, c.want)
		}
	}
}
