// Products on tensor cores: tiles of 128 x 128, or 128 x 64, by four warps that each have 64 x 64 or 32 x 64 numbers.
// Element (i, k) of the left factor is at i·stride + k, or at k·stride + i; likewise column j of the right one. Long
// sums are split in pieces.
//
// A block goes through its tiles as one stream of steps, each of 128 bytes along the sum: copies of the next steps are
// on their way while one is multiplied, also those of the next tile while this one is stored.
//
//   TF32   factors are rounded to 10 bits
//   SPLIT  x = hi + lo, each of 10 bits: hi·hi + hi·lo + lo·hi has the error of float32's own products (2^-21 of a
//          term). Tensor cores round sums towards zero, so they add up 8 terms only, and float32 adds those.
//   HALF   bfloat16
#pragma once
#include "product.cuh"

enum Kind { TF32, SPLIT, HALF };

#ifndef HOST_BUILD
#define SPARED(idle) false // the emulator is spared what is not used
#define SHARED(name, bytes) extern __shared__ __align__(256) u8 name[] // as many as the launch says

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

// Four matrices of 8 rows of 16 bytes, whose addresses lanes 0-7, 8-15, … have. Lane 4g + t gets word t of row g of
// each; or, turned, the numbers of 2 bytes g of rows 2t and 2t + 1.
DEV void matrices(u32 *r, Place p) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(p));
}

DEV void matricesTurned(u32 *r, Place p) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(p));
}

