// Attention over a graph's rows. Coefficients are computed where they are needed, from a row's maximum and
// the reciprocal of its sum, so that no array of entries x features is made, nor one of coefficients.
#include "group.cuh"

struct AttentionArgs {
	Rows rows;
	Mat dst, z, left, right, stat, delta, ddst, dscore; // dscore: dleft or dright
	i64 heads, width;
	double slope;
	Drop drop;
	const u32 *srcIds, *perm;
	Mat edge, dedge, alpha;
	float *partScore; // pieces x heads
};

DEV float preScore(const AttentionArgs &a, i64 i, u32 j, i64 e, i64 h) {
	float s = a.left.f32(j)[h] + a.right.f32(i)[h];
	return a.edge.p ? s + a.edge.f32(e)[h] : s;
}

DEV u32 sourceId(const AttentionArgs &a, u32 j) { return a.srcIds ? a.srcIds[j] : j; }

// The statistics of a row, by a team of T threads: of a warp, or of a block that has one long row.
template <int T> DEV float teamMax(float x) {
	x = warpMax(x);
	if (T == 32) return x;
	__shared__ float all[32];
	if (threadIdx.x % 32 == 0) all[threadIdx.x / 32] = x;
	__syncthreads();
	x = all[0];
	for (int w = 1; w < T / 32; w++) x = fmaxf(x, all[w]);
	__syncthreads();
	return x;
}

template <int T> DEV float teamSum(float x) {
	x = warpSum(x);
	if (T == 32) return x;
	__shared__ float all[32];
	if (threadIdx.x % 32 == 0) all[threadIdx.x / 32] = x;
	__syncthreads();
	x = 0;
	for (int w = 0; w < T / 32; w++) x += all[w];
	__syncthreads();
	return x;
}

// alpha, if given, has scores, which become coefficients; else they are computed, and the statistics are kept.
template <int T> DEV void rowStatistics(const AttentionArgs &a, i64 i, i64 lo, i64 hi) {
	int t = threadIdx.x % T;
	float slope = (float)a.slope;
	for (i64 h = 0; h < a.heads; h++) {
		float top = -INF, sum = 0;
		for (i64 e = lo + t; e < hi; e += T)
			top = fmaxf(top, a.alpha.p ? a.alpha.f32(e)[h] : leaky(preScore(a, i, a.rows.index[e], e, h), slope));
		top = teamMax<T>(top);
		for (i64 e = lo + t; e < hi; e += T)
			sum += expf((a.alpha.p ? a.alpha.f32(e)[h] : leaky(preScore(a, i, a.rows.index[e], e, h), slope)) - top);
		sum = teamSum<T>(sum);
		float inv = 1.f / sum;
		if (a.alpha.p)
			for (i64 e = lo + t; e < hi; e += T) a.alpha.f32(e)[h] = expf(a.alpha.f32(e)[h] - top) * inv;
		else if (t == 0)
			a.stat.f32(i)[h] = hi > lo ? top : 0.f, a.stat.f32(i)[a.heads + h] = hi > lo ? inv : 1.f;
	}
}

KERNEL(attend_stat, AttentionArgs) {
	i64 i = threadId() / 32;
	Span s;
	if (i >= a.rows.n || !spanOf(a.rows, i, s)) return;
	rowStatistics<32>(a, s.row, s.lo, s.hi);
}

// segs are long rows here: row, first entry, end.
KERNEL(attend_stat_long, AttentionArgs) {
	Span s;
	spanOf(a.rows, blockIdx.x, s);
	rowStatistics<256>(a, s.row, s.lo, s.hi);
}

