package bytegnn

// cpuLoad is how busy the processors of this host are.
type cpuLoad struct{ busy, all, last float64 }

// percent is the load since it was asked for before, or, if no tick has passed, the last one.
func (c *cpuLoad) percent() float64 {
	busy, all, ok := cpuTimes()
	if !ok {
		return 0
	}
	if all > c.all {
		if c.all > 0 {
			c.last = 100 * (busy - c.busy) / (all - c.all)
		}
		c.busy, c.all = busy, all
	}
	return c.last
}
