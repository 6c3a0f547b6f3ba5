// Products on tensor cores: tiles of 128 x 128, or 128 x 64, by four warps that each have 64 x 64 or 32 x 64 numbers.
// Element (i, k) of the left factor is at i·stride + k, or at k·stride + i; likewise column j of the right one. Long
// sums are split in pieces.
//
// A block goes through its tiles as one stream of steps, each of 64 bytes along the sum: copies of the next steps are on
// their way while one is multiplied, also those of the next tile while this one is stored.
//
//   TF32   factors are rounded to 10 bits
//   SPLIT  x = hi + lo, each of 10 bits: hi·hi + hi·lo + lo·hi has the error of float32's own products (2^-21 of a
//          term). Tensor cores round sums towards zero, so they add up 8 terms only, and float32 adds those.
//   HALF   bfloat16
#pragma once
#include "product.cuh"

enum Kind { TF32, SPLIT, HALF };

#ifndef HOST_BUILD
// Arguments that functions read which are called stay where they are.
#undef KERNEL
#define KERNEL(name, Args) extern "C" __global__ void name(const __grid_constant__ Args a)

typedef u32 Place; // in shared memory

DEV Place placeOf(void *p) { return (u32)__cvta_generic_to_shared(p); }

// The rest of the 16 or 4 bytes is zero.
DEV void copy16(Place to, const void *from, int bytes) {
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

DEV void copy4(Place to, const void *from, int bytes) {
	asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

DEV void endCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits for all groups of copies but the last N.
template <int N> DEV void waitCopies() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

DEV u32 wordAt(Place p) {
	u32 x;
	asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(p));
	return x;
}

// Four matrices of 8 rows of 16 bytes, whose addresses lanes 0-7, 8-15, … have. Lane 4g + t gets word t of row g of each;
// or, turned, the numbers of 2 bytes g of rows 2t and 2t + 1.
DEV void matrices(u32 *r, Place p) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(p));
}

DEV void matricesTurned(u32 *r, Place p) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(p));
}