template <class T, int V, int G, int K> DEV void attend(const AttentionArgs &a) {
	typedef Group<V, G, K> Lanes;
	i64 task = Lanes::task() / a.heads, h = Lanes::task() % a.heads, from = h * a.width;
	Span s;
	if (task >= a.rows.n || !spanOf(a.rows, task, s)) return;
	Lanes g(a.width);
	const T *z = (const T *)a.z.p + from;
	float acc[K][V], top = 0, inv = 0, slope = (float)a.slope;
	g.clear(acc);
	if (!a.alpha.p) top = a.stat.f32(s.row)[h], inv = a.stat.f32(s.row)[a.heads + h];
	u64 own = drawsOf(a.drop, s.row).own;
	for (i64 e0 = s.lo; e0 < s.hi; e0 += G) {
		int n = s.hi - e0 < G ? (int)(s.hi - e0) : G;
		u32 j = 0;
		float w = 0;
		if (g.lane < n) {
			i64 e = e0 + g.lane;
			j = a.rows.index[e];
			w = a.alpha.p ? a.alpha.f32(e)[h] : expf(leaky(preScore(a, s.row, j, e, h), slope) - top) * inv;
			w *= coefficient(a.drop, own, sourceId(a, j), h);
		}
		g.sum(acc, n, j, w, z, a.z.stride);
	}
	if (a.rows.segs) g.part(a.rows.part + task * a.heads * a.width + from, acc);
	else g.write(a.dst, s.row, from, acc);
}

// The softmax's backward terms: delta = dst · ddst, of each row and head.
template <int V> DEV void attendDelta(const AttentionArgs &a) {
	i64 task = threadId() / 8, r = task / a.heads, h = task % a.heads;
	u32 mask = 0xffu << (threadIdx.x % 32 / 8 * 8);
	if (r >= a.dst.rows) return;
	float s = 0;
	for (i64 c = threadIdx.x % 8 * V; c < a.width; c += 8 * V) {
		float x[V], y[V];
		loadFrom<V>(x, a.dst, r, h * a.width + c);
		loadFrom<V>(y, a.ddst, r, h * a.width + c);
		for (int i = 0; i < V; i++) s += x[i] * y[i];
	}
	s = groupSum<8>(s, mask);
	if (threadIdx.x % 8 == 0) a.delta.f32(r)[h] = s;
}

KERNEL(attend_delta_4, AttentionArgs) { attendDelta<4>(a); }
KERNEL(attend_delta_1, AttentionArgs) { attendDelta<1>(a); }

// Two softmaxes of a row become one, eight lanes a row and head: those of dst and stat, and of z and delta, which is of
// the entries of rows. All lanes have read the statistics when the first writes them: they meet in groupSum.
KERNEL(attend_join, AttentionArgs) {
	i64 task = threadId() / 8, r = task / a.heads, h = task % a.heads;
	u32 mask = 0xffu << (threadIdx.x % 32 / 8 * 8);
	if (r >= a.dst.rows || a.rows.ptr[r] == a.rows.ptr[r + 1]) return;
	float *stat = a.stat.f32(r) + h, *other = a.delta.f32(r) + h;
	float inv = stat[a.heads], top = inv > 0 ? fmaxf(stat[0], other[0]) : other[0];
	float before = inv > 0 ? expf(stat[0] - top) / inv : 0.f, now = expf(other[0] - top) / other[a.heads];
	float sum = groupSum<8>(before + now, mask) / 8;
	for (i64 c = h * a.width + threadIdx.x % 8; c < (h + 1) * a.width; c += 8)
		put(a.dst, r, c, before / sum * get(a.dst, r, c) + now / sum * get(a.z, r, c));
	if (threadIdx.x % 8 == 0) stat[0] = top, stat[a.heads] = inv > 0 ? 1.f / sum : other[a.heads];
}

// scoreGrad is the gradient of a score: exactly zero where the coefficient is 1.
DEV float scoreGrad(float alpha, float dalpha, float delta) { return alpha == 1.f ? 0.f : alpha * (dalpha - delta); }

// A head may be wider than a group has columns: its products are then read again.
template <class T, int G> DEV float wideDot(const T *x, const T *y, i64 width) {
	float s = 0;
	for (i64 c = threadIdx.x % G; c < width; c += G) s += tofloat(x[c]) * tofloat(y[c]);
	return s;
}

