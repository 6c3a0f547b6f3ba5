package store

import (
	"encoding/binary"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"starling/graph"
	"starling/internal/testseed"
	"starling/partition"
	"starling/rng"
	"starling/sample"
	"starling/tensor"
)

// numbersBelow are n random numbers, and some of their places.
func numbersBelow(r *rand.Rand, n int, below uint32) (numbers, places []uint32) {
	for i := range n {
		numbers = append(numbers, r.Uint32N(below))
		if r.IntN(3) > 0 {
			places = append(places, uint32(i))
		}
	}
	return numbers, places
}

func at[T any](list []T, places []uint32) []T {
	out := make([]T, 0, len(places))
	for _, i := range places {
		out = append(out, list[i])
	}
	return out
}

func denseRows(r *rand.Rand, rows, cols int) *graph.Features {
	f := &graph.Features{Rows: rows, Cols: cols, F32: make([]float32, rows*cols)}
	for i := range f.F32 {
		f.F32[i] = float32(r.NormFloat64())
	}
	return f
}

func sparseFeatures(r *rand.Rand, rows, cols int) *graph.Features {
	f := &graph.Features{Rows: rows, Cols: cols, Indptr: []int64{0}}
	for range rows {
		for c := range cols {
			if r.IntN(4) == 0 {
				f.Indices, f.Values = append(f.Indices, uint32(c)), append(f.Values, r.Float32())
			}
		}
		f.Indptr = append(f.Indptr, int64(len(f.Indices)))
	}
	return f
}

func someColumns(r *rand.Rand, cols int) *Columns {
	var list []uint32
	for c := range cols {
		if r.IntN(2) == 0 {
			list = append(list, uint32(c))
		}
	}
	return NewColumns(list, cols)
}

// pullForms are all forms that rows of some features travel in.
func pullForms(r *rand.Rand, f *graph.Features) (out []pullForm) {
	out = append(out, pullForm{}, pullForm{keep: someColumns(r, f.Cols)})
	if f.Kind() != graph.Sparse {
		lo := r.IntN(f.Cols)
		size := rowBytes(f) / f.Cols
		out = append(out, pullForm{span: [2]int{lo * size, (lo + 1 + r.IntN(f.Cols-lo)) * size}})
	}
	if f.Kind() == graph.Dense {
		for _, p := range []Packed{BF16, Int8} {
			out = append(out, pullForm{packed: p}, pullForm{packed: p, keep: someColumns(r, f.Cols)})
		}
	}
	return out
}

// TestPullRequests: an owner reads the form and the numbers that were asked for.
func TestPullRequests(t *testing.T) {
	r := testseed.Rand(t)
	for range 50 {
		cols := 1 + r.IntN(70)
		for _, f := range []*graph.Features{denseRows(r, 1, cols), sparseFeatures(r, 1, cols),
			{Rows: 1, Cols: cols, BF16: make([]uint16, cols)}} {
			numbers, places := numbersBelow(r, r.IntN(20), 1<<31)
			for _, form := range append(pullForms(r, f), pullForm{table: Labels}, pullForm{table: added + 2}) {
				got, asked, err := parsePull(form.request(numbers, places), f)
				if err != nil {
					t.Fatal(err)
				}
				if form.keep != nil {
					if got.keep == nil || !slices.Equal(got.keep.list, form.keep.list) {
						t.Fatalf("columns %v, want %v", got.keep, form.keep.list)
					}
					got.keep = form.keep
				}
				if got != form || !slices.Equal(asked, at(numbers, places)) {
					t.Fatalf("%+v of %v, want %+v of %v", got, asked, form, at(numbers, places))
				}
			}
		}
	}
}

