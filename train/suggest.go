package train

import "strings"

// Suggest names what was perhaps meant: the nearest, and of those one as long; or the
// shortest name that the word is a part of.
func Suggest(word string, known []string) string {
	best, score := "", 3
	for _, k := range known {
		if d := distance(word, k); d < score || d == score && best != "" && len(best) != len(word) &&
			len(k) == len(word) {
			best, score = k, d
		}
	}
	for _, k := range known {
		if score == 3 && len(word) >= 3 && strings.Contains(k, word) && (best == "" || len(k) < len(best)) {
			best = k
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// distance is Damerau's: the letters left out, added, changed, or swapped with the
// next, that turn a into b.
func distance(a, b string) int {
	d := make([][]int, len(a)+1) // d[i][j] of the first i and j letters
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			if i == 0 || j == 0 {
				d[i][j] = i + j
				continue
			}
			change := d[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			d[i][j] = min(change, d[i-1][j]+1, d[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
