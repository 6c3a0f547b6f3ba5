// Package tensor has the arrays a model computes with, and what can be done with them.
//
// Layers, losses and optimisers (package nn) see two things: Matrix, an opaque handle to
// rows of numbers, and Device, the operations on such handles. They never see a float. So a
// matrix may live in this process's memory, on a GPU, or be a float64 matrix of the
// reference device, and the same layer runs on all three:
//
//	tensor/cpu   float32, bfloat16 storage, SIMD, all cores
//	tensor/ref   float64, plain loops, the definition
//
// # Where to look
//
//	device.go, edgewise.go   the operations, and what each computes; tensor/ref computes them so, line by line
//	matrix.go, sparse.go     handles and views: Matrix, Index, Sparse
//	buffer.go                what handles point into, for devices only
//	host.go, pack.go         where the host meets the device: bytes, sums, rows in the form they travel in
//	dropout.go, draw/        draws, the same on each device
//	check.go                 what callers must keep to
//	devicetest/              what every device must pass
//
// # Storage
//
// A Matrix is row-major with a stride, so that a range of rows or of columns is a view.
// bfloat16 is storage only: every kernel widens to float32, accumulates in float32 and
// rounds once, to nearest even, when it stores.
//
// # Determinism
//
// A result is the same, bit for bit, whenever it is computed again on a device, with any
// number of threads.
package tensor
