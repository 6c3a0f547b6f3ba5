package devicetest

import (
	"slices"

	"starling/tensor"
)

func (s *suite) memory() {
	rows, cols := s.size(60), s.size(60)
	t := []tensor.DType{s.dev.Type(), s.rowType(), tensor.F64}[s.r.IntN(3)]
	s.describe("%dx%d %v", rows, cols, t)
	before, _ := s.dev.Usage()
	m := s.dev.New(t, rows, cols)
	if m.Type() != t || m.Rows != rows || m.Cols != cols || m.IsZero() {
		s.Fatalf("%s: New made %v", s.label, m)
	}
	for _, x := range download(s.dev, m) {
		if x != 0 {
			s.Fatalf("%s: a new matrix holds %g", s.label, x)
		}
	}
	s.dev.Upload(m, s.values(rows*cols))
	s.dev.Sync()
	during, peak := s.dev.Usage()
	s.dev.Free(m)
	if after, _ := s.dev.Usage(); after != before || during < before+m.Bytes() || peak < during {
		s.Fatalf("%s: %d bytes in use, then %d (%d at most), then %d", s.label, before, during, peak, after)
	}
}

// host moves numbers of all host types there and back.
func (s *suite) host() {
	rows, cols := s.size(40), s.size(40)
	x := s.values(rows * cols)
	p := s.of(s.rowType(), rows, cols, x)
	s.describe("%v", p.dev)
	if got := download(s.dev, p.dev); !slices.Equal(got, x) {
		s.Fatalf("%s: %v came back as %v", s.label, x, got)
	}
	single := make([]float32, len(x))
	s.dev.Download(single, p.dev)
	for i := range single {
		single[i] = -single[i]
	}
	s.dev.Upload(p.dev, single)
	for i, y := range download(s.dev, p.dev) {
		if y != -x[i] {
			s.Fatalf("%s: %g came back as %g", s.label, -x[i], y)
		}
	}
	s.outside()
	s.fromHost(single, rows, cols)
	list := s.ids(rows)
	got := make([]uint32, rows)
	if s.dev.Download(got, tensor.Indices(s.dev, list).Matrix()); !slices.Equal(got, list) {
		s.Fatalf("row numbers %v came back as %v", list, got)
	}
}

func (s *suite) fromHost(x []float32, rows, cols int) {
	half := make([]uint16, len(x))
	m := s.dev.New(s.dev.RowType(tensor.BF16), rows, cols)
	s.dev.Upload(m, x)
	if m.Type() == tensor.BF16 {
		s.dev.Download(half, m)
		h := s.dev.FromHost(rows, cols, half)
		if got, want := download(s.dev, h), download(s.dev, m); !slices.Equal(got, want) {
			s.Fatalf("%s: bfloat16 %v came as %v", s.label, want, got)
		}
	}
	f := s.dev.FromHost(rows, cols, x)
	if got, want := download(s.dev, f), download(s.dev, m); !slices.Equal(got, want) {
		s.Fatalf("%s: %v came as %v", s.label, want, got)
	}
	s.dev.Free(m)
}

func (s *suite) staging() {
	n := s.size(5000)
	m, b := s.dev.Staging(n)
	for i := range b {
		b[i] = byte(i)
	}
	if len(b) != n || m.HostBytes() == nil {
		s.Fatalf("a staging buffer of %d bytes has %d, %v", n, len(b), m)
	}
	s.dev.Free(m)
}

// transpose is twice what it was.
func (s *suite) transpose() {
	g := s.graph(s.size(40), s.size(40))
	s.describe("%v", g)
	there := g.transposed()
	back := tensor.Transpose(s.dev, g.sparse(s.dev, true), there.ptr, there.index, there.perm)
	dst := s.numbers(s.dev.Type(), g.cols, 5)
	y := s.numbers(s.dev.Type(), g.rows, 5)
	s.dev.Aggregate(dst.dev, back, y.dev, tensor.Aggregate{})
	s.dev.Free(back.Values())
	refBack := tensor.Transpose(s.ref, g.sparse(s.ref, true), there.ptr, there.index, there.perm)
	s.ref.Aggregate(dst.ref, refBack, y.ref, tensor.Aggregate{})
	s.same("sum over a transpose", dst, 10)
}
