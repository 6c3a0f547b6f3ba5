package cost

// Work is what a worker's device does, whatever it takes.
type Work struct {
	Dense   float64 // floating-point operations of dense products
	Sparse  float64 // numbers that sums over neighbours read
	Memory  float64 // bytes that all else reads and writes
	Entries float64 // edges that sums went over, forward and backward
	Calls   float64 // operations
	// Int8 and BF16 are bytes of float32 rows that are rounded to these types to travel, with error feedback, and
	// made rows again.
	Int8, BF16 float64
}

// Add adds other work to w.
func (w *Work) Add(o Work) { *w = w.plus(o, 1) }

// Times is the work done n times.
func (w Work) Times(n float64) Work { return Work{}.plus(w, n) }

// Since is what was added to an earlier work.
func (w Work) Since(before Work) Work { return w.plus(before, -1) }

func (w Work) plus(o Work, n float64) Work {
	return Work{Dense: w.Dense + n*o.Dense, Sparse: w.Sparse + n*o.Sparse, Memory: w.Memory + n*o.Memory,
		Entries: w.Entries + n*o.Entries, Calls: w.Calls + n*o.Calls, Int8: w.Int8 + n*o.Int8, BF16: w.BF16 + n*o.BF16}
}

// Seconds is how long work takes. Rates of 0 take no time.
func (c Compute) Seconds(w Work) float64 {
	return c.Op*w.Calls + per(w.Dense, c.GEMM) + per(w.Sparse, c.SpMM) + per(w.Memory, c.Memory) +
		per(w.Int8, c.Int8) + per(w.BF16, c.BF16)
}

func per(amount, rate float64) float64 {
	if rate == 0 {
		return 0
	}
	return amount / rate
}
