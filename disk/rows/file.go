package rows

import (
	"fmt"
	"os"
)

// block is what requests past the page cache begin and end at.
const block = 4096

// scratchName stands for the file of packed rows, which has no name, in messages.
const scratchName = "packed rows"

// File is where rows are: row k of it, counted from 0, is number First+k.
type File struct {
	Path   string
	Offset int64 // of the first row
	First  uint32
	Rows   int
}

// opened is a file that rows are read from.
type opened struct {
	File
	f    *os.File
	size int64
}

// openFiles opens files and checks that they have their rows.
func openFiles(files []File, width int) (list []opened, err error) {
	for _, x := range files {
		f, err := openDirect(x.Path)
		if err != nil {
			return list, err
		}
		o := opened{File: x, f: f}
		list = append(list, o)
		info, err := f.Stat()
		if err != nil {
			return list, err
		}
		list[len(list)-1].size = info.Size()
		if end := x.Offset + int64(x.Rows)*int64(width); info.Size() < end {
			return list, fmt.Errorf("%s has %d bytes, and its rows end at byte %d: copy or make it again", x.Path,
				info.Size(), end)
		}
	}
	return list, nil
}

// up rounds to whole blocks.
func up(n int64) int64 { return (n + block - 1) / block * block }
