package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/graph"
)

// TestShardNumbers: a gap in the numbers of shards is named, and what is no numbering is left alone.
func TestShardNumbers(t *testing.T) {
	for files, missing := range map[string]string{
		"part-0.csv part-1.csv.gz part-2.csv":                                             "",
		"part-0.csv part-2.csv":                                                           "part-1.csv",
		"part-1.csv part-2.csv part-4.csv.gz":                                             "part-3.csv",
		"edges-00.csv edges-01.csv edges-03.csv":                                          "edges-02.csv",
		"part-9.csv part-8.csv part-1.csv":                                                "part-2.csv",
		"p-00000-of-00003.csv p-00001-of-00003.csv p-00002-of-00003.csv":                  "",
		"p-00000-of-00003.csv p-00001-of-00003.csv":                                       "p-00002-of-00003.csv",
		"p-00001-of-00003.csv p-00002-of-00003.csv":                                       "p-00000-of-00003.csv",
		"p_1_of_2.csv p_2_of_2.csv":                                                       "",
		"p-2-of-4.csv":                                                                    "p-0-of-4.csv",
		"part-00000-9c6f1a2b-c000.snappy.parquet part-00002-9c6f1a2b-c000.snappy.parquet": "part-00001-9c6f1a2b-c000.snappy.parquet",
		"part-00000-aa11.parquet part-00002-bb22.parquet":                                 "", // writers of their own
		"edges-2019.csv edges-2021.csv":                                                   "", // years
		"day-2024-01-01.csv day-2024-03-05.csv":                                           "",
		"day-2024-01-01.csv day-2024-01-03.csv":                                           "",
		"2024_1.csv 2024_3.csv":                                                           "",
		"a/part-0.csv b/part-2.csv":                                                       "",
		"a.csv b.csv":                                                                     "",
		"web.csv":                                                                         "",
		"v2-part-0.csv v2-part-1.csv":                                                     "",
		"0.csv 00000000012345.csv":                                                        "",
	} {
		err := checkNumbers("web", strings.Fields(files))
		switch {
		case missing == "" && err != nil:
			t.Errorf("%s: %v", files, err)
		case missing != "" && (err == nil || !strings.Contains(err.Error(), "found no "+missing+", beside ") ||
			strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "by a pattern (")):
			t.Errorf("%s: %v, want %s", files, err, missing)
		}
	}
}

// TestShardsByPattern: who names the files by a pattern means those.
func TestShardsByPattern(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"part-0.csv", "part-2.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("1,2\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := EdgeShards(dir); !errors.Is(err, graph.ErrInput) {
		t.Error(err)
	}
	if files, _, err := EdgeShards(filepath.Join(dir, "part-*")); err != nil || len(files) != 2 {
		t.Error(files, err)
	}
}
