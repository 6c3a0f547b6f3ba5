// What the kernels of products share: their arguments, and what follows a product.
#pragma once
#include "common.cuh"

#ifndef HOST_BUILD
// Arguments that functions read which are called stay where they are.
#undef KERNEL
#define KERNEL(name, Args) extern "C" __global__ void name(const __grid_constant__ Args a)
#endif

struct ProductArgs {
	const char *a, *b;
	i64 ai, ak, bk, bj; // strides
	i64 m, n, k, piece;
	float *part; // pieces x m x n, or none
	Mat dst;
	i64 add;
	Epi epi;
	i64 tiles, area, pieces; // tiles in the direction of columns, and in all; pieces of the sum
	i64 follows;             // something is added, or the epilogue is not empty
	i64 unitA, unitB, wide;  // bytes of the factors that may be copied at once; numbers of dst that may be stored at once
};

__device__ __noinline__ void finishProduct(const ProductArgs &a, i64 i, i64 j, float x) {
	if (a.add) x += get(a.dst, i, j);
	Draws d = drawsOf(a.epi.drop, i);
	put(a.dst, i, j, finish(a.epi, d, (u32)j, x));
}
