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
// # Storage
//
// A Matrix is row-major with a stride, so that a range of rows or of columns is
// a view. bfloat16 is storage only: every kernel widens to float32, accumulates
// in float32 and rounds once, to nearest even, when it stores.
//
// Large matrices come from anonymous mappings advised to use huge pages. They
// are outside the garbage collector's heap and are recycled by size, so after
// the first epoch an epoch allocates next to nothing.
//
// # Determinism
//
// Work is cut into chunks whose bounds depend on the shapes alone, never on the
// number of threads; partial sums are added in chunk order. A result is
// therefore the same, bit for bit, for any number of threads.
package tensor
