package train

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/wire"
)

// manyEdges is a graph of n edges, whose sources no memory is taken for.
func manyEdges(t *testing.T, n int64) *graph.CSR {
	t.Helper()
	flags := syscall.MAP_ANON | syscall.MAP_PRIVATE | syscall.MAP_NORESERVE
	b, err := syscall.Mmap(-1, 0, int(4*n), syscall.PROT_NONE, flags)
	if err != nil {
		t.Skipf("no address space for %d bytes: %v", 4*n, err)
	}
	t.Cleanup(func() { syscall.Munmap(b) })
	return &graph.CSR{Indptr: []int64{0, n}, Indices: unsafe.Slice((*uint32)(unsafe.Pointer(&b[0])), n)}
}

// TestPartsOfTooManyEdges: a worker's numbers of edges have 32 bits, and would wrap around: a part of more is refused,
// also in a dry run. Batches number the edges of blocks alone.
func TestPartsOfTooManyEdges(t *testing.T) {
	ends := wire.NewGroup(1, wire.DefaultOptions())
	defer ends[0].Close()
	for _, c := range []struct {
		edges   int64
		model   string
		batches *BatchSettings
		refused bool
	}{{1<<32 - 1, "sage", nil, false}, {1 << 32, "sage", nil, true}, {1<<33 + 5, "sage", nil, true},
		{1<<33 + 5, "sage", &BatchSettings{}, false}, {1<<33 + 5, "gat", &BatchSettings{}, true}} {
		part := &partition.Part{Dir: "part-0", Book: &partition.Book{Parts: 1, Train: 1}, In: manyEdges(t, c.edges),
			Features: &graph.Features{}, Labels: &graph.Labels{}}
		s := &Site{Part: part, End: ends[0], Opt: Options{Model: nn.Config{Model: c.model}, Batches: c.batches}}
		err := s.check()
		refused := errors.Is(err, graph.ErrInput) && strings.Contains(err.Error(), "with more workers")
		if refused != c.refused || !refused && err != nil {
			t.Errorf("%d edges of %s: %v", c.edges, c.model, err)
		}
	}
}
