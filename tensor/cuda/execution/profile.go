package execution

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"
)

// profileNamed is the variable that names a file to which every device appends how long its kernels took.
// Each is then waited for, so that a run is slower than it is without.
const profileNamed = "STARLING_CUDA_PROFILE"

// profile is how often kernels ran, and how long.
type profile struct {
	file string
	of   map[string]*spent
}

type spent struct {
	n    int
	time time.Duration
}

func newProfile() *profile {
	file := os.Getenv(profileNamed)
	if file == "" {
		return nil
	}
	return &profile{file: file, of: map[string]*spent{}}
}

// Timed begins to time a kernel; what it returns ends that.
func (s *Stream) Timed(name string) func() {
	if s.profile == nil {
		return func() {}
	}
	s.Wait()
	start := time.Now()
	return func() {
		s.Wait()
		of := s.profile.of[name]
		if of == nil {
			of = &spent{}
			s.profile.of[name] = of
		}
		of.n++
		of.time += time.Since(start)
	}
}

// Profiled reports whether kernels are timed: they then run one by one.
func (s *Stream) Profiled() bool { return s.profile != nil }

// write appends a line per kernel, the longest first. A file that cannot be written is left out: the numbers of
// the run are right without it.
func (p *profile) write() {
	if p == nil {
		return
	}
	f, err := os.OpenFile(p.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer f.Close()
	names := slices.SortedFunc(maps.Keys(p.of), func(a, b string) int {
		return cmp.Compare(p.of[b].time, p.of[a].time)
	})
	for _, name := range names {
		fmt.Fprintf(f, "%10.3f ms %6d x %s\n", p.of[name].time.Seconds()*1e3, p.of[name].n, name)
	}
}