DEV void mma8(float *d, const u32 *a, u32 b0, u32 b1, const float *c) {
	asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
		: "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

DEV void mma16(float *d, const u32 *a, u32 b0, u32 b1, const float *c) {
	asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
		: "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

DEV u32 round10(float x) {
	u32 y;
	asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
	return y;
}
#endif

const int lineBytes = 64, stages = 3; // bytes of a step along the sum; steps in shared memory

// A factor's part of a step: L lines (rows of the left factor, columns of the right one), of which the numbers are of
// `size` bytes and lie beside each other along the sum, or else along the lines. In shared memory it is as in memory, its
// 16 bytes swapped within rows so that what a warp reads at once is in different banks.
template <int size, bool along, int L, int threads> struct Panel {
	static const int depth = lineBytes / size, rowBytes = along ? lineBytes : L * size, rows = along ? L : depth;
	static const int chunks = rowBytes / 16, pass = threads / chunks; // rows that all threads copy at once
	const char *p;
	i64 stride, unit, lines; // bytes from row to row; bytes that may be copied at once

	static __device__ int swap(int row) {
		if (!along && size == 4) return row % 4 * 2;
		return along && lineBytes == 64 ? row / 2 % 4 : row % 8;
	}

	// Copies lines from `first` on of the steps from k on.
	__device__ void fetch(Place to, i64 first, i64 k, i64 end) const {
		int r = threadIdx.x / chunks, c = threadIdx.x % chunks;
		i64 row = (along ? first : k) + r, at = (along ? k : first) * size + c * 16;
		i64 left = (along ? lines : end) - row, bytes = (along ? end : lines) * size - at;
		const char *from = p + row * stride + at;
		int n = bytes < 0 ? 0 : bytes < 16 ? (int)bytes : 16;
		to += r * rowBytes + ((c ^ swap(r)) << 4);
#pragma unroll
		for (int q = 0; q < rows / pass; q++) {
			int there = q * pass < left ? n : 0;
			if (unit == 16) copy16(to + q * pass * rowBytes, from, there);
			else
				for (int i = 0; i < 16; i += 4)
					copy4(to + q * pass * rowBytes + i, from + i, there < i ? 0 : there - i < 4 ? there - i : 4);
			from += pass * stride;
		}
	}

	// Where a lane reads from, of the lines from w on.
	static __device__ Place begin(Place p, int w) {
		int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
		if (along) return p + (w + lane % 16) * lineBytes + ((lane / 16 ^ swap(lane % 8)) << 4);
		if (size == 4) return p + t * rowBytes + ((w / 4 + g / 4 ^ swap(t)) << 4) + g % 4 * 4;
		return p + (lane % 8 + lane / 16 * 8) * rowBytes + ((w / 8 + lane / 8 % 2 ^ swap(lane % 8)) << 4);
	}

	// Fragment m: lane 4g + t gets words t of lines 16m + g and 16m + g + 8, and words t + 4, of the 8 words s.
	static __device__ void fragment(u32 *r, Place p, int s, int m) {
		if (along) matrices(r, p + m * 16 * lineBytes ^ s << 5);
		else if (size == 2) matricesTurned(r, p + s * 16 * rowBytes ^ m << 5);
		else
#pragma unroll
			for (int i = 0; i < 4; i++) r[i] = wordAt(p + (8 * s + i / 2 * 4) * rowBytes ^ m << 6 ^ i % 2 << 5);
	}
};

DEV void split(u32 *hi, u32 *lo) {
#pragma unroll
	for (int i = 0; i < 4; i++) {
		u32 x = hi[i];
		hi[i] = x & 0xffffe000u;
		lo[i] = __float_as_uint(__uint_as_float(x) - __uint_as_float(hi[i]));
	}
}

// Adds the products of 8 words of a warp's lines: MT fragments of the left side, four of the right one.
template <int kind, int MT> DEV void multiply(float (*acc)[8][4], u32 (*a)[4], u32 (*b)[4]) {
	u32 low[4][4];
#pragma unroll
	for (int n = 0; n < 4; n++) {
		if (kind == SPLIT) split(b[n], low[n]);
		if (kind == TF32)
#pragma unroll
			for (int i = 0; i < 4; i++) b[n][i] = round10(__uint_as_float(b[n][i]));
	}
#pragma unroll
	for (int m = 0; m < MT; m++) {
		u32 al[4];
		if (kind == SPLIT) split(a[m], al);
		if (kind == TF32)
#pragma unroll
			for (int i = 0; i < 4; i++) a[m][i] = round10(__uint_as_float(a[m][i]));
#pragma unroll
		for (int n = 0; n < 8; n++) {
			const u32 *y = b[n / 2] + n % 2, *yl = low[n / 2] + n % 2;
			float *c = acc[m][n];
			if (kind == HALF) mma16(c, a[m], y[0], y[2], c);
			if (kind == TF32) mma8(c, a[m], y[0], y[2], c);
			if (kind == SPLIT) {
				float sum[4] = {0.f, 0.f, 0.f, 0.f};
				mma8(sum, al, y[0], y[2], sum);
				mma8(sum, a[m], yl[0], yl[2], sum);
				mma8(sum, a[m], y[0], y[2], sum);
#pragma unroll
				for (int i = 0; i < 4; i++) c[i] += sum[i];
			}
		}
	}
}

// What follows the product, of columns c + 8n and c + 8n + 1 of row r.
DEV void follow(const ProductArgs &a, i64 r, int c, float *x) {
	const Drop &d = a.epi.drop;
	bool coin = d.threshold == 1 << 15; // all of the 64 columns are in one block of bits
	u64 bits = d.threshold ? rowBits(d.key, rowId(d, r), coin ? c / 64 : 0) : 0;
	float scale = (float)d.scale;
#pragma unroll
	for (int i = 0; i < 16; i++) {
		int at = c + i / 2 * 8 + i % 2;
		if (at >= (int)a.n) break;
		if (a.add) x[i] += get(a.dst, r, at);
		if (a.epi.bias) x[i] += a.epi.bias[at];
		x[i] = activate(a.epi.act, x[i]);
		if (d.threshold == 0) continue;
		bool kept = coin ? bits >> at % 64 & 1 : (hash(bits, at / 2) >> at % 2 * 16 & 0xffff) >= (u32)d.threshold;
		x[i] *= kept ? scale : 0.f;
	}
}

// Lane t of four gets word t of each.
DEV void turn(u32 *x) {
	int t = threadIdx.x % 4;
#pragma unroll
	for (int o = 1; o < 4; o *= 2)
#pragma unroll
		for (int i = 0; i < 4; i++) {
			if (i & o) continue;
			u32 y = __shfl_xor_sync(0xffffffffu, t & o ? x[i] : x[i + o], o);
			if (t & o) x[i] = y;
			else x[i + o] = y;
		}
}

DEV void storeFloats(float *to, int left, bool pairs, const float *x) {
#pragma unroll
	for (int n = 0; n < 8; n++)
		if (pairs && 8 * n + 1 < left) store<2>(to + 8 * n, x + 2 * n);
		else {
			if (8 * n < left) to[8 * n] = x[2 * n];
			if (8 * n + 1 < left) to[8 * n + 1] = x[2 * n + 1];
		}
}

// All lanes of a warp take part; there says whether there is such a row.
DEV void storeHalves(bf16 *to, bool there, int left, bool wide, const float *x) {
	int t = threadIdx.x % 4;
#pragma unroll
	for (int n = 0; n < 8; n += 4) {
		u32 w[4];
#pragma unroll
		for (int i = 0; i < 4; i++) w[i] = pair(x[2 * (n + i)], x[2 * (n + i) + 1]);
		turn(w); // this lane's columns are 8 (n + t) and those after it now
		int from = 8 * (n + t);
		if (!there || from >= left) continue;
		if (wide && from + 8 <= left) *(uint4 *)(to + from) = make_uint4(w[0], w[1], w[2], w[3]);
		else
#pragma unroll
			for (int i = 0; i < 8; i++)
				if (from + i < left) to[from + i].bits = (u16)(w[i / 2] >> i % 2 * 16);
	}
}

// Sixteen numbers of a row: columns 8n + 2t and 8n + 2t + 1 of lane 4g + t.
struct Sixteen {
	float x[16];
};

// Stores 64 columns of row r from c on. It is called: in place it would be there eight times.
__device__ __noinline__ void storeRow(const ProductArgs &a, i64 piece, i64 r, int c, Sixteen s) {
	int own = c + threadIdx.x % 4 * 2, left = (int)a.n - own;
	bool there = r < a.m;
	if (a.part) {
		if (there) storeFloats(a.part + (piece * a.m + r) * a.n + own, left, a.n % 2 == 0, s.x);
		return;
	}
	if (there && a.follows) follow(a, r, own, s.x);
	if (a.dst.type == BF16) storeHalves((bf16 *)a.dst.bf16(r) + c, there, (int)a.n - c, a.wide, s.x);
	else if (there && a.dst.type == F32) storeFloats(a.dst.f32(r) + own, left, a.wide, s.x);
	else if (there)
		for (int i = 0; i < 16; i++)
			if (i / 2 * 8 + i % 2 < left) put(a.dst, r, own + i / 2 * 8 + i % 2, s.x[i]);
}

// A tile and a range of the sum.
struct Task {
	u32 number;
	i64 i, j, k, end, piece;

	__device__ void find(const ProductArgs &a, u32 n, int M, int N) {
		number = n;
		u32 tiles = (u32)a.area, columns = (u32)a.tiles;
		piece = n / tiles;
		i = (i64)(n % tiles / columns) * M, j = (i64)(n % tiles % columns) * N;
		k = piece * a.piece, end = k + a.piece < a.k ? k + a.piece : a.k;
	}
};

// A warp has 16·MT x 64 numbers, a block WM x WN warps.
template <int kind, bool alongA, bool alongB, int MT, int WM, int WN> DEV void product(const ProductArgs &a) {
	const int M = 16 * MT * WM, N = 64 * WN, size = kind == HALF ? 2 : 4, slot = (M + N) * lineBytes;
	typedef Panel<size, alongA, M, 32 * WM * WN> Left;
	typedef Panel<size, alongB, N, 32 * WM * WN> Right;
	alignas(256) __shared__ u8 memory[stages * slot];
	Place ring = placeOf(memory);
	Left left = {a.a, (alongA ? a.ai : a.ak) * size, a.unitA, a.m};
	Right right = {a.b, (alongB ? a.bj : a.bk) * size, a.unitB, a.n};
	u32 tasks = (u32)(a.area * a.pieces);
	Task next, now;
	int to = 0, from = 0; // slots
	auto fetch = [&]() {
		if (next.number < tasks) {
			left.fetch(ring + to * slot, next.i, next.k, next.end);
			right.fetch(ring + to * slot + M * lineBytes, next.j, next.k, next.end);
			next.k += Left::depth;
			if (next.k >= next.end) next.find(a, next.number + gridDim.x, M, N);
		}
		endCopies();
		to = to + 1 < stages ? to + 1 : 0;
	};
	next.find(a, blockIdx.x, M, N);
#pragma unroll
	for (int s = 0; s < stages - 1; s++) fetch();
	int warp = threadIdx.x / 32, wi = warp / WN * 16 * MT, wj = warp % WN * 64;
	Place pa = Left::begin(ring, wi), pb = Right::begin(ring + M * lineBytes, wj);
	for (now.find(a, blockIdx.x, M, N); now.number < tasks; now.find(a, now.number + gridDim.x, M, N)) {
		bool idle = now.i + wi >= a.m || now.j + wj >= a.n;
		float acc[MT][8][4];
#pragma unroll
		for (int i = 0; i < MT * 32; i++) acc[i / 32][i / 4 % 8][i % 4] = 0.f;
		for (; now.k < now.end; now.k += Left::depth) {
			waitCopies<stages - 2>();
			__syncthreads(); // this slot is there, and nobody reads the one before
			fetch();
			if (!idle) {
				u32 fa[2][MT][4], fb[2][4][4];
				auto read = [&](int s) {
#pragma unroll
					for (int m = 0; m < MT; m++) Left::fragment(fa[s % 2][m], pa + from * slot, s, m);
#pragma unroll
					for (int n = 0; n < 4; n++) Right::fragment(fb[s % 2][n], pb + from * slot, s, n);
				};
				read(0);
#pragma unroll
				for (int s = 0; s < lineBytes / 32; s++) {
					if (s + 1 < lineBytes / 32) read(s + 1);
					multiply<kind, MT>(acc, fa[s % 2], fb[s % 2]);
				}
			}
			from = from + 1 < stages ? from + 1 : 0;
		}
		if (idle) continue;
#pragma unroll
		for (int m = 0; m < MT; m++)
#pragma unroll
			for (int h = 0; h < 2; h++) {
				Sixteen s;
#pragma unroll
				for (int i = 0; i < 16; i++) s.x[i] = acc[m][i / 2][2 * h + i % 2];
				storeRow(a, now.piece, now.i + wi + 16 * m + 8 * h + threadIdx.x % 32 / 4, (int)now.j + wj, s);
			}
	}
}

// By how the numbers of the factors lie (n: as in memory, t: transposed), and the width of tiles. Both transposed is rare.
#define PRODUCTS(name, kind) \
	KERNEL(name##_nn_128, ProductArgs) { product<kind, true, false, 4, 2, 2>(a); } \
	KERNEL(name##_nt_128, ProductArgs) { product<kind, true, true, 4, 2, 2>(a); } \
	KERNEL(name##_tn_128, ProductArgs) { product<kind, false, false, 4, 2, 2>(a); } \
	KERNEL(name##_nn_64, ProductArgs) { product<kind, true, false, 2, 4, 1>(a); } \
	KERNEL(name##_nt_64, ProductArgs) { product<kind, true, true, 2, 4, 1>(a); } \
	KERNEL(name##_tn_64, ProductArgs) { product<kind, false, false, 2, 4, 1>(a); } \
	KERNEL(name##_tt_64, ProductArgs) { product<kind, false, true, 2, 4, 1>(a); }
