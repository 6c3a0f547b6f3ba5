// What the kernels of products share: their arguments, and what follows a product.
#pragma once
#include "common.cuh"

struct ProductArgs {
	const char *a, *b;
	i64 ai, ak, bk, bj; // strides
	i64 m, n, k, piece;
	float *part; // pieces x m x n, or none
	Mat dst;
	i64 add;
	Epi epi;
	i64 tiles;               // in the direction of columns
	i64 fastA, fastB, pairs; // four numbers may be read at once of the factors, two written to dst
};

__device__ __noinline__ void finishProduct(const ProductArgs &a, i64 i, i64 j, float x) {
	if (a.add) x += get(a.dst, i, j);
	Draws d = drawsOf(a.epi.drop, i);
	put(a.dst, i, j, finish(a.epi, d, (u32)j, x));
}