// TestTinyRowsOfInt8: features that are tiny arrive within half a step, with their signs.
func TestTinyRowsOfInt8(t *testing.T) {
	for _, top := range []float32{9e-31, 2e-36, 1e-38, 2.66e-43, 1e-44} {
		row := bytesOf([]float32{top, -top, top / 2, 0})
		got := make([]byte, len(row))
		Int8.unpackRow(got, Int8.appendRow(nil, row))
		for c := 0; c < len(row); c += 4 {
			x, want := float64(float32At(got, c)), float64(float32At(row, c))
			if step := max(float64(top)/127, tensor.SmallestScale); math.Abs(x-want) > 0.5001*step {
				t.Errorf("%g of a row up to %g arrives as %g", want, top, x)
			}
		}
	}
}

// TestRowsOfEveryForm: rows of equal length arrive at their places as a dumb twin has them, number by number, and
// other places are not written to.
func TestRowsOfEveryForm(t *testing.T) {
	r := testseed.Rand(t)
	for range 100 {
		f := denseRows(r, 1+r.IntN(9), 1+r.IntN(40))
		for _, form := range pullForms(r, f) {
			rows, places := numbersBelow(r, 12, uint32(f.Rows))
			lo, hi := 0, f.Cols
			if form.span[1] > 0 {
				lo, hi = form.span[0]/4, form.span[1]/4
			}
			width := 4 * (hi - lo)
			from := &rowSource{rows: bytesOf(f.F32), width: 4 * f.Cols}
			body := form.encode(nil, from, at(rows, places))
			if len(body) != form.bytes(width)*len(places) {
				t.Fatalf("%+v: %d bytes of %d rows, want %d each", form, len(body), len(places), form.bytes(width))
			}
			got, want := make([]float32, len(rows)*(hi-lo)), make([]float32, len(rows)*(hi-lo))
			for _, i := range places {
				wantRow(want[int(i)*(hi-lo):], f.F32[int(rows[i])*f.Cols:][:f.Cols][lo:hi], form)
			}
			if err := form.decode(bytesOf(got), width, places, body); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%+v: %v, want %v", form, got, want)
			}
			if err := form.decode(bytesOf(got), width, places, append(body, 0)); err == nil {
				t.Fatal("a byte too many is taken")
			}
			if form.streams() {
				checkScatter(t, r, body, places, width, want)
			}
		}
	}
}

// wantRow is the dumb twin of a row that travels in a form.
func wantRow(to, row []float32, form pullForm) {
	scale := float32(0)
	for c, x := range row {
		if form.keep == nil || form.keep.has(uint32(c)) {
			scale = max(scale, x, -x)
		}
	}
	scale /= 127
	for c, x := range row {
		switch {
		case form.keep != nil && !form.keep.has(uint32(c)):
			continue
		case form.packed == BF16:
			x = math.Float32frombits(uint32(graph.ToBF16(x)) << 16)
		case form.packed == Int8 && scale > 0:
			x = float32(math.RoundToEven(float64(x)/float64(scale))) * scale
		}
		to[c] = x
	}
}

// checkScatter takes a reply in by pieces in any order.
func checkScatter(t *testing.T, r *rand.Rand, body []byte, places []uint32, width int, want []float32) {
	t.Helper()
	var offsets []int
	for at := 0; at < len(body); at += 8 * (1 + r.IntN(4)) {
		offsets = append(offsets, at)
	}
	got := make([]float32, len(want))
	for _, k := range r.Perm(len(offsets)) {
		end := len(body)
		if k+1 < len(offsets) {
			end = offsets[k+1]
		}
		scatter(bytesOf(got), width, places, int64(offsets[k]), body[offsets[k]:end])
	}
	scatter(bytesOf(got), width, places, int64(len(body)), []byte{1, 2, 3}) // too many bytes are not written
	if !slices.Equal(got, want) {
		t.Fatalf("in pieces: %v, want %v", got, want)
	}
}

