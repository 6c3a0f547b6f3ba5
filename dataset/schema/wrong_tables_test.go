package schema

import (
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/graph"
)

// wrongTable is a pair of tables that a user may bring: imported right, or refused in one sentence.
type wrongTable struct {
	edges, vertices string
	is              Columns
	refused         []string // all in the sentence; nil: it is imported
	right           func(d *graph.Dataset) error
}

func vertices(n int) func(*graph.Dataset) error {
	return func(d *graph.Dataset) error {
		if d.Graph.Nodes() != n {
			return fmt.Errorf("%d vertices", d.Graph.Nodes())
		}
		return nil
	}
}

func times(want ...int64) func(*graph.Dataset) error {
	return func(d *graph.Dataset) error {
		if got := slices.Sorted(slices.Values(d.Graph.EdgeTimes)); !slices.Equal(got, want) {
			return fmt.Errorf("times %v", got)
		}
		return nil
	}
}

func feature(want ...float32) func(*graph.Dataset) error {
	return func(d *graph.Dataset) error {
		if !slices.Equal(d.Features.F32, want) {
			return fmt.Errorf("features %v", d.Features.F32)
		}
		return nil
	}
}

func classes(names []string, want ...int32) func(*graph.Dataset) error {
	return func(d *graph.Dataset) error {
		if !slices.Equal(d.Labels.Class, want) || !slices.Equal(d.Labels.Names, names) {
			return fmt.Errorf("labels %v of %v", d.Labels.Class, d.Labels.Names)
		}
		return nil
	}
}

func weights(want ...float32) func(*graph.Dataset) error {
	return func(d *graph.Dataset) error {
		if got := slices.Sorted(slices.Values(d.Graph.Weights)); !slices.Equal(got, want) {
			return fmt.Errorf("weights %v", got)
		}
		return nil
	}
}

const people = "id,age,ok\na,1,yes\nb,3,no\nc,5,yes\n"

