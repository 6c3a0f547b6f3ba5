package netsim

// portStat is what is counted per port.
type portStat struct {
	packets, bytes int64
	drops, marks   int64
	peak           int64 // bytes in the queue
	busy           Time
	area           float64 // byte picoseconds of the queue
	last           Time    // until when area is counted
	series         *series
}

// PortStats are the counts of one direction of a link.
type PortStats struct {
	Name    string `json:"name"`
	Packets int64  `json:"packets"`
	Bytes   int64  `json:"bytes"` // with headers
	Drops   int64  `json:"drops"`
	Marks   int64  `json:"marks"`
	// PeakQueue and MeanQueue are bytes that waited, without the packet in transmission.
	PeakQueue   int64   `json:"peak_queue_bytes"`
	MeanQueue   float64 `json:"mean_queue_bytes"`
	Utilisation float64 `json:"utilisation"` // part of the time in which it transmitted
}

// Stats are the counts of a simulation.
type Stats struct {
	Seconds float64     `json:"seconds"` // simulated
	Events  uint64      `json:"events"`
	Packets int64       `json:"packets"` // that arrived
	Drops   int64       `json:"drops"`
	Marks   int64       `json:"marks"`
	Resent  int64       `json:"resent"`
	Ports   []PortStats `json:"ports"`
}

// queueChanged counts the queue until now. It is called before the queue changes.
func (s *portStat) queueChanged(now Time, queued int64) {
	s.area += float64(queued) * float64(now-s.last)
	if s.series != nil {
		s.series.add(s.last, now, queued)
	}
	s.last = now
}

// queueIs notes a queue length.
func (s *portStat) queueIs(now Time, queued int64) {
	s.peak = max(s.peak, queued)
	if s.series != nil {
		s.series.note(now, queued)
	}
}

// transmitted counts a packet.
func (s *portStat) transmitted(now Time, bytes int64, takes Time) {
	s.packets++
	s.bytes += bytes
	s.busy += takes
	if s.series != nil {
		s.series.busy(now, now+takes)
	}
}

// of are the counts of a port over a time.
func (s *portStat) of(name string, queued int64, now Time) PortStats {
	area := s.area + float64(queued)*float64(now-s.last)
	p := PortStats{Name: name, Packets: s.packets, Bytes: s.bytes, Drops: s.drops, Marks: s.marks, PeakQueue: s.peak}
	if now > 0 {
		p.MeanQueue, p.Utilisation = area/float64(now), min(1, float64(s.busy)/float64(now))
	}
	return p
}

// Sample is an interval of a port's series.
type Sample struct {
	Seconds     float64 `json:"seconds"` // where the interval begins
	PeakQueue   int64   `json:"peak_queue_bytes"`
	MeanQueue   float64 `json:"mean_queue_bytes"`
	Utilisation float64 `json:"utilisation"`
}

// bucketCount is how many intervals a series has at most. When time passes beyond the last,
// neighbours are merged, so that a series takes the same memory however long a run is.
const bucketCount = 512

// series is a port's queue and occupation over time.
type series struct {
	width   Time // of a bucket
	buckets [bucketCount]bucket
}

type bucket struct {
	peak int64
	area float64 // byte picoseconds
	busy Time
}

// at is the bucket of a time.
func (s *series) at(t Time) *bucket {
	for t/s.width >= bucketCount {
		s.merge()
	}
	return &s.buckets[t/s.width]
}

func (s *series) merge() {
	for i := range bucketCount / 2 {
		a, b := &s.buckets[2*i], &s.buckets[2*i+1]
		s.buckets[i] = bucket{max(a.peak, b.peak), a.area + b.area, a.busy + b.busy}
	}
	clear(s.buckets[bucketCount/2:])
	s.width *= 2
}

func (s *series) note(t Time, queued int64) {
	b := s.at(t)
	b.peak = max(b.peak, queued)
}

// each calls do for the parts of an interval that lie in different buckets.
func (s *series) each(from, to Time, do func(b *bucket, d Time)) {
	s.at(to)
	for from < to {
		end := min(to, (from/s.width+1)*s.width)
		do(s.at(from), end-from)
		from = end
	}
}

func (s *series) add(from, to Time, queued int64) {
	if queued > 0 {
		s.each(from, to, func(b *bucket, d Time) {
			b.area += float64(queued) * float64(d)
			b.peak = max(b.peak, queued)
		})
	}
}

func (s *series) busy(from, to Time) {
	s.each(from, to, func(b *bucket, d Time) { b.busy += d })
}

// samples are the intervals until now.
func (s *series) samples(now Time) (out []Sample) {
	for i := range s.buckets {
		from := Time(i) * s.width
		if from >= now {
			break
		}
		b, d := &s.buckets[i], float64(min(s.width, now-from))
		out = append(out, Sample{from.Seconds(), b.peak, b.area / d, min(1, float64(b.busy)/d)})
	}
	return out
}