// TestSparseRows: sparse rows, also without some columns, arrive as they were.
func TestSparseRows(t *testing.T) {
	r := testseed.Rand(t)
	for range 50 {
		f := sparseFeatures(r, 1+r.IntN(9), 1+r.IntN(40))
		for _, form := range pullForms(r, f) {
			rows, _ := numbersBelow(r, r.IntN(12), uint32(f.Rows))
			body := form.encode(nil, &rowSource{sparse: f}, rows)
			got, err := parseSparse(body, len(rows), f.Cols)
			if err != nil {
				t.Fatal(err)
			}
			row, want := make([]float32, f.Cols), make([]float32, f.Cols)
			for k, v := range rows {
				got.CopyRow(row, uint32(k))
				f.CopyRow(want, v)
				for c := range want {
					if form.keep != nil && !form.keep.has(uint32(c)) {
						want[c] = 0
					}
				}
				if !slices.Equal(row, want) {
					t.Fatalf("row %d: %v, want %v", v, row, want)
				}
			}
			if len(rows) > 0 {
				if _, err := parseSparse(body, len(rows), 0); len(got.Indices) > 0 && err == nil {
					t.Fatal("a column that there is not is taken")
				}
				if _, err := parseSparse(append(body, 0), len(rows), f.Cols); err == nil {
					t.Fatal("a byte too many is taken")
				}
			}
		}
	}
}

func randomQuery(r *rand.Rand, numbers []uint32) *query {
	q := &query{key: rng.Key(r.Uint64()), fanout: 1 + r.IntN(9), seeds: r.IntN(2) == 0}
	if r.IntN(3) == 0 {
		q.fanout = sample.All
		q.only, _ = numbersBelow(r, r.IntN(5), 100)
		q.only = append([]uint32{}, q.only...)
		q.counted = r.IntN(2) == 0
	}
	if r.IntN(3) == 0 {
		q.masks = 1 + r.Uint32N(9)
	}
	if r.IntN(2) == 0 {
		var list []Excluded
		for _, v := range numbers {
			if r.IntN(2) == 0 {
				list = append(list, Excluded{Vertex: v, Source: r.Uint32N(100)})
			}
		}
		q.without = newExclusions(list)
	}
	return q
}

// randomFanouts are of relations, some of which have their own.
func randomFanouts(r *rand.Rand, relations int) (list []int) {
	for range relations {
		list = append(list, []int{0, sample.All, 1 + r.IntN(9)}[r.IntN(3)])
	}
	return list
}

