package table

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go"

	"starling/graph"
)

// written writes a file into a folder of its own, packed if it is called so.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	b := []byte(text)
	if strings.HasSuffix(name, ".gz") {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write(b)
		w.Close()
		b = z.Bytes()
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func kinds(t *Table) (out string) {
	for _, c := range t.Columns {
		out += fmt.Sprintf("%s:%s ", c.Name, c.String())
	}
	return strings.TrimSpace(out)
}

func TestTextTablesAreWhatTheyLookLike(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a.csv", "id,age,city\n1,2.5,Oslo\n2,,Rome\n", "id:whole numbers age:numbers city:text"},
		{"a.csv.gz", "\xef\xbb\xbfid,age\n1,2\n", "id:whole numbers age:whole numbers"},
		{"a.tsv", "a\"\tb\n5\t6\n", "a\":whole numbers b:whole numbers"},
		{"a.csv", "1,2\n3,4\n", "1:whole numbers 2:whole numbers"},
		{"a.csv", "user,item\nu1,i7\nu2,i7\n", "user:text item:text"},
		{"a.csv", "alice,bob\nbob,carol\n", "1:text 2:text"},
		{"a.csv", "kind,colour\ncat,red\ndog,red\ncat,red\ndog,blue\n", "kind:text colour:text"},
		{"a.csv", "x;y\n1,5;2\n2,5;3\n", "x:vectors of 2 y:whole numbers"},
		{"a.csv", "id,2019,2020\n1,5,6\n", "id:whole numbers 2019:whole numbers 2020:whole numbers"},
		{"a.csv", "Anna,2019,2020\n1,5,6\n", "1:text 2:whole numbers 3:whole numbers"},
		{"a.csv", "emb\n0.5 1 2\n\"[1, 2, 3]\"\n", "emb:vectors of 3"},
		{"a.csv", "\"a \"\"name\"\"\",\"b\nc\"\n1,2\n", "a \"name\":whole numbers b\nc:whole numbers"},
		{"a.csv", "id , name\n1,\"x, y\"\n", "id:whole numbers name:text"},
	} {
		x, err := Open(Options{}, written(t, c.name, c.text))
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if got := kinds(x); got != c.want {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
	x, err := Open(Options{Names: []string{"id", "2019"}}, written(t, "a.csv", "id,2019,2020\n1,5,6\n"))
	if err != nil || x.Columns[1].Name != "2019" {
		t.Errorf("names that are expected tell a header: %v %v", x, err)
	}
}

func TestRowsOfText(t *testing.T) {
	path := written(t, "a.csv", "id,age,word,v\n007,1.5, a b ,1 2\n7,NA,,3 4\n8,2,\"x\n y\",nan\n")
	x, err := Open(Options{}, path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := x.Read([]Want{{"id", ID}, {"age", Real}, {"word", Text}, {"v", Vector}}, func(b *Batch) error {
		for i := range b.Rows {
			got = append(got, fmt.Sprintf("%s|%v|%s|%v|%s", b.Columns[0].Text[i], b.Columns[1].Real[i],
				b.Columns[2].Text[i],
				b.Columns[3].Vector[2*i:2*i+2], b.Place(i)))
		}
		if m := b.Columns[1].Missing; !slices.Equal(m, []bool{false, true, false}) || b.Columns[0].Missing != nil {
			t.Error(m)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"007|1.5|a b|[1 2]|line 2", "7|NaN||[3 4]|line 3", "8|2|x\n y|[NaN NaN]|line 4"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if x.Rows != 3 {
		t.Error(x.Rows)
	}
}

// TestBatchesAreBounded reads more rows than a batch has, in order.
func TestBatchesAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("n\n")
	for i := range 3*batchRows + 5 {
		fmt.Fprintln(&text, i)
	}
	x, err := Open(Options{}, written(t, "n.csv", text.String()))
	if err != nil {
		t.Fatal(err)
	}
	var next, batches int64
	if err := x.Read([]Want{{"n", Whole}}, func(b *Batch) error {
		batches++
		for _, n := range b.Columns[0].Whole {
			if n != next || b.First > n {
				t.Fatalf("%d after %d", n, next)
			}
			next++
		}
		return nil
	}); err != nil || next != 3*batchRows+5 || batches != 4 {
		t.Error(next, batches, err)
	}
}

func TestBadTextIsRefusedInOneSentence(t *testing.T) {
	for _, c := range []struct{ text, column, want string }{
		{"a,b\n1,2\n3\n", "b", "line 3: found another number of fields"},
		{"a,b\n1,x\n", "b", `line 2, column b: found "x", want a finite number`},
		{"a,b\n1,\"x\n2,y\n", "b", "a quote that does not end"},
		{"a,b\n1,x\"y\n", "b", "a quote inside a field"},
		{"a,a\n1,2\n", "a", `"a" as the name of columns 1 and 2`},
		{"", "a", "an empty file"},
		{"\xff\xfea\x00", "a", "UTF-16"},
		{"a,b\n1,2\n", "c", `no column "c"`},
		{"\x89HDF\r\n\x1a\n", "a", "HDF5"},
	} {
		x, err := Open(Options{}, written(t, "a.csv", c.text))
		if err == nil {
			err = x.Read([]Want{{c.column, Real}}, func(*Batch) error { return nil })
		}
		if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(),
			"\n") {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	if _, err := Open(Options{}, filepath.Join(t.TempDir(), "x*.csv")); !errors.Is(err, graph.ErrInput) {
		t.Error(err)
	}
}

type parquetRow struct {
	ID    int64      `parquet:"id"`
	Name  *string    `parquet:"name,optional"`
	Score float64    `parquet:"score"`
	Emb   []float32  `parquet:"emb,list"`
	Half  *int32     `parquet:"half,optional"`
	More  [3]float64 `parquet:"-"`
}

func writeParquet(t *testing.T, path string, rows []parquetRow) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[parquetRow](f, parquet.MaxRowsPerRowGroup(2))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestShardsOfParquet reads two shards, in natural order, as one table.
func TestShardsOfParquet(t *testing.T) {
	dir, name, one := t.TempDir(), "n", int32(1)
	writeParquet(t, filepath.Join(dir, "p10.parquet"), []parquetRow{{ID: 4, Emb: []float32{7, 8}, Half: &one}})
	writeParquet(t, filepath.Join(dir, "p2.parquet"), []parquetRow{{ID: 1 << 60, Name: &name, Score: 0.5,
		Emb: []float32{1, 2}},
		{ID: 2, Emb: []float32{3, 4}}, {ID: 3, Emb: []float32{5, 6}}})
	os.WriteFile(filepath.Join(dir, "_SUCCESS"), nil, 0o644)
	for _, pattern := range []string{dir, filepath.Join(dir, "p*.parquet")} {
		x, err := Open(Options{}, pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := kinds(x); got != "id:whole numbers name:text score:numbers emb:vectors of 2 half:whole numbers" ||
			x.Rows != 4 {
			t.Fatal(got, x.Rows)
		}
		var ids []int64
		var vectors []float32
		var missing []bool
		var texts []string
		if err := x.Read([]Want{{"emb", Vector}, {"id", ID}, {"half", Real}, {"id", Text}}, func(b *Batch) error {
			vectors, ids = append(vectors, b.Columns[0].Vector...), append(ids, b.Columns[1].Whole...)
			for i := range b.Rows {
				missing = append(missing, b.Columns[2].IsMissing(i))
			}
			texts = append(texts, b.Columns[3].Text...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(ids, []int64{1 << 60, 2, 3, 4}) || !slices.Equal(vectors, []float32{1, 2, 3, 4, 5, 6, 7, 8}) ||
			!slices.Equal(missing, []bool{true, true, true, false}) || texts[0] != "1152921504606846976" {
			t.Fatal(ids, vectors, missing, texts)
		}
	}
}

func TestVectorsOfParquetHaveOneWidth(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	writeParquet(t, path, []parquetRow{{Emb: []float32{1, 2}}, {Emb: []float32{1}}})
	x, err := Open(Options{}, path)
	if err != nil {
		t.Fatal(err)
	}
	err = x.Read([]Want{{"emb", Vector}}, func(*Batch) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "row 1, column emb: found a list of 1, want 2") {
		t.Error(err)
	}
}

// npy writes an npy file of one or two dimensions.
func npy(t *testing.T, name, descr, shape string, data []byte) string {
	t.Helper()
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	return written(t, name, "\x93NUMPY\x01\x00"+string([]byte{byte(len(head)), byte(len(head) >> 8)})+head+string(data))
}

func TestNPYIsAColumn(t *testing.T) {
	x, err := Open(Options{}, npy(t, "emb.npy", "<f4", "2, 3", BytesOf([]float32{1, 2, 3, 4, 5, float32(math.Inf(1))})))
	if err != nil || kinds(x) != "emb:vectors of 3" || x.Rows != 2 {
		t.Fatal(x, err)
	}
	if err := x.Read([]Want{{"emb", Vector}}, func(b *Batch) error {
		if b.Columns[0].Width != 3 || b.Columns[0].Vector[4] != 5 {
			t.Error(b.Columns[0])
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	x, err = Open(Options{}, npy(t, "id.npy", "<i8", "2,", BytesOf([]int64{9, 1 << 60})))
	if err != nil || kinds(x) != "id:whole numbers" {
		t.Fatal(x, err)
	}
	if err := x.Read([]Want{{"id", ID}}, func(b *Batch) error {
		if !slices.Equal(b.Columns[0].Whole, []int64{9, 1 << 60}) {
			t.Error(b.Columns[0])
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"a,b\n1,2\n", "\"a\n", "1;2\n3;4\n", "x\ty\n\"\t2\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "a.csv")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		x, err := Open(Options{}, path)
		if err != nil {
			return
		}
		var want []Want
		for _, c := range x.Columns {
			want = append(want, Want{c.Name, c.Kind})
		}
		rows := 0
		err = x.Read(want, func(b *Batch) error { rows += b.Rows; return nil })
		if err == nil && x.Rows >= 0 && int64(rows) != x.Rows {
			t.Errorf("%d rows, %d announced", rows, x.Rows)
		}
	})
}
