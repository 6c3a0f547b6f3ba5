package innet

import "time"

// Rate is the rate at which a host sends: halved on a mark of congestion, else raised by a
// step at a time (§3.4). It is in bytes per second of virtual or real time.
type Rate struct {
	Min, Max, Step float64
	// Interval is how long a step takes, and the least time between two cuts.
	Interval time.Duration
	// Burst is how many bytes may leave at once.
	Burst float64

	now    float64
	credit float64
	at     time.Duration // when credit was last counted
	cut    time.Duration
	raised time.Duration
}

// DefaultRate is for a host on a fast link.
var DefaultRate = Rate{Min: 4e6, Max: 4e9, Step: 20e6, Interval: time.Millisecond, Burst: 64 << 10}

// Current is the rate.
func (r *Rate) Current() float64 {
	if r.now == 0 {
		r.now = r.Max / 4
	}
	return r.now
}

// Congested halves the rate, once per interval.
func (r *Rate) Congested(now time.Duration) {
	if r.cut > 0 && now-r.cut < r.Interval {
		return
	}
	r.now, r.cut, r.raised = max(r.Current()/2, r.Min), now, now
}

// Allow reports whether n bytes may leave now, and counts them if so; otherwise it
// returns when.
func (r *Rate) Allow(now time.Duration, bytes int) (ok bool, next time.Duration) {
	for now-r.raised >= r.Interval {
		steps := (now - r.raised) / r.Interval
		r.now = min(r.Current()+float64(steps)*r.Step, r.Max)
		r.raised += steps * r.Interval
	}
	r.credit = min(r.credit+(now-r.at).Seconds()*r.Current(), r.Burst)
	r.at = now
	if r.credit >= float64(bytes) || r.credit >= r.Burst {
		r.credit -= float64(bytes)
		return true, 0
	}
	wait := (min(float64(bytes), r.Burst) - r.credit) / r.Current()
	return false, now + time.Duration(wait*float64(time.Second)) + 1
}
