package dataset

import (
	"slices"

	"starling/dataset/table"
)

// category is a column of words, each of which becomes a column of zeros and ones. A missing
// word is a row of zeros.
type category struct {
	name  string
	codes []int32 // per row, in the order of first appearance; -1: missing
	index map[string]int32
	words []string // sorted by settle
	rank  []int32  // of a code among the sorted words
}

func newCategory(name string) category { return category{name: name, index: map[string]int32{}} }

func (c *category) add(word string) {
	if table.IsMissing(word) {
		c.codes = append(c.codes, -1)
		return
	}
	code, ok := c.index[word]
	if !ok {
		code = int32(len(c.words))
		c.index[word] = code
		c.words = append(c.words, word)
	}
	c.codes = append(c.codes, code)
}

// settle sorts the words, so that they do not depend on the order of the rows, and returns
// how many there are.
func (c *category) settle() int {
	slices.Sort(c.words)
	c.rank = make([]int32, len(c.words))
	for i, word := range c.words {
		c.rank[c.index[word]] = int32(i)
	}
	return len(c.words)
}
