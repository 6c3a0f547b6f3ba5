// Package tensor holds the arrays a model computes with and the kernels that
// work on them.
//
// Layers, losses and optimisers (package nn) see two things: Matrix, an opaque
// handle to rows of numbers, and Device, the operations on such handles. They
// never see a float. So a matrix may live in this process's memory, on a GPU,
// or be a float64 matrix of the reference device, and the same layer runs on
// all three:
//
//	CPU   float32, bfloat16 storage, SIMD, all cores     (cpu*.go over tensor/simd)
//	Ref   float64, plain loops, the definition            (ref*.go)
//	CUDA  later
//
// # Where to look
//
//	device.go, edgewise.go     the operations, what each computes; ref*.go computes them so, line by line
//	matrix.go, memory*.go      handles and views; where matrices live (region.go: the addresses), and are recycled
//	parallel.go, cpu.go        cores and chunks of rows; cpu_shares.go cuts sparse matrices, cpu_room.go plans memory
//	cpu_matmul.go              dense products: which file does which, by shape, type and what the processor has
//	cpu_sparse.go              sums over neighbours
//	cpu_attention*.go          GAT; cpu_dynamic.go GATv2; cpu_film.go, cpu_edgesum.go other layers that look at edges
//	cpu_element.go             what is done number by number, cpu_activate.go after a product, cpu_norm.go by rows
//	cpu_loss.go, cpu_optim.go  losses and optimisers; cpu_marks.go and cpu_dot.go what is measured
//	dropout.go                 draws, the same in each kernel
//	pack.go, zeros.go          rows with fewer bytes, for the wire
//
// A kernel foo of package simd is simd/foo.go, its definition in plain Go, simd/foo_amd64.go, which calls the assembly, and
// simd/asm/foo, which writes that. docs/kernels.md says what limits each, and what was tried.
//
// # Storage
//
// A Matrix is row-major with a stride, so that a range of rows or of columns is
// a view. bfloat16 is storage only: every kernel widens to float32, accumulates
// in float32 and rounds once, to nearest even, when it stores.
//
// Large matrices come from anonymous mappings advised to use huge pages. They
// are outside the garbage collector's heap, and what is freed serves for the
// next of any size, so after the first epoch an epoch allocates next to nothing.
//
// # Determinism
//
// Work is cut into chunks whose bounds depend on the shapes alone, never on the
// number of threads; partial sums are added in chunk order. A result is
// therefore the same, bit for bit, for any number of threads.
package tensor
