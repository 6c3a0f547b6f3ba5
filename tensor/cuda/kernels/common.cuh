// What all kernels share: matrices as they come from Go, numbers of either type, dropout's draws,
// epilogues, and groups of lanes.
//
// Every kernel takes one struct, whose fields are all 8 bytes wide, so that Go's structs of the same
// fields are the same bytes. No sum is atomic: what several threads add up is added in an order that only the
// sizes decide, and two runs are equal to the bit.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#ifndef HOST_BUILD
#define KERNEL(name, Args) extern "C" __global__ void name(const Args a)
#endif

#define INF __uint_as_float(0x7f800000u)
#define DEV static __device__ __forceinline__

// As tensor.DType.
enum { F32 = 0, BF16 = 1, F64 = 2, UINT32 = 3 };

struct Mat {
	char *p;
	i64 stride, rows, cols, type;
	__device__ float *f32(i64 r) const { return (float *)p + r * stride; }
	__device__ u16 *bf16(i64 r) const { return (u16 *)p + r * stride; }
	__device__ double *f64(i64 r) const { return (double *)p + r * stride; }
};

// bfloat16 is the upper half of a float.
DEV float widen(u16 x) { return __uint_as_float((u32)x << 16); }

DEV u16 narrow(float x) {
	u32 b = __float_as_uint(x);
	if (x != x) return (u16)(b >> 16 | 0x40);
	return (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

struct bf16 {
	u16 bits;
};

DEV float tofloat(float x) { return x; }
DEV float tofloat(bf16 x) { return widen(x.bits); }

// Numbers of a matrix, whatever its type.
DEV float get(const Mat &m, i64 r, i64 c) {
	if (m.type == F32) return m.f32(r)[c];
	if (m.type == BF16) return widen(m.bf16(r)[c]);
	return (float)m.f64(r)[c];
}

DEV void put(const Mat &m, i64 r, i64 c, float x) {
	if (m.type == F32) m.f32(r)[c] = x;
	else if (m.type == BF16) m.bf16(r)[c] = narrow(x);
	else m.f64(r)[c] = x;
}

DEV double get64(const Mat &m, i64 r, i64 c) { return m.type == F64 ? m.f64(r)[c] : (double)get(m, r, c); }

DEV void put64(const Mat &m, i64 r, i64 c, double x) {
	if (m.type == F64) m.f64(r)[c] = x;
	else put(m, r, c, (float)x);
}

// V numbers beside each other, from an address that is a multiple of their size.
template <int V> DEV void load(float *x, const float *p) {
	if (V % 4 == 0) {
		for (int i = 0; i < V; i += 4) {
			float4 v = *(const float4 *)(p + i);
			x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
		}
	} else if (V == 2) {
		float2 v = *(const float2 *)p;
		x[0] = v.x, x[1] = v.y;
	} else
		for (int i = 0; i < V; i++) x[i] = p[i];
}

DEV void halves(float *x, u32 v) { x[0] = __uint_as_float(v << 16), x[1] = __uint_as_float(v & 0xffff0000u); }

template <int V> DEV void load(float *x, const bf16 *p) {
	if (V == 8) {
		uint4 v = *(const uint4 *)p;
		halves(x, v.x), halves(x + 2, v.y), halves(x + 4, v.z), halves(x + 6, v.w);
	} else if (V == 4) {
		uint2 v = *(const uint2 *)p;
		halves(x, v.x), halves(x + 2, v.y);
	} else if (V == 2)
		halves(x, *(const u32 *)p);
	else
		for (int i = 0; i < V; i++) x[i] = widen(p[i].bits);
}

DEV u32 pair(float lo, float hi) {
#ifdef HOST_BUILD
	return (u32)narrow(lo) | (u32)narrow(hi) << 16;
#else
	u32 x;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(hi), "f"(lo));
	return x;
#endif
}

template <int V> DEV void store(float *p, const float *x) {
	if (V % 4 == 0)
		for (int i = 0; i < V; i += 4) *(float4 *)(p + i) = make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]);
	else if (V == 2)
		*(float2 *)p = make_float2(x[0], x[1]);
	else
		for (int i = 0; i < V; i++) p[i] = x[i];
}

template <int V> DEV void store(bf16 *p, const float *x) {
	if (V == 8)
		*(uint4 *)p = make_uint4(pair(x[0], x[1]), pair(x[2], x[3]), pair(x[4], x[5]), pair(x[6], x[7]));
	else if (V == 4)
		*(uint2 *)p = make_uint2(pair(x[0], x[1]), pair(x[2], x[3]));
	else if (V == 2)
		*(u32 *)p = pair(x[0], x[1]);
	else
		for (int i = 0; i < V; i++) p[i].bits = narrow(x[i]);
}

template <int V> DEV void loadFrom(float *x, const Mat &m, i64 r, i64 c) {
	if (m.type == F32) load<V>(x, m.f32(r) + c);
	else if (m.type == BF16) load<V>(x, (const bf16 *)m.bf16(r) + c);
	else
		for (int i = 0; i < V; i++) x[i] = (float)m.f64(r)[c + i];
}

template <int V> DEV void storeTo(const Mat &m, i64 r, i64 c, const float *x) {
	if (m.type == F32) store<V>(m.f32(r) + c, x);
	else if (m.type == BF16) store<V>((bf16 *)m.bf16(r) + c, x);
	else
		for (int i = 0; i < V; i++) m.f64(r)[c + i] = x[i];
}

