package dataset

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zip"

	"starling/event"
)

// Splits of OGB datasets, text or saved by torch.

// splits reads the only folder of split/, or the one that Split names.
func (o *ogb) splits(r *read, n int) error {
	found := matching(filepath.Join(o.dir, "split"), "*")
	found = slices.DeleteFunc(found, func(p string) bool {
		info, err := os.Stat(p)
		return err != nil || !info.IsDir()
	})
	if len(found) == 0 {
		r.notes = append(r.notes, "no split folder: the dataset has no splits")
		return nil
	}
	if len(found) > 1 {
		return badFile(filepath.Join(o.dir, "split"), "", event.Tally(len(found), "split"), "one",
			"move the others away")
	}
	dir := found[0]
	if _, missing := os.Stat(filepath.Join(dir, "split_dict.pt")); missing == nil {
		return o.splitDict(r, filepath.Join(dir, "split_dict.pt"), n)
	}
	for _, s := range []struct {
		name string
		ids  *[]uint32
	}{{"train", &r.splits.Train}, {"valid", &r.splits.Val}, {"test", &r.splits.Test}} {
		path := filepath.Join(dir, s.name+".csv.gz")
		if _, missing := os.Stat(path); missing != nil {
			path = filepath.Join(dir, s.name+".csv")
		}
		if err := lineBlocks(path, maxLine, o.opt, parseIDs, func(x []uint32) error {
			*s.ids = append(*s.ids, x...)
			return nil
		}); err != nil {
			return err
		}
		if err := checkSplit(path, s.ids, n); err != nil {
			return err
		}
		if len(*s.ids) == 0 {
			return badFile(path, "", "no vertex", "at least one", "download the dataset again")
		}
	}
	return o.labelled(r)
}

// parseIDs reads one vertex per line.
func parseIDs(data []byte) (ids []uint32, bad *lineError) {
	var line int64
	for row := range bytes.Lines(data) {
		line++
		if row = bytes.TrimSpace(row); len(row) == 0 {
			continue
		}
		x, ok := smallNumber(row)
		if !ok {
			return nil, &lineError{line: line, found: fmt.Sprintf("%.40q", row), want: "a vertex number"}
		}
		ids = append(ids, x)
	}
	return ids, nil
}

// checkSplit sorts a split and refuses absent and repeated vertices.
func checkSplit(path string, ids *[]uint32, n int) error {
	slices.Sort(*ids)
	for i, v := range *ids {
		if int(v) >= n || i > 0 && (*ids)[i-1] == v {
			return badFile(path, "", fmt.Sprintf("vertex %d", v), fmt.Sprintf("0 to %d, each once", n-1),
				"the split is of another dataset: download it again")
		}
	}
	return nil
}

// labelled drops vertices without a label from the splits: papers100M has none.
func (o *ogb) labelled(r *read) error {
	if r.labels == nil {
		return nil
	}
	for _, ids := range []*[]uint32{&r.splits.Train, &r.splits.Val, &r.splits.Test} {
		before := len(*ids)
		*ids = slices.DeleteFunc(*ids, func(v uint32) bool { return !r.labels.Has(int(v)) })
		if d := before - len(*ids); d > 0 {
			r.notes = append(r.notes, event.Counted(d, "vertex")+" without a label left out of a split")
		}
	}
	return nil
}

// splitDict reads a dict of numpy arrays that torch.save wrote: a zip with a
// pickle in it.
func (o *ogb) splitDict(r *read, path string, n int) error {
	bad := func(found string) error {
		return badFile(path, "", found, "a dict of the numpy arrays train, valid and test",
			"save it again with numpy arrays, or as train.csv.gz, valid.csv.gz and test.csv.gz")
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		return bad(err.Error())
	}
	defer z.Close()
	at := slices.IndexFunc(z.File, func(f *zip.File) bool { return strings.HasSuffix(f.Name, "/data.pkl") })
	if at < 0 || z.File[at].UncompressedSize64 > min(maxPickleBytes, z.File[at].CompressedSize64*maxInflate+1024) {
		return bad("no data.pkl")
	}
	f, err := z.File[at].Open()
	if err != nil {
		return bad(err.Error())
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPickleBytes))
	if err != nil {
		return bad(err.Error())
	}
	v, err := unpickle(b)
	if err != nil {
		return bad(err.Error())
	}
	d, ok := v.(*dict)
	if !ok {
		return bad(errShape.Error())
	}
	for _, s := range []struct {
		name string
		ids  *[]uint32
	}{{"train", &r.splits.Train}, {"valid", &r.splits.Val}, {"test", &r.splits.Test}} {
		a, err := asArray(d.get(s.name))
		if err == nil {
			*s.ids, err = a.uint32s()
		}
		if err != nil {
			return bad(s.name + ": " + err.Error())
		}
		if err := checkSplit(path, s.ids, n); err != nil {
			return err
		}
	}
	return o.labelled(r)
}