// By source j: dz_j and dleft_j, over the rows i that have it.
template <class T, int V, int G, int K> DEV void attendGradSource(const AttentionArgs &a) {
	typedef Group<V, G, K> Lanes;
	i64 task = Lanes::task() / a.heads, h = Lanes::task() % a.heads, from = h * a.width;
	Span s;
	if (task >= a.rows.n || !spanOf(a.rows, task, s)) return;
	Lanes g(a.width);
	bool wide = gridDim.y > 1;
	const T *ddst = (const T *)a.ddst.p + from, *own = (const T *)a.z.p + s.row * a.z.stride + from;
	float acc[K][V], z[K][V], left = a.left.f32(s.row)[h], slope = (float)a.slope, dleft = 0;
	g.clear(acc);
	g.read(z, own);
	u32 source = sourceId(a, (u32)s.row);
	const int U = Lanes::U < 4 ? Lanes::U : 4;
	for (i64 e0 = s.lo; e0 < s.hi; e0 += G) {
		int n = s.hi - e0 < G ? (int)(s.hi - e0) : G;
		u32 row = 0;
		float alpha = 0, drop = 0, delta = 0, bend = 0;
		if (g.lane < n) {
			row = a.rows.index[e0 + g.lane];
			float pre = left + a.right.f32(row)[h];
			if (a.edge.p) pre += a.edge.f32(a.perm[e0 + g.lane])[h];
			bend = pre > 0 ? 1.f : slope;
			alpha = expf(leaky(pre, slope) - a.stat.f32(row)[h]) * a.stat.f32(row)[a.heads + h];
			drop = a.drop.threshold ? coefficient(a.drop, drawsOf(a.drop, row).own, source, h) : 1.f;
			delta = a.delta.f32(row)[h];
		}
		for (int k = 0; k < n; k += U) {
			Raw<T, V> raw[U][K];
			u32 i[U];
#pragma unroll
			for (int u = 0; u < U; u++) {
				i[u] = __shfl_sync(g.mask, row, k + u < n ? k + u : n - 1, G);
				g.fetch(raw[u], ddst + i[u] * a.ddst.stride);
			}
#pragma unroll
			for (int u = 0; u < U; u++) {
				float p = __shfl_sync(g.mask, alpha, k + u, G), f = __shfl_sync(g.mask, drop, k + u, G), x[K][V];
				g.floats(x, raw[u]);
				float product = wide ? wideDot<T, G>(ddst + i[u] * a.ddst.stride, own, a.width) : g.dot(x, z);
				float d = groupSum<G>(product, g.mask);
				if (g.lane == k + u && k + u < n) dleft += bend * scoreGrad(p, f * d, delta);
				if (k + u < n) g.add(acc, p * f, x);
			}
		}
	}
	dleft = groupSum<G>(dleft, g.mask);
	bool mine = g.lane == 0 && blockIdx.y == 0;
	if (a.rows.segs) {
		g.part(a.rows.part + task * a.heads * a.width + from, acc);
		if (mine) a.partScore[task * a.heads + h] = dleft;
		return;
	}
	g.write(a.dst, s.row, from, acc);
	if (mine) a.dscore.f32(s.row)[h] = dleft;
}