func wrongTables() map[string]wrongTable {
	const march = 1709251200 // 2024-03-01
	at, fraud := Columns{Time: "when"}, Columns{Label: "ok", Shares: [3]float64{0.5, 0, 0}}
	rows := func(n int, row func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(row(i))
		}
		return b.String()
	}
	return map[string]wrongTable{
		"byte order mark":        {edges: "\ufefffrom,to\na,b\n", right: vertices(2)},
		"UTF-16":                 {edges: "\xff\xfef\x00r\x00", refused: []string{"UTF-16", "iconv"}},
		"no text":                {edges: "from,to\na,b\x00\n", refused: []string{"no text"}},
		"mixed separators":       {edges: "from,to\na;b\nc;d\n", refused: []string{"line 2", "number of fields"}},
		"semicolons":             {edges: "from;to\na,1;b,2\n", right: vertices(2)},
		"a comma in quotes":      {edges: "from,to\n\"a, x\",b\nb,\"a, x\"\n", right: vertices(2)},
		"an open quote":          {edges: "from,to\n\"a,b\nc,d\n", refused: []string{"quote"}},
		"a quote in a field":     {edges: "from,to\na\"x\",b\n", refused: []string{"line 2", "quote"}},
		"a short row":            {edges: "from,to\na,b\nc\n", refused: []string{"line 3", "number of fields"}},
		"a long row":             {edges: "from,to\na,b\nc,d,e\n", refused: []string{"line 3", "number of fields"}},
		"separators at the ends": {edges: "from,to\na,b,\n", refused: []string{"line 2", "number of fields"}},
		"a name twice":           {edges: "from,to,to\na,b,c\n", refused: []string{"header", `"to"`, "rename"}},
		"only a header":          {edges: "from,to\n", refused: []string{"no rows"}},
		"only a header of vertices": {edges: "from,to\na,b\n", vertices: "id,age\n", is: Columns{Label: None},
			refused: []string{"vertices.csv", "no rows"}},
		"nothing":              {edges: "", refused: []string{"empty file"}},
		"the header twice":     {edges: "from,to\na,b\nfrom,to\nb,c\n", right: vertices(3)},
		"names of words":       {edges: "from,to\nann,bob\n", right: vertices(2)},
		"names in quotes":      {edges: "\"from\",\"to\"\n1,2\n2,3\n", right: vertices(3)},
		"names after 007":      {edges: "payer,payee\n007,8\n8,9\n", right: vertices(3)},
		"blanks around names":  {edges: " from , to \na , b\n", right: vertices(2)},
		"line ends of Windows": {edges: "from,to\r\na,b\r\nb,c\r\n", right: vertices(3)},
		"line ends of old":     {edges: "from,to\ra,b\rb,c\r", refused: []string{"edges.csv"}},
		"empty lines":          {edges: "from,to\n\na,b\n\n\nb,c\n", right: vertices(3)},
		"pandas' row numbers":  {edges: ",from,to\n0,a,b\n1,b,c\n", right: vertices(3)},
		"a million columns": {edges: "from,to" + rows(1_000_000, func(i int) string { return fmt.Sprintf(",c%d", i) }) + "\na,b" +
			strings.Repeat(",1", 1_000_000) + "\n", right: vertices(2)},
		"a million columns of vertices": {edges: "from,to\na,b\n", vertices: "id" + rows(1_000_000,
			func(i int) string { return fmt.Sprintf(",c%d", i) }) + "\na" + strings.Repeat(",1", 1_000_000) + "\n",
			refused: []string{"which column is to be learnt is a question", "and 999988 more", "--label"}},
		"a question of ends":      {edges: "tx,a,b\nt1,x,y\nt2,y,z\n", refused: []string{"a question: tx (text), a (text), b (text)", "--src"}},
		"a question of one end":   {edges: "tx,a,b\nt1,x,y\nt2,y,z\n", is: Columns{Src: "a"}, refused: []string{"tx (text), b (text)", "--dst"}},
		"a question of labels":    {edges: "from,to\na,b\n", vertices: people, refused: []string{"a question: age (whole numbers), ok (text)", "--label"}},
		"another case":            {edges: "payer,payee\na,b\n", is: Columns{Src: "Payer", Dst: "payee"}, refused: []string{"--src", "did you mean payer?"}},
		"dates":                   {edges: "from,to,when\na,b,2024-03-01\nb,c,2024-03-02\n", is: at, right: times(march, march+86400)},
		"dates with hours":        {edges: "from,to,when\na,b,2024-03-01 00:01\nb,c,2024-03-01T01:00:00+01:00\n", is: at, right: times(march, march+60)},
		"dates, day first":        {edges: "from,to,when\na,b,1/3/2024\nb,c,31/3/2024\n", is: at, right: times(march, march+30*86400)},
		"dates, month first":      {edges: "from,to,when\na,b,3/1/2024\nb,c,3/31/2024\n", is: at, right: times(march, march+30*86400)},
		"dates in words":          {edges: "from,to,when\na,b,1 Mar 2024\nb,c,\"Mar 2, 2024\"\n", is: at, right: times(march, march+86400)},
		"dates before 1970":       {edges: "from,to,when\na,b,1969-12-31\nb,c,1970-01-01\n", is: at, right: times(-86400, 0)},
		"which of day and month":  {edges: "from,to,when\na,b,1/3/2024\nb,c,2/3/2024\n", is: at, refused: []string{"day from month", "2024-03-01"}},
		"dates of two forms":      {edges: "from,to,when\na,b,2024-03-01\nb,c,1/31/2024\n", is: at, refused: []string{"line 3", "column when", "year-month-day"}},
		"no date":                 {edges: "from,to,when\na,b,soon\n", is: at, refused: []string{"line 2", `"soon"`, "a date"}},
		"negative times":          {edges: "from,to,when\na,b,-5\nb,c,7\n", is: at, right: times(-5, 7)},
		"times with fractions":    {edges: "from,to,when\na,b,0.5\nb,c,1\n", is: at, refused: []string{"line 2", "0.5", "multiply"}},
		"no time":                 {edges: "from,to,when\na,b,NA\nb,c,7\n", is: at, refused: []string{"line 2", "no time"}},
		"times of two kinds":      {edges: "from,to,when\na,b,2024-03-01\n", vertices: "id,born\na,1\nb,2\n", is: Columns{Time: "when", VertexTime: "born", Label: None}, refused: []string{"times of one kind"}},
		"007 and 7":               {edges: "from,to\n007,7\n7,8\n", right: vertices(3)},
		"007 for 7":               {edges: "from,to\n007,8\n", vertices: "id,age\n7,1\n8,2\n", is: Columns{Label: None}, refused: []string{"line 2", `"007"`, "add the vertex"}},
		"ids with fractions":      {edges: "from,to\n1.5,2\n2,3\n", is: Columns{Src: "from", Dst: "to"}, refused: []string{"whole numbers or text"}},
		"an id that is NA":        {edges: "from,to\na,NA\n", refused: []string{"line 2", "column to", `"NA"`, "missing"}},
		"an empty id":             {edges: "from,to\na,\n", refused: []string{"line 2", "column to", "no id"}},
		"an empty id of vertices": {edges: "from,to\na,b\n", vertices: "id,age\na,1\n,2\n", is: Columns{Label: None}, refused: []string{"vertices.csv: line 3", "no id"}},
		"a vertex twice":          {edges: "from,to\na,b\n", vertices: "id,age\na,1\nb,2\na,3\n", is: Columns{Label: None}, refused: []string{"line 4", "a second time"}},
		"an edge to no vertex":    {edges: "from,to\na,z\n", vertices: people, is: fraud, refused: []string{"line 2", `"z"`, "vertices.csv"}},
		"blanks behind labels":    {edges: "from,to\na,b\n", vertices: "id,age,ok\na,1,yes \nb,3,no\nc,5,yes\n", is: fraud, right: classes([]string{"no", "yes"}, 1, 0, 1)},
		"labels that are missing": {edges: "from,to\na,b\n", vertices: "id,age,ok\na,1,NA\nb,3,no\nc,5,\nd,1,yes\n", is: fraud, right: classes([]string{"no", "yes"}, -1, 0, -1, 1)},
		"all labels missing":      {edges: "from,to\na,b\n", vertices: "id,age,ok\na,1,NA\nb,3,\n", is: fraud, refused: []string{"no label"}},
		"a missing first row":     {edges: "from,to\na,b\n", vertices: "id,age\na,NA\nb,2\nc,4\n", is: Columns{Label: None}, right: feature(3, 2, 4)},
		"a missing last column":   {edges: "from,to\na,b\n", vertices: "id,age,x\na,1,2\nb,2,\nc,4,4\n", is: Columns{Label: None}, right: feature(1, 2, 2, 3, 4, 4)},
		"missing and refused":     {edges: "from,to\na,b\n", vertices: "id,age\na,1\nb,null\n", is: Columns{Label: None, Missing: "error"}, refused: []string{"line 3, column age", "a missing value"}},
		"a number that is text":   {edges: "from,to\na,b\n", vertices: "id,age\n" + rows(300, func(i int) string { return fmt.Sprintf("v%d,%d\n", i, i) }) + "a,ten\nb,2\n", is: Columns{Label: None}, refused: []string{"line 302, column age", `"ten"`, "finite number"}},
		"too large a number":      {edges: "from,to\na,b\n", vertices: "id,age\na,1e300\nb,2\n", is: Columns{Label: None}, refused: []string{"line 2, column age", "float32"}},
		"infinity":                {edges: "from,to,w\na,b,1\nb,c,inf\nc,d,2\n", is: Columns{Weight: "w"}, refused: []string{"w"}},
		"a weight that is text":   {edges: "from,to,w\na,b,\"1,5\"\n", is: Columns{Weight: "w"}, refused: []string{"w, which are"}},
		"a weight below 0":        {edges: "from,to,w\na,b,-2\n", is: Columns{Weight: "w"}, refused: []string{"line 2, column w", "--negative-weights"}},
		"no weight":               {edges: "from,to,w\na,b,1\nb,c,\n", is: Columns{Weight: "w"}, refused: []string{"line 3, column w", "no weight"}},
		"repeats summed":          {edges: "from,to,w\na,b,1\na,b,2\nb,a,5\n", is: Columns{Weight: "w"}, right: weights(3, 5)},
		"repeats counted":         {edges: "from,to\na,b\na,b\nb,a\n", is: Columns{Repeats: "count"}, right: weights(1, 2)},
		"repeats averaged":        {edges: "from,to,w\na,b,1\na,b,2\nb,a,5\n", is: Columns{Weight: "w", Repeats: "mean"}, right: weights(1.5, 5)},
		"repeats kept":            {edges: "from,to,w\na,b,1\na,b,2\nb,a,5\n", is: Columns{Weight: "w", Repeats: "keep"}, right: weights(1, 2, 5)},
		"repeats, the first":      {edges: "from,to,w\na,b,2\na,b,1\nb,a,5\n", is: Columns{Weight: "w", Repeats: "first"}, right: weights(2, 5)},
		"repeats, no such word":   {edges: "from,to\na,b\n", is: Columns{Repeats: "max"}, refused: []string{"--repeats", `"max"`, "sum, mean"}},
		"counted beside a weight": {edges: "from,to,w\na,b,1\n", is: Columns{Weight: "w", Repeats: "count"}, refused: []string{"count", "leave weight out"}},
		"a split of its own":      {edges: "from,to\na,b\n", vertices: "id,age,ok,part\na,1,y,train\nb,2,n,dev2\n", is: Columns{Label: "ok", Split: "part"}, refused: []string{`"dev2"`, "train, val or test"}},
		"the label as a feature":  {edges: "from,to\na,b\n", vertices: people, is: Columns{Label: "ok", Features: []string{"age", "ok"}}, refused: []string{"--features", "--label"}},
		"names as words":          {edges: "from,to\nv1,v2\n", vertices: "id,name\n" + rows(1500, func(i int) string { return fmt.Sprintf("v%d,n%d\n", i, i) }), is: Columns{Label: None, Features: []string{"name"}}, refused: []string{"1500 different words", "--one-hot name"}},
		"ids in other words":      {edges: "from,to\nñandú,東京\n東京,x y\n", right: vertices(3)},
	}
}

