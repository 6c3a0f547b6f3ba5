package graph

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"starling/event"
)

// Mapped arrays can be lost while they are in use: if another program shortens the file, the kernel sends SIGBUS to
// the thread that reads beyond the new end, and Go ends with a dump of all goroutines.
// debug.SetPanicOnFault is no remedy here: it is set per goroutine, and the readers are dozens of goroutines
// of kernels, samplers and servers. So arrays are listed here, and ExitOnFault puts a signal handler in front
// of Go's (fault_linux.go) that knows the list: it writes which file it was, and ends the process with status
// 1, whatever code of whatever goroutine was reading, assembly included. Checkpoints are files that
// appear whole, so the last one is there.
//
// A file that is shortened inside its last page gives zeros and no signal. Shrunk finds that.

// mapping is one mapped file. The first four words are read by the signal handler.
type mapping struct {
	start, end uintptr
	text       *byte // what the handler writes
	textBytes  uintptr
}

// mostMapped is how many files the handler knows; later ones are Go's matter.
const mostMapped = 4096

var (
	// mappings is the handler's list; those with start = end = 0 are free.
	mappings [mostMapped]mapping
	// mappingCount is how many of the list were ever used.
	mappingCount uintptr
)

// mapped is what Go keeps of the same files.
var mapped struct {
	sync.Mutex
	files map[uintptr]mappedFile // by start
	rows  map[uintptr][]RowsFile // of arrays in pieces, by their first row
}

type mappedFile struct {
	path string
	info os.FileInfo
	text []byte // keeps what the handler writes alive
	slot int    // -1: none was free
}

// track lists a mapped file.
func track(b []byte, path string, info os.FileInfo) {
	if len(b) == 0 {
		return
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	f := mappedFile{path: path, info: info, slot: -1, text: []byte("starling: " + shrunk(path, info.Size()).Error() + "\n")}
	mapped.Lock()
	defer mapped.Unlock()
	if mapped.files == nil {
		mapped.files = map[uintptr]mappedFile{}
	}
	for i := range mappings {
		if mappings[i].end == 0 {
			mappings[i] = mapping{start: start, end: start + uintptr(len(b)), text: unsafe.SliceData(f.text), textBytes: uintptr(len(f.text))}
			mappingCount = max(mappingCount, uintptr(i+1))
			f.slot = i
			break
		}
	}
	mapped.files[start] = f
}

// untrack forgets a file before it is unmapped.
func untrack(b []byte) {
	if len(b) == 0 {
		return
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	mapped.Lock()
	defer mapped.Unlock()
	if f, ok := mapped.files[start]; ok && f.slot >= 0 {
		mappings[f.slot].end = 0
		mappings[f.slot].start = 0
	}
	delete(mapped.files, start)
}

// Shrunk is the error of a mapped file that is shorter now than when it was opened, whether or not
// what is missing was read since.
func Shrunk() error {
	mapped.Lock()
	defer mapped.Unlock()
	for _, f := range mapped.files {
		now, err := os.Stat(f.path)
		if err == nil && os.SameFile(now, f.info) && now.Size() < f.info.Size() {
			return shrunk(f.path, f.info.Size())
		}
	}
	return nil
}

func shrunk(path string, had int64) error {
	return fmt.Errorf("%s: the file was cut off while it was in use (it had %s); "+
		"copy or make it again, and go on from the last checkpoint", path, event.Tally(had, "byte"))
}

// RowsFile is where consecutive rows of an array are: from a place of a file on.
type RowsFile struct {
	Path   string
	Offset int64
	Rows   int
}

// trackRows lists the files of an array in pieces, whose rows are mapped behind each other.
func trackRows(rows []byte, files []RowsFile) {
	if len(rows) == 0 {
		return
	}
	mapped.Lock()
	defer mapped.Unlock()
	if mapped.rows == nil {
		mapped.rows = map[uintptr][]RowsFile{}
	}
	mapped.rows[uintptr(unsafe.Pointer(unsafe.SliceData(rows)))] = files
}

// untrackRows forgets the files of what is about to be unmapped.
func untrackRows(b []byte) {
	if len(b) == 0 {
		return
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	mapped.Lock()
	defer mapped.Unlock()
	for at := range mapped.rows {
		if at >= start && at < start+uintptr(len(b)) {
			delete(mapped.rows, at)
		}
	}
}

// FilesOf are the files that dense features are mapped from, in the order of their rows; none: they are in memory.
func FilesOf(f *Features) []RowsFile {
	var first, end uintptr
	switch {
	case len(f.F32) > 0:
		first = uintptr(unsafe.Pointer(&f.F32[0]))
		end = first + uintptr(4*len(f.F32))
	case len(f.BF16) > 0:
		first = uintptr(unsafe.Pointer(&f.BF16[0]))
		end = first + uintptr(2*len(f.BF16))
	default:
		return nil
	}
	mapped.Lock()
	defer mapped.Unlock()
	if list, ok := mapped.rows[first]; ok {
		return list
	}
	for start, m := range mapped.files {
		if first >= start && end <= start+uintptr(m.info.Size()) {
			return []RowsFile{{m.path, int64(first - start), f.Rows}}
		}
	}
	return nil
}
