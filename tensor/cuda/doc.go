// Package cuda is the device of NVIDIA's cards. The driver's library (libcuda.so.1) is opened when a
// device is, by purego: the same binary runs where there is none, and nothing of the CUDA toolkit is
// needed, neither to build nor to run.
//
// Kernels are CUDA C (kernels/*.cu). NVRTC compiles them to PTX for compute capability 8.0, which is
// committed and embedded (go generate), and which the driver compiles for the card it has. Products use
// cuBLAS where it is found, and a kernel of ours where it is not.
//
//	driver   the library: calls, errors in words
//	card     what all devices of one card share: context, compiled kernels
//	Device   one worker's: a stream, memory from the driver's pool, a cuBLAS handle
//
// Operations are queued on the device's stream. No kernel adds floats atomically, so two runs are equal
// to the bit. Rows of very many entries are cut in pieces, whose sums are joined in order (plan.go).
package cuda
