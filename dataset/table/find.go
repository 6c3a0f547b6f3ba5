package table

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// endings are names of files of tables, also with .gz behind.
var endings = []string{".csv", ".tsv", ".txt", ".tab", ".parquet", ".pq", ".npy"}

// find lists the files of a pattern in natural order: shard 2 before shard 10.
func find(pattern string) (files []string, err error) {
	info, err := os.Stat(pattern)
	switch {
	case err == nil && info.IsDir():
		return inFolder(pattern)
	case err == nil:
		return []string{pattern}, nil
	}
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil, bad(pattern, "", "a pattern with an open bracket", "a file, a folder, or a pattern with * and ?",
			"correct it")
	}
	for _, path := range found {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			files = append(files, path)
		}
	}
	if len(files) == 0 {
		what := "no such file"
		if strings.ContainsAny(pattern, "*?[") {
			what = "no file of that pattern"
		}
		return nil, bad(pattern, "", what, "a file, a pattern or a folder of tables",
			"check the path; a schema's are relative to its file")
	}
	slices.SortFunc(files, natural)
	return files, nil
}

// Find lists the files of a file's name, a pattern or a folder of shards, in natural order. Folders in a folder of shards
// are looked into, too.
func Find(pattern string) (files []string, err error) {
	if info, err := os.Stat(pattern); err != nil || !info.IsDir() {
		return find(pattern)
	}
	entries, err := os.ReadDir(pattern)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && name[0] != '.' && name[0] != '_' {
			if more, err := inFolder(filepath.Join(pattern, name)); err == nil {
				files = append(files, more...)
			}
		}
	}
	own, err := inFolder(pattern)
	if err != nil && len(files) == 0 {
		return nil, err
	}
	files = append(own, files...)
	slices.SortFunc(files, natural)
	return files, nil
}

// inFolder lists the shards of a folder.
func inFolder(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := strings.TrimSuffix(strings.ToLower(e.Name()), ".gz")
		if !e.IsDir() && name[0] != '.' && name[0] != '_' && slices.Contains(endings, filepath.Ext(name)) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, bad(dir, "", "no table in the folder", "files that end in "+strings.Join(endings, ", "),
			"name the files, or rename them")
	}
	slices.SortFunc(files, natural)
	return files, nil
}

// natural compares names, runs of digits in them by their value.
func natural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		dx, dy := digits(x), digits(y)
		if dx == 0 || dy == 0 {
			if c := cmp.Compare(x[0], y[0]); c != 0 {
				return c
			}
			x, y = x[1:], y[1:]
			continue
		}
		nx, errX := strconv.ParseUint(x[:dx], 10, 64)
		ny, errY := strconv.ParseUint(y[:dy], 10, 64)
		if c := cmp.Compare(nx, ny); c != 0 && errX == nil && errY == nil {
			return c
		}
		if c := strings.Compare(x[:dx], y[:dy]); (errX != nil || errY != nil) && c != 0 {
			return c
		}
		x, y = x[dx:], y[dy:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

func digits(s string) (n int) {
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// formats are the values of Options.Format; txt and the like are read as text.
var formats = []string{"csv", "tsv", "parquet", "npy"}

// openPart opens one file by what it begins with.
func openPart(path string, opt Options) (part, error) {
	if opt.Format != "" && !slices.Contains(formats, opt.Format) {
		return nil, bad(path, "format", strconv.Quote(opt.Format), strings.Join(formats, ", "),
			"leave it out: files are told apart by what they begin with")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var head [6]byte
	n, _ := f.Read(head[:])
	f.Close()
	found, open := "text", func() (part, error) { return openText(path, opt) }
	switch begin := string(head[:n]); {
	case strings.HasPrefix(begin, "PAR1"):
		found, open = "parquet", func() (part, error) { return openParquet(path) }
	case begin == "\x93NUMPY":
		found, open = "npy", func() (part, error) { return openNPY(path, opt.Columns) }
	case strings.HasPrefix(begin, "\x89HDF"):
		return nil, bad(path, "", "an HDF5 file, which is not read", "CSV, TSV, Parquet or npy",
			"save it as one of these")
	}
	if opt.Format != "" && opt.Format != found && !(found == "text" && opt.Format[1:] == "sv") {
		return nil, bad(path, "format", found, opt.Format+", as the schema says",
			"correct the schema, or leave format out")
	}
	return open()
}
