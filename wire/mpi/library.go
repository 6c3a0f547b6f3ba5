//go:build (darwin || linux) && (amd64 || arm64) && !static

package mpi

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// lib is the system's MPI library. Its functions are called by address, without
// cgo, so the build needs no MPI and no compiler.
//
// MPI fixes what functions mean but not what their handles are. Two families
// cover nearly all libraries: in Open MPI's, handles are addresses of the library's
// variables; in MPICH's (Intel's, Cray's and MVAPICH too) they are numbers. They
// are told apart by which symbols there are.
type lib struct {
	name                                      string
	init, rank, size, handler, words, version uintptr
	isend, issend, irecv, testsome, cancel    uintptr
	finalize                                  uintptr

	world, byte, returns uintptr // the communicator, the type, the way of handling errors
	numbers              bool    // handles are 32-bit numbers
	ignore               uintptr // the status that is not wanted

	// Memory that the library writes to. It lives as long as the process, so it does
	// not move while a call is under way.
	out *results
}

// results is where calls leave their results.
type results struct {
	request uintptr
	ints    [2]int32
	text    [2048]byte
	packed  []int32
	indices []int32
}

const (
	threadSerialized = 2 // MPI_THREAD_SERIALIZED: any thread, one at a time
	mpichCommWorld   = 0x44000000
	mpichByte        = 0x4c00010d
	mpichReturn      = 0x54000001
	mpichNoStatus    = 1
	libraryVariable  = "STARLING_MPI"
)

// libraryNames are what the library may be called, first the names of the launcher that
// has started this process.
func libraryNames() []string {
	if name := os.Getenv(libraryVariable); name != "" {
		return []string{name}
	}
	if runtime.GOOS == "darwin" {
		return []string{"libmpi.dylib", "/opt/homebrew/lib/libmpi.dylib", "/usr/local/lib/libmpi.dylib"}
	}
	ompi, mpich := []string{"libmpi.so.40"}, []string{"libmpich.so.12", "libmpi.so.12"}
	for _, v := range []string{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"} {
		if os.Getenv(v) != "" {
			return append(append(ompi, mpich...), "libmpi.so")
		}
	}
	return append(append(mpich, ompi...), "libmpi.so")
}

// environment keeps MPI from what a Go process cannot stand, unless the user has
// decided otherwise. Networks that read memory themselves remember which pages they
// have registered, and notice through the C library when pages are given back; Go
// gives pages back without it. And Go needs the signals of faults for itself.
var environment = [][2]string{
	{"OMPI_MCA_mpi_leave_pinned", "0"}, {"UCX_MEM_EVENTS", "n"}, {"FI_MR_CACHE_MONITOR",
		"disabled"}, {"UCX_ERROR_SIGNALS", ""},
}

func openLibrary() (*lib, error) {
	for _, m := range environment {
		if _, set := os.LookupEnv(m[0]); !set {
			os.Setenv(m[0], m[1])
		}
	}
	var tried []string
	for _, name := range libraryNames() {
		// Open MPI's plugins look for its symbols among the global ones.
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			tried = append(tried, err.Error())
			continue
		}
		l := &lib{name: name, out: &results{}}
		return l, l.find(handle)
	}
	return nil, fmt.Errorf("no MPI library was found: install Open MPI or MPICH, or name the library in %s (%s)",
		libraryVariable, strings.Join(tried, "; "))
}

// find looks up functions and handles.
func (l *lib) find(handle uintptr) (err error) {
	symbol := func(name string) uintptr {
		at, e := purego.Dlsym(handle, name)
		if e != nil && err == nil {
			err = fmt.Errorf("%s is no MPI library that we know: %w", l.name, e)
		}
		return at
	}
	for name, at := range map[string]*uintptr{"MPI_Init_thread": &l.init, "MPI_Comm_rank": &l.rank,
		"MPI_Comm_size":           &l.size,
		"MPI_Comm_set_errhandler": &l.handler, "MPI_Error_string": &l.words,
		"MPI_Isend": &l.isend, "MPI_Issend": &l.issend, "MPI_Irecv": &l.irecv,
		"MPI_Testsome": &l.testsome, "MPI_Cancel": &l.cancel, "MPI_Finalize": &l.finalize,
		"MPI_Get_library_version": &l.version} {
		*at = symbol(name)
	}
	if _, e := purego.Dlsym(handle, "ompi_mpi_comm_world"); e == nil {
		l.world, l.byte, l.returns = symbol("ompi_mpi_comm_world"), symbol("ompi_mpi_byte"), symbol("ompi_mpi_errors_return")
		return err
	}
	l.world, l.byte, l.returns, l.numbers, l.ignore = mpichCommWorld, mpichByte, mpichReturn, true, mpichNoStatus
	return err
}

