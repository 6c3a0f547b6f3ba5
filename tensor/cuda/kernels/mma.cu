// Products on tensor cores: tiles of 128 x 128, or 128 x 64, by eight warps that each have 64 x 32 or 32 x 32 numbers.
// Element (i, k) of the left side is at i·ai + k·ak, as in product.cu, and long sums are split in pieces likewise.
//
// Tiles lie in shared memory as words along the sum: one float32, or two bfloat16. So the fragments of both
// instructions (m16n8k8 of tf32, m16n8k16 of bfloat16) are the same words, and one loop is all kinds:
//
//   TF32   factors are rounded to 10 bits
//   SPLIT  x = hi + lo, each of 10 bits: hi·hi + hi·lo + lo·hi has the error of float32's own products (2^-21 of a
//          term). Tensor cores round sums towards zero, so they add up 16 terms only, and float32 adds those.
//   HALF   bfloat16
#include "product.cuh"

enum Kind { TF32, SPLIT, HALF };

#ifndef HOST_BUILD
DEV void mma8(float *c, const u32 *a, const u32 *b) {
	asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

DEV void mma16(float *c, const u32 *a, const u32 *b) {
	asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

DEV u32 round10(float x) {
	u32 y;
	asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
	return y;
}
#endif

// Words of numbers that follow each other along the sum, as they came from memory.
DEV u32 wordOf(int kind, float x, float y) {
	if (kind == TF32) return round10(x);
	return kind == SPLIT ? __float_as_uint(x) : pair(x, y);
}

DEV u32 wordOf(int, bf16 x, bf16 y) { return (u32)x.bits | (u32)y.bits << 16; }

// Four numbers beside each other.
DEV void four(float *x, const float *p) { load<4>(x, p); }

DEV void four(bf16 *x, const bf16 *p) {
	uint2 v = *(const uint2 *)p;
	x[0].bits = (u16)v.x, x[1].bits = (u16)(v.x >> 16), x[2].bits = (u16)v.y, x[3].bits = (u16)(v.y >> 16);
}

DEV float zeroOf(float) { return 0.f; }
DEV bf16 zeroOf(bf16) { bf16 z = {0}; return z; }

const int pitch = 20; // words from one line of a tile to the next: fragments are then in 32 different banks

// What a block brings of a factor: L lines (rows of the left one, columns of the right one) of 16 words. Each thread
// has four words at a time: of one line where these are beside each other in memory, else of four lines.
template <class T, int kind, int L> struct Panel {
	static const int steps = kind == HALF ? 2 : 1; // numbers of a word
	static const int units = L / 64;
	const T *p;
	i64 line, step; // strides
	bool along, fast;
	i64 first, lines;
	T x[units][steps][4]; // as they came: they are made words when the tile before has been used

	__device__ void place(int q, int &i, int &word) const {
		int u = q * 256 + threadIdx.x;
		i = along ? u / 4 : u / 16 * 4;
		word = along ? u % 4 * 4 : u % 16;
	}
	// Four numbers from line r and step c on, in the direction in which they are beside each other.
	__device__ void fetchFour(T *to, i64 r, i64 c, i64 end) const {
		const T *from = along ? p + r * line + c : p + c * step + r;
		i64 left = along ? end - c : lines - r;
		bool any = along ? r < lines : c < end;
		if (fast && any && left >= 4) four(to, from);
		else
#pragma unroll
			for (int n = 0; n < 4; n++) to[n] = any && n < left ? from[n] : zeroOf(T());
	}
	__device__ void fetch(i64 k, i64 end) {
#pragma unroll
		for (int q = 0; q < units; q++) {
			int i, word;
			place(q, i, word);
#pragma unroll
			for (int s = 0; s < steps; s++)
				fetchFour(x[q][s], first + i, k + word * steps + (along ? 4 * s : s), end);
		}
	}
	__device__ void keep(u32 (*to)[pitch]) const {
#pragma unroll
		for (int q = 0; q < units; q++) {
			int i, word;
			place(q, i, word);
			const T *y = x[q][0]; // steps · 4 numbers
			u32 w[4];
#pragma unroll
			for (int j = 0; j < 4; j++)
				w[j] = along ? wordOf(kind, y[j * steps], y[j * steps + steps - 1]) : wordOf(kind, y[j], y[(steps - 1) * 4 + j]);
			if (along) *(uint4 *)&to[i][word] = make_uint4(w[0], w[1], w[2], w[3]);
			else
#pragma unroll
				for (int j = 0; j < 4; j++) to[i + j][word] = w[j];
		}
	}
};

// The words of a fragment: of the left factor rows g and g + 8, of the right one column g; words t and t + 4.
DEV void left(u32 *a, u32 (*from)[pitch], int g, int t) {
	a[0] = from[g][t], a[1] = from[g + 8][t], a[2] = from[g][t + 4], a[3] = from[g + 8][t + 4];
}

DEV void right(u32 *b, u32 (*from)[pitch], int g, int t) { b[0] = from[g][t], b[1] = from[g][t + 4]; }

template <int N> DEV void split(u32 *hi, u32 *lo) {
#pragma unroll
	for (int i = 0; i < N; i++) {
		u32 x = hi[i];
		hi[i] = x & 0xffffe000u;
		lo[i] = __float_as_uint(__uint_as_float(x) - __uint_as_float(hi[i]));
	}
}

// The products of a tile of 16 words, by a warp.
template <int kind, int MT, int NT> DEV void tile(float (*acc)[NT][4], u32 (*as)[pitch], u32 (*bs)[pitch], int g, int t) {
	u32 b[2][NT][2], bl[2][NT][2];
#pragma unroll
	for (int s = 0; s < 2; s++)
#pragma unroll
		for (int n = 0; n < NT; n++) {
			right(b[s][n], bs + 8 * n, g, 8 * s + t);
			if (kind == SPLIT) split<2>(b[s][n], bl[s][n]);
		}
#pragma unroll
	for (int m = 0; m < MT; m++) {
		u32 a[2][4], al[2][4];
#pragma unroll
		for (int s = 0; s < 2; s++) {
			left(a[s], as + 16 * m, g, 8 * s + t);
			if (kind == SPLIT) split<4>(a[s], al[s]);
		}
#pragma unroll
		for (int n = 0; n < NT; n++) {
			float sum[4] = {0.f, 0.f, 0.f, 0.f}, *c = kind == SPLIT ? sum : acc[m][n];
#pragma unroll
			for (int s = 0; s < 2; s++) {
				if (kind == SPLIT) mma8(c, al[s], b[s][n]), mma8(c, a[s], bl[s][n]);
				if (kind == HALF) mma16(c, a[s], b[s][n]);
				else mma8(c, a[s], b[s][n]);
			}
			if (kind == SPLIT)
#pragma unroll
				for (int i = 0; i < 4; i++) acc[m][n][i] += sum[i];
		}
	}
}

// What follows two numbers beside each other. It is called: in place it would be there 32 times.
__device__ __noinline__ void finishPair(const ProductArgs &a, i64 r, i64 c, float x, float y) {
	bool both = c + 1 < a.n;
	if (a.add) {
		x += get(a.dst, r, c);
		if (both) y += get(a.dst, r, c + 1);
	}
	float f[2];
	factors<2>(f, a.epi.drop, r, (u32)c);
	if (a.epi.bias) {
		x += a.epi.bias[c];
		if (both) y += a.epi.bias[c + 1];
	}
	put(a.dst, r, c, activate(a.epi.act, x) * f[0]);
	if (both) put(a.dst, r, c + 1, activate(a.epi.act, y) * f[1]);
}

// Two numbers that nothing follows.
template <class T> DEV void storePair(T *to, bool both, bool pairs, float x, float y) {
	float z[2] = {x, y};
	if (both && pairs) store<2>(to, z);
	else {
		store<1>(to, z);
		if (both) store<1>(to + 1, z + 1);
	}
}

// The next tile is on its way while this one is multiplied. A warp has 16·MT x 8·NT numbers, a block WM x WN warps.
template <class A, class B, int kind, int MT, int NT, int WM, int WN> DEV void product(const ProductArgs &a) {
	const int M = 16 * MT * WM, N = 8 * NT * WN, deep = kind == HALF ? 32 : 16;
	alignas(16) __shared__ u32 as[2][M][pitch];
	alignas(16) __shared__ u32 bs[2][N][pitch];
	i64 i0 = blockIdx.x / a.tiles * M, j0 = blockIdx.x % a.tiles * N, k0 = blockIdx.z * a.piece, k1 = k0 + a.piece;
	if (k1 > a.k) k1 = a.k;
	Panel<A, kind, M> pa = {(const A *)a.a, a.ai, a.ak, a.ak == 1, a.fastA != 0, i0, a.m};
	Panel<B, kind, N> pb = {(const B *)a.b, a.bj, a.bk, a.bk == 1, a.fastB != 0, j0, a.n};
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4, now = 0;
	int wi = warp / WN * 16 * MT, wj = warp % WN * 8 * NT;
	bool idle = i0 + wi >= a.m || j0 + wj >= a.n;
	float acc[MT][NT][4];
#pragma unroll
	for (int i = 0; i < MT * NT * 4; i++) acc[i / 4 / NT][i / 4 % NT][i % 4] = 0.f;
	pa.fetch(k0, k1), pb.fetch(k0, k1);
	pa.keep(as[0]), pb.keep(bs[0]);
	__syncthreads();
	for (i64 k = k0; k < k1; k += deep) {
		bool more = k + deep < k1;
		if (more) pa.fetch(k + deep, k1), pb.fetch(k + deep, k1);
		if (!idle) tile<kind, MT, NT>(acc, as[now] + wi, bs[now] + wj, g, t);
		now = 1 - now;
		if (more) pa.keep(as[now]), pb.keep(bs[now]);
		__syncthreads();
	}
	if (idle) return;
	bool plain = !a.add && !a.epi.bias && !a.epi.act && !a.epi.drop.threshold && a.dst.type != F64;
#pragma unroll
	for (int i = 0; i < MT * NT * 2; i++) {
		int m = i / 2 / NT, n = i / 2 % NT, h = i % 2;
		i64 r = i0 + wi + 16 * m + 8 * h + g, c = j0 + wj + 8 * n + 2 * t;
		float x = acc[m][n][2 * h], y = acc[m][n][2 * h + 1];
		bool both = c + 1 < a.n;
		if (r >= a.m || c >= a.n) continue;
		if (a.part) storePair(a.part + (blockIdx.z * a.m + r) * a.n + c, both, a.n % 2 == 0, x, y);
		else if (!plain) finishPair(a, r, c, x, y);
		else if (a.dst.type == F32) storePair(a.dst.f32(r) + c, both, a.pairs, x, y);
		else storePair((bf16 *)a.dst.bf16(r) + c, both, a.pairs, x, y);
	}
}

#define PRODUCTS(name, A, B, kind) \
	KERNEL(name##_128, ProductArgs) { product<A, B, kind, 4, 4, 2, 4>(a); } \
	KERNEL(name##_64, ProductArgs) { product<A, B, kind, 2, 4, 4, 2>(a); }

PRODUCTS(mma_tf32, float, float, TF32)
PRODUCTS(mma_split, float, float, SPLIT)
PRODUCTS(mma_bf16_f32, bf16, float, HALF)
PRODUCTS(mma_f32_bf16, float, bf16, HALF)
PRODUCTS(mma_bf16_bf16, bf16, bf16, HALF)
