package innet

import "time"

// Rate is the rate at which a host sends, in bytes per second of virtual or real time. It begins at the most. At the
// end of each interval, which is the measured round trip, it follows the share of the packets of that interval that
// came marked or did not come:
//
//	alpha ← alpha + (share − alpha)/16
//	rate  ← rate·(1 − alpha/2) where any was, else half of the way back to the rate before the cut
//	rate  ← rate + step
//
// The first two are DCTCP's (Alizadeh et al., SIGCOMM 2010), the way back is DCQCN's (Zhu et al., SIGCOMM 2015), to
// which the paper compares its own (§3.4): halved on every mark, else raised by a step. But marks that other traffic
// causes do not go away when a host slows down, so that halving goes on down to the least rate. The share leaves it at
// about 2·step/alpha.
type Rate struct {
	Min, Max, Step float64
	// Interval is the time between two changes until a round trip has been measured.
	Interval time.Duration
	// Burst is how many bytes may leave at once.
	Burst float64

	now, target     float64
	alpha           float64
	packets, marked int // in this interval
	credit          float64
	at              time.Duration // when credit was last counted
	began           time.Duration // the interval
}

// DefaultRate is the rate of a host on a fast link.
var DefaultRate = Rate{Min: 4e6, Max: 4e9, Step: 20e6, Interval: time.Millisecond, Burst: 64 << 10}

// Current is the rate.
func (r *Rate) Current() float64 {
	if r.now == 0 {
		r.now = r.Max
	}
	return r.now
}

// Follow takes a measured round trip as the interval.
func (r *Rate) Follow(roundTrip time.Duration) { r.Interval = max(roundTrip, time.Microsecond) }

// Arrived counts a packet. One that was asked for and did not come counts as marked.
func (r *Rate) Arrived(now time.Duration, marked bool) {
	r.advance(now)
	r.packets++
	if marked {
		r.marked++
	}
}

// advance ends the intervals that are over.
func (r *Rate) advance(now time.Duration) {
	over := (now - r.began) / r.Interval
	if over <= 0 {
		return
	}
	r.began += over * r.Interval
	rate := r.Current()
	if r.packets > 0 {
		r.alpha += (float64(r.marked)/float64(r.packets) - r.alpha) / 16
	}
	if r.marked > 0 {
		r.target, rate = rate, rate*(1-r.alpha/2)
	} else {
		rate = max(rate, (rate+r.target)/2)
	}
	r.now = min(max(rate+float64(over)*r.Step, r.Min), r.Max)
	r.packets, r.marked = 0, 0
}

// Allow reports whether these bytes may leave now, and counts them if so; otherwise it
// returns when they may.
func (r *Rate) Allow(now time.Duration, bytes int) (ok bool, next time.Duration) {
	r.advance(now)
	r.credit = min(r.credit+(now-r.at).Seconds()*r.Current(), r.Burst)
	r.at = now
	if r.credit >= float64(bytes) || r.credit >= r.Burst {
		r.credit -= float64(bytes)
		return true, 0
	}
	wait := (min(float64(bytes), r.Burst) - r.credit) / r.Current()
	return false, now + time.Duration(wait*float64(time.Second)) + 1
}