DEV void mma8(float *c, const u32 *a, u32 b0, u32 b1) {
	asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

DEV void mma16(float *c, const u32 *a, u32 b0, u32 b1) {
	asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

DEV u32 round10(float x) {
	u32 y;
	asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
	return y;
}
#endif

const int lineBytes = 128, stages = 3; // bytes of a step along the sum; steps in shared memory

// A factor's part of a step: L lines (rows of the left factor, columns of the right one), of which the numbers are of
// `size` bytes and lie beside each other along the sum, or else along the lines. In shared memory it is as in memory,
// its 16 bytes swapped within rows so that what a warp reads at once is in different banks.
template <int size, bool along, bool right, int L, int threads> struct Panel {
	static const int depth = lineBytes / size, rowBytes = along ? lineBytes : L * size, rows = along ? L : depth;
	static const int chunks = rowBytes / 16, pass = threads / chunks; // rows that all threads copy at once
	const char *p;
	i64 stride, unit, lines; // bytes from row to row; bytes that may be copied at once
	const char *from;        // what this thread copies next
	int left, bytes;         // rows and bytes of a row from there to the end

	static __device__ int swap(int row) {
		if (!along && size == 4) return row % 4 * 2;
		return along && lineBytes == 64 ? row / 2 % 4 : row % 8;
	}

	// Goes to the lines from `first` on and the steps from k on.
	__device__ void seek(i64 first, i64 k, i64 end) {
		int r = threadIdx.x / chunks, c = threadIdx.x % chunks;
		i64 row = (along ? first : k) + r, at = (along ? k : first) * size + c * 16;
		from = p + row * stride + at;
		left = (int)((along ? lines : end) - row), bytes = (int)((along ? end : lines) * size - at);
	}

	// Copies a step, and goes to the next.
	__device__ void fetch(Place to) {
		int r = threadIdx.x / chunks, c = threadIdx.x % chunks, n = bytes < 0 ? 0 : bytes < 16 ? bytes : 16;
		to += r * rowBytes + ((c ^ swap(r)) << 4);
		const char *x = from;
		if (unit == 16)
#pragma unroll
			for (int q = 0; q < rows / pass; q++, x += pass * stride)
				copy16(to + q * pass * rowBytes, x, q * pass < left ? n : 0);
		else
#pragma unroll 1
			for (int q = 0; q < rows / pass; q++, x += pass * stride)
#pragma unroll
				for (int i = 0; i < 16; i += 4) {
					int there = q * pass < left ? n - i : 0;
					copy4(to + q * pass * rowBytes + i, x + i, there < 0 ? 0 : there < 4 ? there : 4);
				}
		from += along ? lineBytes : depth * stride;
		if (along) bytes -= lineBytes;
		else left -= depth;
	}

	// Where a lane reads from, of the lines from w on.
	static __device__ Place begin(Place p, int w) {
		int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
		int upper = lane / 8 % 2, later = lane / 16; // lines 8 to 15, and words 4 to 7
		if (right) later = lane / 8 % 2, upper = lane / 16;
		if (along) return p + (w + lane % 8 + 8 * upper) * lineBytes + ((later ^ swap(lane % 8)) << 4);
		if (size == 4) return p + t * rowBytes + ((w / 4 + g / 4 ^ swap(t)) << 4) + g % 4 * 4;
		return p + (lane % 8 + 8 * later) * rowBytes + ((w / 8 + upper ^ swap(lane % 8)) << 4);
	}

	// Fragment m, of the 8 words s: lane 4g + t gets words t and t + 4 of lines 16m + g and 16m + g + 8. Words of one line
	// follow each other on the right side, those of one place on the left one.
	static __device__ void fragment(u32 *r, Place p, int s, int m) {
		if (along) matrices(r, p + m * 16 * lineBytes ^ s << 5);
		else if (size == 2) matricesTurned(r, p + s * 16 * rowBytes ^ m << 5);
		else
#pragma unroll
			for (int i = 0; i < 4; i++) {
				int upper = right ? i / 2 : i % 2, later = right ? i % 2 : i / 2;
				r[i] = wordAt(p + (8 * s + 4 * later) * rowBytes ^ m << 6 ^ upper << 5);
			}
	}
};

// Makes a fragment what is multiplied, and with SPLIT what is left of it.
template <int kind> DEV void ready(u32 *x, u32 *low) {
#pragma unroll
	for (int i = 0; i < 4; i++) {
		float f = __uint_as_float(x[i]);
		if (kind == TF32) x[i] = round10(f);
		if (kind != SPLIT) continue;
		x[i] &= 0xffffe000u;
		low[i] = __float_as_uint(f - __uint_as_float(x[i]));
	}
}

// Adds the products of a fragment of the left side and four of the right one.
template <bool half> DEV void terms(float (*c)[4], const u32 *a, u32 (*b)[4]) {
#pragma unroll
	for (int n = 0; n < 8; n++) {
		const u32 *y = b[n / 2] + n % 2 * 2;
		if (half) mma16(c[n], a, y[0], y[1]);
		else mma8(c[n], a, y[0], y[1]);
	}
}

// The same, of fragments as they were read.
template <int kind> DEV void multiply(float (*acc)[4], u32 *a, u32 (*b)[4], u32 (*low)[4]) {
	u32 al[4];
	ready<kind>(a, al);
	if (kind != SPLIT) return terms<kind == HALF>(acc, a, b);
	float sum[8][4];
#pragma unroll
	for (int i = 0; i < 32; i++) sum[i / 4][i % 4] = 0.f;
	terms<false>(sum, al, b), terms<false>(sum, a, low), terms<false>(sum, a, b);
#pragma unroll
	for (int i = 0; i < 32; i++) acc[i / 4][i % 4] += sum[i / 4][i % 4];
}

__device__ __noinline__ float elu(float x) { return expm1f(x); } // called: in place it would be there many times

// Stores four numbers of a row, with what follows the product.
DEV void storeFour(const ProductArgs &a, const Mat &to, int wide, i64 r, int c, float *x) {
	int left = (int)a.n - c;
	if (r >= a.m || left <= 0) return;
	if (left < 4) wide = 1;
	if (a.follows && !a.part) {
		float f[4], y[4];
		factors<4>(f, a.epi.drop, r, (u32)c);
		if (a.add && wide == 4) loadFrom<4>(y, to, r, c);
#pragma unroll
		for (int i = 0; i < 4; i++) {
			if (i >= left) break;
			if (a.add) x[i] += wide == 4 ? y[i] : get(to, r, c + i);
			if (a.epi.bias) x[i] += a.epi.bias[c + i];
			if (x[i] <= 0 && a.epi.act) x[i] = a.epi.act == 2 ? elu(x[i]) : a.epi.act == 3 ? 0.01f * x[i] : 0.f;
			x[i] *= f[i];
		}
	}
	if (wide == 4) storeTo<4>(to, r, c, x);
	else if (wide == 2) storeTo<2>(to, r, c, x), storeTo<2>(to, r, c + 2, x + 2);
	else
#pragma unroll
		for (int i = 0; i < 4; i++)
			if (i < left) put(to, r, c + i, x[i]);
}

// A tile and a range of the sum.
struct Task {
	i64 i, j, k, end, piece;

	__device__ Task(const ProductArgs &a, u32 n, int M, int N) {
		u32 tiles = (u32)a.area, columns = (u32)a.tiles;
		piece = n / tiles;
		i = (i64)(n % tiles / columns) * M, j = (i64)(n % tiles % columns) * N;
		k = piece * a.piece, end = k + a.piece < a.k ? k + a.piece : a.k;
	}
	__device__ int steps(int depth) const { return (int)((end - k + depth - 1) / depth); }
};

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

// Stores a warp's numbers in bfloat16, where all of them are in the matrix and nothing follows: 16 bytes a lane.
template <int MT> DEV void storeHalves(bf16 *at, i64 stride, const float (*acc)[8][4]) {
	int lane = threadIdx.x % 32;
	at += lane / 4 * stride + lane % 4 * 8;
#pragma unroll
	for (int q = 0; q < 4 * MT; q++) { // 16 rows of m, 8 rows of h, 32 columns of n
		int m = q / 4, h = q / 2 % 2, n = q % 2 * 4;
		u32 w[4];
#pragma unroll
		for (int i = 0; i < 4; i++) w[i] = pair(acc[m][n + i][2 * h], acc[m][n + i][2 * h + 1]);
		turn(w);
		*(uint4 *)(at + 8 * n) = make_uint4(w[0], w[1], w[2], w[3]);
		if (n) at += 8 * stride;
	}
}

// Stores a warp's numbers from row i and column j on. They change places in 4 KiB of shared memory, so that lanes that
// are beside each other store what is beside each other; there too, 32 bytes are swapped for the sake of banks.
template <int MT>
DEV void storeTile(const ProductArgs &a, i64 piece, i64 i, i64 j, float *slab, const float (*acc)[8][4]) {
	int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	Mat to = a.dst;
	int wide = (int)a.wide;
	if (a.part) {
		to.p = (char *)(a.part + piece * a.m * a.n), to.stride = a.n, to.type = F32;
		wide = a.n % 4 == 0 ? 4 : a.n % 2 == 0 ? 2 : 1;
	}
	bool whole = wide >= 4 && to.type != F64 && (a.part || !a.follows) && i + 16 * MT <= a.m && j + 64 <= a.n;
	if (whole && wide == 8 && to.type == BF16) return storeHalves<MT>((bf16 *)to.bf16(i) + j, to.stride, acc);
	if (wide > 4) wide = 4;
#pragma unroll
	for (int m = 0; m < MT; m++) {
#pragma unroll
		for (int n = 0; n < 16; n++) // rows g, columns 8n + 2t; and rows g + 8
			store<2>(slab + (g + n / 8 * 8) * 64 + (n % 8 ^ g) * 8 + 2 * t, acc[m][n % 8] + n / 8 * 2);
		__syncwarp();
		const float *from = slab + lane / 16 * 64;
		int c = lane % 16 * 4;
		i64 r = i + 16 * m + lane / 16;
		char *at = to.p + (r * to.stride + j + c) * 4;
		if (whole && to.type == F32)
#pragma unroll
			for (int q = 0; q < 8; q++, at += 2 * to.stride * 4) {
				float x[4];
				load<4>(x, from + 128 * q + ((c / 8 ^ (lane / 16 + 2 * q) % 8) * 8 + c % 8));
				store<4>((float *)at, x);
			}
		else
#pragma unroll 1
			for (int q = 0; q < 8; q++) {
				float x[4];
				load<4>(x, from + 128 * q + ((c / 8 ^ (lane / 16 + 2 * q) % 8) * 8 + c % 8));
				storeFour(a, to, wide, r + 2 * q, (int)j + c, x);
			}
		__syncwarp();
	}
}

// A warp has 16·MT x 64 numbers, a block WM x WN warps.
template <int kind, bool alongA, bool alongB, int MT, int WM, int WN> DEV void product(const ProductArgs &a) {
	const int M = 16 * MT * WM, N = 64 * WN, size = kind == HALF ? 2 : 4, slot = (M + N) * lineBytes;
	const int deep = lineBytes / 32;  // multiplications of a step
	const bool ahead = kind != SPLIT; // fragments are read while those before are multiplied; it has no registers left
	typedef Panel<size, alongA, false, M, 32 * WM * WN> Left;
	typedef Panel<size, alongB, true, N, 32 * WM * WN> Right;
	SHARED(memory, stages * slot);
	Place ring = placeOf(memory);
	Left left = {a.a, (alongA ? a.ai : a.ak) * size, a.unitA, a.m};
	Right right = {a.b, (alongB ? a.bj : a.bk) * size, a.unitB, a.n};
	u32 tasks = (u32)(a.area * a.pieces);
	u32 next = blockIdx.x;               // the task whose steps are copied
	int steps, to = 0, from = 0, before; // how many of them are left; slots
	auto seek = [&]() {
		steps = 0;
		if (next >= tasks) return;
		Task t(a, next, M, N);
		steps = t.steps(Left::depth);
		left.seek(t.i, t.k, t.end), right.seek(t.j, t.k, t.end);
	};
	auto fetch = [&]() {
		if (steps > 0) {
			left.fetch(ring + to * slot), right.fetch(ring + to * slot + M * lineBytes);
			if (--steps == 0) next += gridDim.x, seek();
		}
		endCopies();
		to = to + 1 < stages ? to + 1 : 0;
	};
	int warp = threadIdx.x / 32, wi = warp / WN * 16 * MT, wj = warp % WN * 64;
	Place pa = Left::begin(ring, wi), pb = Right::begin(ring + M * lineBytes, wj);
	u32 fa[2][MT][4], fb[2][4][4];
	auto readA = [&](int s, int m) { Left::fragment(fa[s % 2][m], pa + from * slot, s % deep, m); };
	auto read = [&](int s) {
#pragma unroll
		for (int m = 0; m < (ahead ? MT : 0); m++) readA(s, m);
#pragma unroll
		for (int n = 0; n < 4; n++) Right::fragment(fb[s % 2][n], pb + from * slot, s % deep, n);
	};
	auto arrive = [&]() { // the next step is there, and nobody reads this one any more
		waitCopies<stages - 2>();
		__syncthreads();
	};
	seek();
#pragma unroll
	for (int s = 0; s < stages - 1; s++) fetch();
	arrive();
	if (ahead) read(0);
	for (u32 now = blockIdx.x; now < tasks; now += gridDim.x) {
		Task t(a, now, M, N);
		i64 i = t.i + wi, j = t.j + wj;
		bool idle = i >= a.m || j >= a.n; // a card multiplies all the same, to have no branch there
		float acc[MT][8][4];
#pragma unroll
		for (int n = 0; n < MT * 32; n++) acc[n / 32][n / 4 % 8][n % 4] = 0.f;
		for (int rest = t.steps(Left::depth); rest > 0; rest--) {
#pragma unroll
			for (int s = 0; s < deep; s++) {
				bool last = s + 1 == deep;
				u32 low[4][4];
				if (!ahead) read(s);
				if (s == 0) fetch();
				auto arriveLast = [&]() {
					if (!last) return;
					arrive();
					before = from, from = from + 1 < stages ? from + 1 : 0;
				};
				if (ahead) arriveLast(), read(s + 1);
				if (!SPARED(idle)) {
#pragma unroll
					for (int n = 0; n < 4; n++) ready<kind>(fb[s % 2][n], low[n]);
#pragma unroll
					for (int m = 0; m < MT; m++) {
						if (!ahead) readA(s, m);
						multiply<kind>(acc[m], fa[s % 2][m], fb[s % 2], low);
					}
				}
				if (!ahead) arriveLast();
			}
		}
		if (!idle) storeTile<MT>(a, t.piece, i, j, (float *)(memory + before * slot) + warp * 1024, acc);
		__syncthreads(); // the next step is copied to where that was
	}
}

// By how the factors are given (n: as they are, t: transposed) and the width of tiles. Both transposed is rare.
#define PRODUCTS(name, kind) \
	KERNEL(name##_nn_128, ProductArgs) { product<kind, true, false, 4, 2, 2>(a); } \
	KERNEL(name##_nt_128, ProductArgs) { product<kind, true, true, 4, 2, 2>(a); } \
	KERNEL(name##_tn_128, ProductArgs) { product<kind, false, false, 4, 2, 2>(a); } \
	KERNEL(name##_nn_64, ProductArgs) { product<kind, true, false, 2, 4, 1>(a); } \
	KERNEL(name##_nt_64, ProductArgs) { product<kind, true, true, 2, 4, 1>(a); } \
	KERNEL(name##_tn_64, ProductArgs) { product<kind, false, false, 2, 4, 1>(a); } \
	KERNEL(name##_tt_64, ProductArgs) { product<kind, false, true, 2, 4, 1>(a); }