// call calls a function; what it returns is MPI's error code.
func (l *lib) call(name string, fn uintptr, args ...uintptr) error {
	code, _, _ := purego.SyscallN(fn, args...)
	if int32(code) == 0 {
		return nil
	}
	if r, _, _ := purego.SyscallN(l.words, code, address(&l.out.text), address(&l.out.ints[1])); int32(r) != 0 {
		return fmt.Errorf("%s: error %d", name, int32(code))
	}
	return fmt.Errorf("%s: %s", name, l.text())
}

func (l *lib) text() string {
	s, _, _ := strings.Cut(string(l.out.text[:]), "\x00")
	return strings.TrimSpace(s)
}

func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// start initialises MPI.
func (l *lib) start() (rank, size int, err error) {
	given := &l.out.ints[0]
	if err := l.call("MPI_Init_thread", l.init, 0, 0, threadSerialized, address(given)); err != nil {
		return 0, 0, err
	}
	if *given < threadSerialized {
		return 0, 0, errors.New("this MPI library lets only the main thread call it; we need MPI_THREAD_SERIALIZED: " +
			"use one that was built with threads")
	}
	if err := l.call("MPI_Comm_set_errhandler", l.handler, l.world, l.returns); err != nil {
		return 0, 0, err
	}
	for _, f := range []struct {
		name string
		fn   uintptr
		into *int
	}{{"MPI_Comm_rank", l.rank, &rank}, {"MPI_Comm_size", l.size, &size}} {
		if err := l.call(f.name, f.fn, l.world, address(given)); err != nil {
			return 0, 0, err
		}
		*f.into = int(*given)
	}
	if l.call("MPI_Get_library_version", l.version, address(&l.out.text), address(given)) == nil {
		l.name, _, _ = strings.Cut(l.text(), "\n")
		l.name, _, _ = strings.Cut(l.name, ",")
		l.name = strings.Join(strings.Fields(l.name), " ")
	}
	return rank, size, nil
}

func (l *lib) library() string { return l.name }

func (l *lib) send(buf []byte, to, tag int, sync bool) (request, error) {
	name, fn := "MPI_Isend", l.isend
	if sync {
		name, fn = "MPI_Issend", l.issend
	}
	err := l.call(name, fn, address(unsafe.SliceData(buf)), uintptr(len(buf)), l.byte, uintptr(to), uintptr(tag),
		l.world, address(&l.out.request))
	return l.request(), err
}

func (l *lib) receive(buf []byte, from, tag int) (request, error) {
	err := l.call("MPI_Irecv", l.irecv, address(unsafe.SliceData(buf)), uintptr(len(buf)), l.byte, uintptr(from),
		uintptr(tag), l.world, address(&l.out.request))
	return l.request(), err
}

// request is the one that was just made.
func (l *lib) request() request {
	if l.numbers {
		return request(*(*uint32)(unsafe.Pointer(&l.out.request)))
	}
	return request(l.out.request)
}

// test returns the indices of requests that have ended, which are forgotten.
func (l *lib) test(reqs []request) ([]int32, error) {
	if len(reqs) == 0 {
		return nil, nil
	}
	o := l.out
	for len(o.indices) < len(reqs) {
		o.indices, o.packed = make([]int32, 2*len(reqs)), make([]int32, 2*len(reqs))
	}
	at := address(unsafe.SliceData(reqs))
	if l.numbers {
		for i, r := range reqs {
			o.packed[i] = int32(r)
		}
		at = address(&o.packed[0])
	}
	err := l.call("MPI_Testsome", l.testsome, uintptr(len(reqs)), at, address(&o.ints[0]), address(&o.indices[0]),
		l.ignore)
	runtime.KeepAlive(reqs)
	if n := int(o.ints[0]); err == nil && n > 0 { // negative: none of them was active
		return o.indices[:n], nil
	}
	return nil, err
}

// stop takes back a receive. It ends then, as test returns, empty or filled: one that
// is being filled already cannot be taken back.
func (l *lib) stop(r request) error {
	l.out.request = uintptr(r)
	return l.call("MPI_Cancel", l.cancel, address(&l.out.request))
}

func (l *lib) finish() error { return l.call("MPI_Finalize", l.finalize) }
