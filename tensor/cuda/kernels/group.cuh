// Sums over the entries of rows, a group of G lanes a row and head. A lane has K times V columns of the
// head: column k·G·V + lane·V + i. Groups of one warp that have neighbouring heads read neighbouring numbers.
#pragma once
#include "common.cuh"

// Raw is V numbers as they came from memory: they are made floats where they are used, so that a load is not
// waited for before the next ones are on their way.
template <class T, int V> struct Raw;

template <int V> struct Raw<float, V> {
	float v[V];
	__device__ void fetch(const float *p) { load<V>(v, p); }
	__device__ void zero() {
		for (int i = 0; i < V; i++) v[i] = 0;
	}
	__device__ void floats(float *x) const {
		for (int i = 0; i < V; i++) x[i] = v[i];
	}
};

template <int V> struct Raw<bf16, V> {
	u32 v[V / 2];
	__device__ void fetch(const bf16 *p) {
		if (V == 8) {
			uint4 w = *(const uint4 *)p;
			v[0] = w.x, v[1 % (V / 2)] = w.y, v[2 % (V / 2)] = w.z, v[V / 2 - 1] = w.w;
		} else if (V == 4) {
			uint2 w = *(const uint2 *)p;
			v[0] = w.x, v[V / 2 - 1] = w.y;
		} else
			v[0] = *(const u32 *)p;
	}
	__device__ void zero() {
		for (int i = 0; i < V / 2; i++) v[i] = 0;
	}
	__device__ void floats(float *x) const {
		for (int i = 0; i < V / 2; i++) halves(x + 2 * i, v[i]);
	}
};

template <> struct Raw<bf16, 1> {
	u16 v;
	__device__ void fetch(const bf16 *p) { v = p->bits; }
	__device__ void zero() { v = 0; }
	__device__ void floats(float *x) const { x[0] = widen(v); }
};

template <int V, int G, int K> struct Group {
	int lane;
	u32 mask;
	i64 col[K]; // inside the head
	bool ok[K];

	__device__ Group(i64 width) {
		lane = threadIdx.x % G;
		mask = G == 32 ? 0xffffffffu : ((1u << G % 32) - 1) << (threadIdx.x % 32 / G * G);
#pragma unroll
		for (int k = 0; k < K; k++) {
			col[k] = blockIdx.y * (i64)(G * V * K) + k * G * V + lane * V;
			ok[k] = col[k] < width;
		}
	}

	static __device__ i64 task() { return threadId() / G; }

	template <class T> __device__ void fetch(Raw<T, V> x[K], const T *row) const {
#pragma unroll
		for (int k = 0; k < K; k++)
			if (ok[k]) x[k].fetch(row + col[k]);
			else x[k].zero();
	}

	template <class T> static __device__ void floats(float x[K][V], const Raw<T, V> raw[K]) {
#pragma unroll
		for (int k = 0; k < K; k++) raw[k].floats(x[k]);
	}

	template <class T> __device__ void read(float x[K][V], const T *row) const {
		Raw<T, V> raw[K];
		fetch(raw, row);
		floats(x, raw);
	}

	__device__ float dot(const float x[K][V], const float y[K][V]) const {
		float s = 0;
#pragma unroll
		for (int k = 0; k < K; k++)
#pragma unroll
			for (int i = 0; i < V; i++) s += x[k][i] * y[k][i];
		return s;
	}

	static __device__ void add(float acc[K][V], float w, const float x[K][V]) {
#pragma unroll
		for (int k = 0; k < K; k++)
#pragma unroll
			for (int i = 0; i < V; i++) acc[k][i] += w * x[k][i];
	}

	// How many rows are on their way before the first is used.
	static const int U = K * V >= 16 ? 2 : G < 8 || K > 1 ? 4 : 8;

	// Adds n rows, lane k having the number and the weight of the k-th. Beyond the last, that one is read again,
	// which costs nothing and has no branch between loads.
	template <class T> __device__ void sum(float acc[K][V], int n, u32 j, float w, const T *src, i64 stride) const {
		for (int k = 0; k < n; k += U) {
			Raw<T, V> x[U][K];
#pragma unroll
			for (int u = 0; u < U; u++) {
				u32 row = __shfl_sync(mask, j, k + u < n ? k + u : n - 1, G);
				fetch(x[u], src + row * stride);
			}
#pragma unroll
			for (int u = 0; u < U; u++) {
				float by = __shfl_sync(mask, w, k + u, G), y[K][V];
				floats(y, x[u]);
				if (k + u < n) add(acc, by, y);
			}
		}
	}

	static __device__ void clear(float acc[K][V]) {
#pragma unroll
		for (int k = 0; k < K; k++)
#pragma unroll
			for (int i = 0; i < V; i++) acc[k][i] = 0;
	}

	__device__ void write(const Mat &m, i64 row, i64 from, const float x[K][V]) const {
#pragma unroll
		for (int k = 0; k < K; k++)
			if (ok[k]) storeTo<V>(m, row, from + col[k], x[k]);
	}

	__device__ void part(float *p, const float x[K][V]) const {
#pragma unroll
		for (int k = 0; k < K; k++)
			if (ok[k])
				for (int i = 0; i < V; i++) p[col[k] + i] = x[k][i];
	}
};

// The layouts that are compiled: type, V, G, K.
#define LAYOUTS(X) \
	X(f32, float, 4, 4, 1) X(f32, float, 4, 8, 1) X(f32, float, 4, 16, 1) X(f32, float, 4, 32, 1) X(f32, float, 4, 32, 2) \
	X(f32, float, 2, 32, 4) X(f32, float, 1, 8, 1) X(f32, float, 1, 32, 1) X(f32, float, 1, 32, 2) \
	X(bf16, bf16, 4, 8, 1) X(bf16, bf16, 8, 8, 1) X(bf16, bf16, 8, 16, 1) X(bf16, bf16, 8, 32, 1) \
	X(bf16, bf16, 2, 32, 4) X(bf16, bf16, 1, 8, 1) X(bf16, bf16, 1, 32, 1) X(bf16, bf16, 1, 32, 2)