// By destination i: dright_i, and the gradients of what edges add to scores.
template <class T, int V, int G, int K> DEV void attendGradTarget(const AttentionArgs &a) {
	typedef Group<V, G, K> Lanes;
	i64 task = Lanes::task() / a.heads, h = Lanes::task() % a.heads, from = h * a.width;
	Span s;
	if (task >= a.rows.n || !spanOf(a.rows, task, s)) return;
	Lanes g(a.width);
	bool wide = gridDim.y > 1;
	const T *z = (const T *)a.z.p + from, *own = (const T *)a.ddst.p + s.row * a.ddst.stride + from;
	float y[K][V], slope = (float)a.slope, dright = 0;
	float top = a.stat.f32(s.row)[h], inv = a.stat.f32(s.row)[a.heads + h], delta = a.delta.f32(s.row)[h];
	g.read(y, own);
	u64 key = drawsOf(a.drop, s.row).own;
	bool mine = g.lane == 0 && blockIdx.y == 0;
	const int U = Lanes::U < 4 ? Lanes::U : 4;
	for (i64 e0 = s.lo; e0 < s.hi; e0 += G) {
		int n = s.hi - e0 < G ? (int)(s.hi - e0) : G;
		u32 row = 0;
		float alpha = 0, drop = 0, bend = 0;
		if (g.lane < n) {
			row = a.rows.index[e0 + g.lane];
			float pre = preScore(a, s.row, row, e0 + g.lane, h);
			bend = pre > 0 ? 1.f : slope;
			alpha = expf(leaky(pre, slope) - top) * inv;
			drop = coefficient(a.drop, key, sourceId(a, row), h);
		}
		float de = 0;
		for (int k = 0; k < n; k += U) {
			Raw<T, V> raw[U][K];
			u32 j[U];
#pragma unroll
			for (int u = 0; u < U; u++) {
				j[u] = __shfl_sync(g.mask, row, k + u < n ? k + u : n - 1, G);
				g.fetch(raw[u], z + j[u] * a.z.stride);
			}
#pragma unroll
			for (int u = 0; u < U; u++) {
				float x[K][V];
				g.floats(x, raw[u]);
				float product = wide ? wideDot<T, G>(z + j[u] * a.z.stride, own, a.width) : g.dot(x, y);
				float d = groupSum<G>(product, g.mask);
				if (g.lane == k + u && k + u < n) de = bend * scoreGrad(alpha, drop * d, delta);
			}
		}
		dright += de;
		if (a.dedge.p && g.lane < n && blockIdx.y == 0) a.dedge.f32(e0 + g.lane)[h] = de;
	}
	dright = groupSum<G>(dright, g.mask);
	if (!mine) return;
	if (a.rows.segs) a.partScore[task * a.heads + h] = dright;
	else a.dscore.f32(s.row)[h] = dright;
}

#define ATTEND(name, T, V, G, K) \
	KERNEL(attend_##name##_##V##_##G##_##K, AttentionArgs) { attend<T, V, G, K>(a); } \
	KERNEL(attend_grad_source_##name##_##V##_##G##_##K, AttentionArgs) { attendGradSource<T, V, G, K>(a); } \
	KERNEL(attend_grad_target_##name##_##V##_##G##_##K, AttentionArgs) { attendGradTarget<T, V, G, K>(a); }
LAYOUTS(ATTEND)

// Scores of rows: z times vectors, eight lanes a row and head.
struct HeadArgs {
	Mat z, score[3];
	const float *vector[3];
	i64 n, heads, width;
};

template <int V> DEV void headDot(const HeadArgs &a) {
	i64 task = threadId() / 8, r = task / a.heads, h = task % a.heads;
	u32 mask = 0xffu << (threadIdx.x % 32 / 8 * 8);
	if (r >= a.z.rows) return;
	float s[3] = {0, 0, 0};
	for (i64 c = threadIdx.x % 8 * V; c < a.width; c += 8 * V) {
		float x[V];
		loadFrom<V>(x, a.z, r, h * a.width + c);
#pragma unroll
		for (int d = 0; d < 3; d++)
			if (d < a.n)
				for (int i = 0; i < V; i++) s[d] += x[i] * a.vector[d][h * a.width + c + i];
	}
#pragma unroll
	for (int d = 0; d < 3; d++) {
		if (d >= a.n) continue;
		float sum = groupSum<8>(s[d], mask);
		if (threadIdx.x % 8 == 0 && r < a.score[d].rows) a.score[d].f32(r)[h] = sum;
	}
}

KERNEL(head_dot_4, HeadArgs) { headDot<4>(a); }
KERNEL(head_dot_1, HeadArgs) { headDot<1>(a); }

// z is dz: the scores' gradients times the vectors are added.
KERNEL(head_dot_grad, HeadArgs) {
	i64 t = threadId(), cols = a.heads * a.width, r = t / cols, c = t % cols;
	if (r >= a.z.rows) return;
	float x = get(a.z, r, c);
#pragma unroll
	for (int d = 0; d < 3; d++)
		if (d < a.n && r < a.score[d].rows) x += a.score[d].f32(r)[c / a.width] * a.vector[d][c];
	put(a.z, r, c, x);
}