// TestDrawRequests: an owner reads the query that was asked, with excluded edges by the places of their vertices.
func TestDrawRequests(t *testing.T) {
	r := testseed.Rand(t)
	for range 300 {
		numbers, places := numbersBelow(r, r.IntN(20), 1000)
		q, relations := randomQuery(r, numbers), r.IntN(4)
		if relations > 0 {
			q.fanouts, q.typed = randomFanouts(r, relations), true
			for i := range q.without.edges() {
				q.without.list[i].Relation = r.IntN(relations)
			}
		}
		got, asked, without, err := parseDraw(q.request(numbers, places), relations)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(without, q.without.of(numbers, places)) || !slices.Equal(asked, at(numbers, places)) {
			t.Fatalf("%v without %v, want %v without %v", asked, without, at(numbers, places),
				q.without.of(numbers, places))
		}
		want := *q
		want.without = nil
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

// randomDraw is what n vertices might have drawn.
func randomDraw(r *rand.Rand, n int, shape drawShape) *drawn {
	d := &drawn{Block: sample.Block{Dst: n, Indptr: []int64{0}}}
	degree := func() float64 {
		if shape.weighted {
			return r.Float64()
		}
		return float64(r.Uint32N(50))
	}
	for range r.IntN(9) {
		below := uint32(shape.nodes)
		d.number, d.id = append(d.number, r.Uint32N(below)), append(d.id, r.Uint32N(below))
		d.noLoops = append(d.noLoops, degree())
	}
	for range n {
		d.all = append(d.all, degree())
		if shape.fanout != sample.All {
			d.RowWeights = append(d.RowWeights, r.Float32())
		}
		if shape.seeds {
			d.own = append(d.own, r.Uint32N(uint32(shape.nodes)))
			d.ownNoLoops = append(d.ownNoLoops, degree())
		}
		for range min(len(d.number), r.IntN(4)) {
			d.Indices = append(d.Indices, r.Uint32N(uint32(len(d.number))))
			if shape.weights {
				d.Weights = append(d.Weights, r.Float32())
			}
			for range shape.edgeDim {
				d.features = append(d.features, r.Float32())
			}
			if shape.counted {
				d.apart = append(d.apart, r.Int32()-1<<30)
			}
		}
		d.Indptr = append(d.Indptr, int64(len(d.Indices)))
	}
	return d
}

func randomShape(r *rand.Rand) drawShape {
	q := randomQuery(r, nil)
	shape := drawShape{query: q, edgeDim: r.IntN(3), weighted: r.IntN(2) == 0, nodes: 1000}
	shape.weights = shape.weighted && r.IntN(2) == 0
	return shape
}

// TestDrawReplies: what owners drew arrives, in the bytes that were reckoned with.
func TestDrawReplies(t *testing.T) {
	r := testseed.Rand(t)
	for range 300 {
		shape, n := randomShape(r), r.IntN(9)
		want := randomDraw(r, n, shape)
		body := want.encode(nil, shape.weighted)
		if len(body) != want.encodedBytes(shape.weighted) {
			t.Fatalf("%d bytes, expected %d", len(body), want.encodedBytes(shape.weighted))
		}
		var got drawn
		if err := got.decode(body, n, shape); err != nil {
			t.Fatal(err)
		}
		for _, l := range []struct{ got, want any }{{got.Indptr, want.Indptr}, {got.Indices, want.Indices},
			{got.Weights, want.Weights}, {got.RowWeights, want.RowWeights}, {got.number, want.number},
			{got.id, want.id}, {got.noLoops, want.noLoops}, {got.all, want.all}, {got.own, want.own},
			{got.ownNoLoops, want.ownNoLoops}, {got.features, want.features}, {got.apart, want.apart}} {
			if a, b := fmt.Sprint(l.got), fmt.Sprint(l.want); a != b {
				t.Fatalf("%s, want %s", a, b)
			}
		}
		if len(got.number) > 0 {
			if shape.nodes = int64(slices.Max(got.number)); got.decode(body, n, shape) == nil {
				t.Fatal("a vertex that there is not is taken")
			}
		}
	}
}

// TestWalkMessages: requests to follow edges and to count walks are read as they were written.
func TestWalkMessages(t *testing.T) {
	r := testseed.Rand(t)
	for range 100 {
		numbers, places := numbersBelow(r, r.IntN(20), 1000)
		by := make([]uint64, len(numbers))
		for i := range by {
			by[i] = r.Uint64()
		}
		how, step := r.Uint32N(2), r.Uint32()
		h, s, asked, chosen, err := parseFollowing(following(how, step, numbers, by, places))
		if err != nil || h != how || s != step || !slices.Equal(asked, at(numbers, places)) ||
			!slices.Equal(chosen, at(by, places)) {
			t.Fatalf("%d %d %v %v, %v", h, s, asked, chosen, err)
		}
		sources := append(slices.Clone(numbers), nowhere)
		if got, err := parseFollowed(bytesOf(sources), len(sources), 1000); err != nil || !slices.Equal(got, sources) {
			t.Fatalf("%v, %v, want %v", got, err, sources)
		}
		if _, err := parseFollowed(bytesOf([]uint32{1000}), 1, 1000); err == nil {
			t.Fatal("a vertex that there is not is taken")
		}
		var list []uint32
		var paths [][]uint32
		for range r.IntN(5) {
			path, _ := numbersBelow(r, 1+r.IntN(4), 1000)
			paths, list = append(paths, path), appendWalk(list, path)
		}
		if got, err := parseWalks(bytesOf(list)); err != nil || !reflect.DeepEqual(got, paths) {
			t.Fatalf("%v, %v, want %v", got, err, paths)
		}
	}
}

// TestNegativeMessages: requests are read as they were written, and answers go to who asked.
func TestNegativeMessages(t *testing.T) {
	r := testseed.Rand(t)
	for range 100 {
		var list []Negative
		request, answers := []byte{byte(r.IntN(3))}, []uint32(nil)
		for i := range 1 + r.IntN(9) {
			list = append(list, Negative{r.Uint32(), rng.Key(r.Uint64()), r.IntN(1 << 30), r.IntN(5)})
			request = list[i].append(request)
			for range list[i].Count {
				answers = append(answers, uint32(i))
			}
		}
		method, got, err := parseNegatives(request)
		if err != nil || method != int(request[0]) || !slices.Equal(got, list) {
			t.Fatalf("%d %v, %v, want %v", method, got, err, list)
		}
		places, nodes := upTo(len(list)), int64(len(list))
		if err := distribute(list, places, answers, nodes, func(i int, numbers []uint32) {
			other := func(v uint32) bool { return v != uint32(i) }
			if len(numbers) != list[i].Count || slices.ContainsFunc(numbers, other) {
				t.Errorf("%v for %d", numbers, i)
			}
		}); err != nil {
			t.Fatal(err)
		}
		none := func(int, []uint32) { t.Error("a bad answer is taken") }
		if distribute(list, places, append(answers, 0), nodes, none) == nil ||
			len(answers) > 0 && distribute(list, places, answers, 0, none) == nil {
			t.Error("a bad answer is not refused")
		}
	}
	huge := []byte{0}
	for range 100 {
		huge = (&Negative{Count: 1 << 30}).append(huge)
	}
	if _, _, err := parseNegatives(huge); err == nil {
		t.Error("more negatives than fit into a reply are drawn")
	}
}

// TestSharedMessages: sums and masks are read as they were written.
func TestSharedMessages(t *testing.T) {
	r := testseed.Rand(t)
	for range 100 {
		numbers, _ := numbersBelow(r, r.IntN(9), 1000)
		sums := make([]sample.Sum, len(numbers))
		for i := range sums {
			sums[i] = sample.Sum{Whole: r.Uint64(), Fraction: r.Uint64()}
		}
		table, got, parts, err := parseSums(sumsOf(7, numbers, sums))
		if err != nil || table != 7 || !slices.Equal(got, numbers) || !slices.Equal(parts, sums) {
			t.Fatalf("%d %v %v, %v", table, got, parts, err)
		}
		for _, want := range []*guideMessage{{deviates: r.Float64(), vertices: append([]uint32{}, numbers...)},
			{version: 1 + r.Uint32N(9), missing: byte(r.IntN(256)), masks: append([]byte{1}, bytesOf(numbers)...)}} {
			if got, err := parseGuide(want.encode(), 1000); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v, %v, want %+v", got, err, want)
			}
		}
	}
}

// oneOwner has embeddings of rows 100 to 149.
func oneOwner(dim, size int) *Embeddings {
	return &Embeddings{Dim: dim, Size: size, s: &Store{Part: &partition.Part{}},
		rows: &Rows{Name: "embeddings", Width: dim * size, Offsets: []int64{100, 150}}}
}

// TestGradientMessages: gradients are read as they were written, and rows of other workers are refused.
func TestGradientMessages(t *testing.T) {
	r := testseed.Rand(t)
	for _, size := range []int{4, 8} {
		e := oneOwner(3, size)
		numbers, places := numbersBelow(r, 20, 50)
		gradients := make([]float64, 3*len(numbers))
		for i := range gradients {
			gradients[i] = float64(float32(r.NormFloat64()))
		}
		for i := range numbers {
			numbers[i] += 100
		}
		p, err := e.parsePush(e.pushOf(9, 0.25, numbers, e.Bytes(gradients), places))
		if err != nil || p.step != 9 || p.rate != 0.25 || len(p.rows) != len(places) {
			t.Fatalf("%+v, %v", p, err)
		}
		for k, i := range places {
			if p.rows[k] != numbers[i]-100 || !slices.Equal(e.Numbers(p.values)[3*k:3*k+3], gradients[3*i:3*i+3]) {
				t.Fatalf("row %d of %+v", k, p)
			}
		}
		if _, err := e.parsePush(e.pushOf(9, 0.25, []uint32{150}, e.Bytes(gradients), []uint32{0})); err == nil {
			t.Error("a row of another worker is taken")
		}
	}
}

// TestBadBytes: no parser panics or takes memory for what a message only announces, whatever is cut off or changed.
func TestBadBytes(t *testing.T) {
	r := testseed.Rand(t)
	f, e := denseRows(r, 3, 37), oneOwner(2, 4)
	numbers, places := numbersBelow(r, 9, 50)
	q := randomQuery(r, numbers)
	shape := randomShape(r)
	form := pullForm{keep: someColumns(r, f.Cols)}
	for name, m := range map[string]struct {
		body  []byte
		parse func(b []byte) error
	}{
		"pull": {form.request(numbers, places), func(b []byte) error { _, _, err := parsePull(b, f); return err }},
		"sparse": {appendSparse(nil, sparseFeatures(r, 5, 9), upTo(5), nil), func(b []byte) error {
			_, err := parseSparse(b, 5, 9)
			return err
		}},
		"draw": {q.request(numbers, places), func(b []byte) error { _, _, _, err := parseDraw(b, 3); return err }},
		"drawn": {randomDraw(r, 7, shape).encode(nil, shape.weighted), func(b []byte) error {
			return new(drawn).decode(b, 7, shape)
		}},
		"follow": {following(0, 1, numbers, make([]uint64, len(numbers)), places), func(b []byte) error {
			_, _, _, _, err := parseFollowing(b)
			return err
		}},
		"walks": {bytesOf(appendWalk(appendWalk(nil, numbers), places)), func(b []byte) error {
			_, err := parseWalks(b)
			return err
		}},
		"sums": {sumsOf(1, numbers, make([]sample.Sum, len(numbers))), func(b []byte) error {
			_, _, _, err := parseSums(b)
			return err
		}},
		"guide": {(&guideMessage{deviates: 0.5, vertices: numbers}).encode(), func(b []byte) error {
			_, err := parseGuide(b, 50)
			return err
		}},
		"negatives": {(&Negative{1, 2, 3, 4}).append([]byte{1}), func(b []byte) error {
			_, _, err := parseNegatives(b)
			return err
		}},
		"gradients": {e.pushOf(1, 0.1, []uint32{101, 102}, make([]byte, 4*e.Size), upTo(2)), func(b []byte) error {
			_, err := e.parsePush(b)
			return err
		}},
		"columns": {binary.LittleEndian.AppendUint32(nil, 5), func(b []byte) error {
			v := &Vertices{Number: make([]uint32, 9), Columns: [][]float64{make([]float64, 9)}}
			return v.take(b, 0, 1)
		}},
	} {
		for n := range m.body {
			if err := m.parse(slices.Clone(m.body[:n])); err == nil && (len(m.body)-n)%4 != 0 {
				t.Errorf("%s: %d of %d bytes are taken", name, n, len(m.body))
			}
		}
		for range 2000 {
			b := slices.Clone(m.body)
			for range 1 + r.IntN(3) {
				if k := r.IntN(len(b)); r.IntN(2) == 0 {
					b[k] = byte(r.Uint32())
				} else {
					copy(b[k&^3:], "\xff\xff\xff\xff")
				}
			}
			m.parse(b) // it may be a message; it must not panic
		}
	}
}

// TestWaitsAreInOneFile: code that waits for other workers is in calls.go, where every wait watches what ends a
// step.
func TestWaitsAreInOneFile(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	for _, entry := range files {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name == "calls.go" {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.SelectStmt:
				t.Errorf("%v: a select", set.Position(x.Pos()))
			case *ast.UnaryExpr:
				if x.Op == token.ARROW {
					t.Errorf("%v: a receive", set.Position(x.Pos()))
				}
			case *ast.SelectorExpr:
				if id, ok := x.X.(*ast.SelectorExpr); ok && (id.Sel.Name == "end" || id.Sel.Name == "reply") &&
					(x.Sel.Name == "Call" || x.Sel.Name == "Wait") {
					t.Errorf("%v: a request or a wait beside calls", set.Position(x.Pos()))
				}
			}
			return true
		})
	}
}