// Dropout, as in package draw.
struct Drop {
	u64 key;
	const u32 *ids;
	i64 first, threshold;
	double scale;
};

DEV u64 rowBits(u64 key, u32 id, u32 block) {
	u64 z = key + (((u64)block << 32) + (u64)id + 1) * 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

DEV u32 hash(u64 key, u32 pair) {
	u32 x = (u32)key + pair * 0x9e3779b1u;
	x = (x ^ x >> 16) * 0x7feb352du;
	return (x ^ x >> 15 ^ (u32)(key >> 32)) * 0x846ca68bu;
}

DEV u32 rowId(const Drop &d, i64 row) { return d.ids ? d.ids[row] : (u32)d.first + (u32)row; }

// Draws are those of one row.
struct Draws {
	u64 own;
	u32 id;
};

DEV Draws drawsOf(const Drop &d, i64 row) {
	Draws r;
	r.id = rowId(d, row);
	r.own = rowBits(d.key, r.id, 0);
	return r;
}

// factor is what dropout multiplies a number of a row by.
DEV float factor(const Drop &d, const Draws &r, u32 column) {
	bool kept;
	if (d.threshold != 1 << 15)
		kept = (u16)(hash(r.own, column / 2) >> (column % 2 * 16)) >= (u32)d.threshold;
	else if (column < 64)
		kept = r.own >> column & 1;
	else
		kept = rowBits(d.key, r.id, column / 64) >> (column % 64) & 1;
	return kept ? (float)d.scale : 0.f;
}

// coefficient is what dropout multiplies an attention coefficient by.
DEV float coefficient(const Drop &d, u64 own, u32 source, i64 head) {
	if (d.threshold == 0) return 1.f;
	u32 draw = hash(own, source * 0x85ebca6bu + (u32)head * 0xc2b2ae35u) >> 16;
	return draw >= (u32)d.threshold ? (float)d.scale : 0.f;
}

// Epi is what follows a row: dropout(act(x + bias)).
struct Epi {
	const float *bias;
	i64 act; // as tensor.Act
	Drop drop;
};

DEV float activate(i64 act, float x) {
	if (x > 0 || act == 0 || x != x) return x;
	if (act == 2) return expm1f(x);
	return act == 3 ? 0.01f * x : 0.f;
}

DEV float slope(i64 act, float y) {
	if (y > 0 || act == 0) return 1.f;
	if (act == 2) return y + 1.f;
	return act == 3 ? 0.01f : 0.f;
}

DEV float finish(const Epi &e, const Draws &r, u32 c, float x) {
	if (e.bias) x += e.bias[c];
	x = activate(e.act, x);
	return e.drop.threshold ? x * factor(e.drop, r, c) : x;
}

// What dropout multiplies V columns from c on by, c being a multiple of V and V a power of two: all of them are in
// one block of bits.
template <int V> DEV void factors(float *f, const Drop &d, i64 row, u32 c) {
	for (int i = 0; i < V; i++) f[i] = 1.f;
	if (d.threshold == 0) return;
	u32 id = rowId(d, row);
	float scale = (float)d.scale;
	if (d.threshold == 1 << 15) {
		u64 bits = rowBits(d.key, id, c / 64) >> (c % 64);
		for (int i = 0; i < V; i++) f[i] = bits >> i & 1 ? scale : 0.f;
		return;
	}
	u64 own = rowBits(d.key, id, 0);
	for (int i = 0; i < V; i++) {
		u32 draw = hash(own, (c + i) / 2) >> ((c + i) % 2 * 16) & 0xffff;
		f[i] = draw >= (u32)d.threshold ? scale : 0.f;
	}
}

DEV float leaky(float x, float s) { return x > 0 ? x : s * x; }

// Sums over a group of G lanes, each of which gets the result. mask names the lanes of the group.
template <int G> DEV float groupSum(float x, u32 mask) {
	for (int o = G / 2; o > 0; o /= 2) x += __shfl_xor_sync(mask, x, o);
	return x;
}

DEV float warpSum(float x) { return groupSum<32>(x, 0xffffffffu); }

DEV double warpSum(double x) {
	for (int o = 16; o > 0; o /= 2) x += __shfl_xor_sync(0xffffffffu, x, o);
	return x;
}

DEV float warpMax(float x) {
	for (int o = 16; o > 0; o /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, o));
	return x;
}

// Rows are what a kernel over a graph's rows goes through: all rows but the long ones (segs is none), or
// pieces of the long ones, whose sums lie in a matrix of their own until they are joined.
struct Rows {
	const i64 *ptr;
	const u32 *index;
	const i64 *segs; // row, first entry, end of each piece
	float *part;     // pieces x columns
	i64 n, limit;    // how many rows or pieces; a row of more entries is long
};

struct Span {
	i64 row, lo, hi;
};

// spanOf is the entries of a task; false where there is nothing to do.
DEV bool spanOf(const Rows &r, i64 task, Span &s) {
	if (r.segs) {
		s.row = r.segs[3 * task], s.lo = r.segs[3 * task + 1], s.hi = r.segs[3 * task + 2];
		return true;
	}
	s.row = task, s.lo = r.ptr[task], s.hi = r.ptr[task + 1];
	return s.hi - s.lo <= r.limit;
}

DEV i64 threadId() { return blockIdx.x * (i64)blockDim.x + threadIdx.x; }
