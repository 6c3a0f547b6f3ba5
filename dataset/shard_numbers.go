package dataset

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Shards are numbered by those that write them: part-0.csv, part-1.csv … or part-00000-of-00010.parquet. A number that
// is missing is a shard that was not copied.

// numberedName is a name of a file, and a number in it.
type numberedName struct {
	path          string
	before, after string // the number, in the name
	digits        string
	n             int64
}

var (
	digitRuns = regexp.MustCompile(`[0-9]+`)
	ofTotal   = regexp.MustCompile(`^[-_.]?of[-_.]?([0-9]+)`)
	ofDate    = regexp.MustCompile(`(19|20)[0-9]{2}[-_.]([0-9]{1,2}[-_.])?$`) // before a month or a day
)

// mostDigits is the length of numbers that count shards; longer ones are times or hashes.
const mostDigits = 9

// checkNumbers refuses a list of shards that has gaps in their numbers. Names whose lowest number is not 0 or 1, as
// years, and names that differ in more than one number, are not numbered one after the other.
func checkNumbers(src string, paths []string) error {
	groups, order := map[string][]numberedName{}, []string{}
	for _, path := range paths {
		for _, x := range numbersIn(path) {
			key := filepath.Dir(path) + "\x00" + x.before + "\x00" + ending.ReplaceAllString(x.after, "")
			if groups[key] == nil {
				order = append(order, key)
			}
			groups[key] = append(groups[key], x)
		}
	}
	for _, key := range order {
		if err := checkGroup(src, groups[key]); err != nil {
			return err
		}
	}
	return nil
}

// ending is the end of a file's name, in which shards may differ: .csv and .csv.gz.
var ending = regexp.MustCompile(`(?i)(\.[a-z]+)+$`)

// numbersIn are the numbers in the name of a file.
func numbersIn(path string) (list []numberedName) {
	name := filepath.Base(path)
	for _, at := range digitRuns.FindAllStringIndex(name, -1) {
		x := numberedName{path: path, before: name[:at[0]], after: name[at[1]:], digits: name[at[0]:at[1]]}
		var err error
		if x.n, err = strconv.ParseInt(x.digits, 10, 64); err == nil && len(x.digits) <= mostDigits && !ofDate.MatchString(x.before) {
			list = append(list, x)
		}
	}
	return list
}

// checkGroup refuses files that differ in one number, if some number is missing.
func checkGroup(src string, group []numberedName) error {
	slices.SortFunc(group, func(a, b numberedName) int { return cmp.Compare(a.n, b.n) })
	first, last := group[0], group[len(group)-1]
	low, high := first.n, last.n
	if m := ofTotal.FindStringSubmatch(first.after); m != nil { // part-00000-of-00010
		total, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || last.n > total {
			return nil
		}
		if low, high = 0, total-1; first.n > 0 && last.n == total {
			low, high = 1, total
		}
	} else if low > 1 || len(group) == 1 {
		return nil
	}
	next, near := low, first
	for _, x := range group {
		if x.n > next {
			break
		}
		if x.n == next {
			next, near = next+1, x
		}
	}
	if next > high {
		return nil
	}
	missing := near.before + withNumber(near.digits, next) + near.after
	return badFile(src, "", fmt.Sprintf("no %s, beside %s", missing, filepath.Base(last.path)), "all shards, as their names count them",
		fmt.Sprintf("add it; or, if there is none, rename the files, or name those there are by a pattern (%s)",
			filepath.Join(filepath.Dir(near.path), near.before+"*")))
}

// withNumber writes a number as wide as another, if that begins with zeros.
func withNumber(like string, n int64) string {
	if strings.HasPrefix(like, "0") {
		return fmt.Sprintf("%0*d", len(like), n)
	}
	return fmt.Sprint(n)
}
