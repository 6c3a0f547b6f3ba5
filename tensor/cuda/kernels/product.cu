// Products of float32 without tensor cores, where cuBLAS is not found: tiles of 128 x 128 by 256 threads, each of 8 x 8 numbers.
// Element (i, k) of the left side is at i·ai + k·ak, so that all four transpositions are one kernel. Where
// there are few tiles, the sum is split in pieces that are joined in order.
#include "product.cuh"

// What a thread brings of a tile of 128 lines and 16 steps: eight numbers, along the direction in which they
// lie beside each other.
template <class T> struct Tile {
	const T *p;
	i64 line, step; // strides
	int along;      // 1: steps are beside each other
	i64 first, lines;

	__device__ void at(int q, int &i, int &l) const {
		int t = q * 256 + threadIdx.x;
		i = along ? t / 16 : t % 128;
		l = along ? t % 16 : t / 128;
	}
	__device__ void fetch(float *x, i64 k, i64 end) const {
#pragma unroll
		for (int q = 0; q < 8; q++) {
			int i, l;
			at(q, i, l);
			x[q] = first + i < lines && k + l < end ? tofloat(p[(first + i) * line + (k + l) * step]) : 0.f;
		}
	}
	__device__ void keep(float (*to)[132], const float *x) const {
#pragma unroll
		for (int q = 0; q < 8; q++) {
			int i, l;
			at(q, i, l);
			to[l][i] = x[q];
		}
	}
};

// The next tile is on its way while this one is multiplied.
template <class A, class B> DEV void product(const ProductArgs &a) {
	__shared__ float as[2][16][132], bs[2][16][132];
	i64 i0 = blockIdx.x / a.tiles * 128, j0 = blockIdx.x % a.tiles * 128, k0 = blockIdx.z * a.piece, k1 = k0 + a.piece;
	if (k1 > a.k) k1 = a.k;
	Tile<A> ta = {(const A *)a.a, a.ai, a.ak, a.ak == 1, i0, a.m};
	Tile<B> tb = {(const B *)a.b, a.bj, a.bk, a.bk == 1, j0, a.n};
	int t = threadIdx.x, ty = t / 16, tx = t % 16, now = 0;
	float acc[8][8], fa[8], fb[8];
#pragma unroll
	for (int i = 0; i < 8; i++)
#pragma unroll
		for (int j = 0; j < 8; j++) acc[i][j] = 0;
	ta.fetch(fa, k0, k1);
	tb.fetch(fb, k0, k1);
	ta.keep(as[0], fa);
	tb.keep(bs[0], fb);
	__syncthreads();
	for (i64 k = k0; k < k1; k += 16) {
		bool more = k + 16 < k1;
		if (more) ta.fetch(fa, k + 16, k1), tb.fetch(fb, k + 16, k1);
#pragma unroll
		for (int l = 0; l < 16; l++) {
			float x[8], y[8];
			load<4>(x, &as[now][l][ty * 4]);
			load<4>(x + 4, &as[now][l][64 + ty * 4]);
			load<4>(y, &bs[now][l][tx * 4]);
			load<4>(y + 4, &bs[now][l][64 + tx * 4]);
#pragma unroll
			for (int i = 0; i < 8; i++)
#pragma unroll
				for (int j = 0; j < 8; j++) acc[i][j] += x[i] * y[j];
		}
		if (more) ta.keep(as[1 - now], fa), tb.keep(bs[1 - now], fb);
		now = 1 - now;
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < 8; i++)
#pragma unroll
		for (int j = 0; j < 8; j++) {
			i64 r = i0 + i / 4 * 64 + ty * 4 + i % 4, c = j0 + j / 4 * 64 + tx * 4 + j % 4;
			if (r >= a.m || c >= a.n) continue;
			if (a.part) a.part[(blockIdx.z * a.m + r) * a.n + c] = acc[i][j];
			else finishProduct(a, r, c, acc[i][j]);
		}
}

KERNEL(product_f32_f32, ProductArgs) { product<float, float>(a); }

// The sums of pieces, in order. k is how many there are.
KERNEL(product_join, ProductArgs) {
	i64 t = threadId();
	if (t >= a.m * a.n) return;
	double sum = 0;
#pragma unroll 16
	for (int p = 0; p < (int)a.k; p++) sum += a.part[p * a.m * a.n + t]; // many are on their way
	finishProduct(a, t / a.n, t % a.n, (float)sum);
}