// TestWrongTables: every table is imported right, or refused in one sentence that names the file; then nothing is left.
func TestWrongTables(t *testing.T) {
	cases := wrongTables()
	if len(cases) < 40 {
		t.Errorf("%d tables", len(cases))
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"edges.csv": c.edges}
			if c.is.Edges = "edges.csv"; c.vertices != "" {
				files["vertices.csv"], c.is.Vertices = c.vertices, "vertices.csv"
			}
			dir := folder(t, files)
			checkTable(t, dir, &c)
		})
	}
}

func checkTable(t *testing.T, dir string, c *wrongTable) {
	d, err := importColumns(dir, c.is)
	if c.refused == nil {
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := c.right(d); err != nil {
			t.Error(err)
		}
		return
	}
	if err == nil {
		d.Close()
		t.Fatal("imported")
	}
	for _, want := range c.refused {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if !errors.Is(err, graph.ErrInput) || strings.Contains(err.Error(), "\n") {
		t.Errorf("no sentence: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 2 || slices.ContainsFunc(left, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".csv") }) {
		t.Errorf("left %v", left)
	}
}

// importColumns imports tables of a folder, and opens what was written.
func importColumns(dir string, is Columns) (*graph.Dataset, error) {
	is.Edges = filepath.Join(dir, is.Edges)
	if is.Vertices != "" {
		is.Vertices = filepath.Join(dir, is.Vertices)
	}
	s, err := is.Schema()
	if err != nil {
		return nil, err
	}
	p, err := s.Plan()
	if err != nil {
		return nil, err
	}
	p.Lines()
	out := filepath.Join(dir, "out")
	if _, err := p.Import(Options{Seed: 1, Overwrite: true}, out); err != nil {
		return nil, err
	}
	return graph.OpenWith(out, graph.OpenOptions{Verify: true})
}

// TestPackedTables: gzip is read, and refused where it is cut off.
func TestPackedTables(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "edges.csv.gz")
	var b strings.Builder
	z := gzip.NewWriter(&b)
	z.Write([]byte("from,to\n" + strings.Repeat("a,b\n", 100)))
	z.Close()
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := importColumns(dir, Columns{Edges: "edges.csv.gz"})
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if err := os.WriteFile(path, []byte(b.String()[:b.Len()-9]), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := importColumns(dir, Columns{Edges: "edges.csv.gz"}); err == nil || !strings.Contains(err.Error(), "gzip") {
		t.Error(err)
	}
}
