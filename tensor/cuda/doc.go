// Package cuda is the device of NVIDIA's GPUs. The driver's library (libcuda.so.1) is opened when a
// device is, by purego: the same binary runs where there is none, and nothing of the CUDA toolkit is
// needed, neither to build nor to run.
//
// Kernels are CUDA C (kernels/*.cu). NVRTC compiles them to PTX for compute capability 8.0, which is
// committed and embedded (go generate), and which the driver compiles for the GPU it has. Products use
// cuBLAS where it is found, and a kernel of ours where it is not.
//
// Each layer imports only the ones above it in this list:
//
//	driver     the library: calls, errors in words; GPUs, their contexts and compiled kernels
//	execution  one worker's stream: its thread, launches, graphs of them; the first error, which stays
//	memory     its memory: arena and pools on the GPU, pinned on the host, copies, the lane beside the stream
//	cuda       Device: the operations, by file as in tensor/cpu; cuBLAS, NCCL, what workers read of each other
//
// Operations are queued on the device's stream. No kernel adds floats atomically, so two runs are equal
// to the bit. Rows of very many entries are cut in pieces, whose sums are joined in order (plan.go).
package cuda
