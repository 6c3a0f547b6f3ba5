package cost

// Calibrated is how long a step of the model takes on this machine and what work it is. Its quotient
// by the time that rates charge for that work is how far off these are for the shapes of the model.
type Calibrated struct {
	Seconds float64
	Work    Work
}

// Slowness is the time of the step over the time that rates charge for its work, between a tenth and
// ten times; 1 where nothing was measured.
func (k Calibrated) Slowness(c Compute) float64 {
	charged := c.Seconds(k.Work)
	if !(charged > 0) || !(k.Seconds > 0) {
		return 1
	}
	return min(max(k.Seconds/charged, 0.1), 10)
}

// Calibrate times steps, forward and backward, on the first rows of a part; all workers begin together.
// done is the work of the step's device so far.
func (s *Step) Calibrate(c Cluster, done func() Work) (k Calibrated, err error) {
	n := min(s.In.Nodes(), timedRows)
	if n == 0 || s.In.Indptr[n] == 0 { // nothing to time here
		_, err = c.Share(0)
		return k, err
	}
	w, p, x := s.ready(c, s.small())
	s.run(w, p, x) // takes the memory that others will reuse
	if _, err := c.Share(0); err != nil {
		return k, err
	}
	before, steps := done(), 0
	for ; (k.Seconds < 0.1 || steps < leastSteps && k.Seconds < mostSeconds) && steps < 1000; steps++ {
		forward, backward := s.run(w, p, x)
		k.Seconds += forward + backward
	}
	k.Work = done().Since(before).Times(1 / float64(steps))
	k.Seconds /= float64(steps)
	return k, nil
}
