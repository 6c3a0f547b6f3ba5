// Sparse times dense, and the joining of long rows.
#include "group.cuh"

struct AggregateArgs {
	Rows rows;
	Mat dst, src;
	const float *value, *rowScale, *colScale, *selfScale;
	double self;
	i64 first, add;
};

DEV float selfWeight(const AggregateArgs &a, i64 row) {
	i64 i = a.first + row;
	return (float)a.self * (a.colScale ? a.colScale[i] : 1.f) * (a.selfScale ? a.selfScale[i] : 1.f);
}

template <class T, int V, int G, int K> DEV void aggregate(const AggregateArgs &a) {
	typedef Group<V, G, K> Lanes;
	i64 task = Lanes::task();
	Span s;
	if (task >= a.rows.n || !spanOf(a.rows, task, s)) return;
	Lanes g(a.src.cols);
	const T *src = (const T *)a.src.p;
	float acc[K][V];
	g.clear(acc);
	// Every lane finds the row and the weight of one entry; then all lanes go through these rows together. The next
	// entries are on their way meanwhile: a row of many is a chain of waits otherwise.
	u32 next = s.lo + g.lane < s.hi ? a.rows.index[s.lo + g.lane] : 0;
	for (i64 e = s.lo; e < s.hi; e += G) {
		int n = s.hi - e < G ? (int)(s.hi - e) : G;
		u32 j = next;
		float w = 0;
		if (e + G + g.lane < s.hi) next = a.rows.index[e + G + g.lane];
		if (g.lane < n) w = (a.value ? a.value[e + g.lane] : 1.f) * (a.colScale ? a.colScale[j] : 1.f);
		g.sum(acc, n, j, w, src, a.src.stride);
	}
	if (a.rows.segs) {
		g.part(a.rows.part + task * a.src.cols, acc);
		return;
	}
	if (a.self != 0) {
		float x[K][V];
		g.read(x, src + (a.first + s.row) * a.src.stride);
		g.add(acc, selfWeight(a, s.row), x);
	}
	float by = a.rowScale ? a.rowScale[s.row] : 1.f;
#pragma unroll
	for (int k = 0; k < K; k++) {
		if (!g.ok[k]) continue;
		float y[V];
		if (a.add) loadFrom<V>(y, a.dst, s.row, g.col[k]);
		for (int i = 0; i < V; i++) acc[k][i] = a.add ? y[i] + by * acc[k][i] : by * acc[k][i];
		storeTo<V>(a.dst, s.row, g.col[k], acc[k]);
	}
}

#define AGGREGATE(name, T, V, G, K) \
	KERNEL(aggregate_##name##_##V##_##G##_##K, AggregateArgs) { aggregate<T, V, G, K>(a); }
LAYOUTS(AGGREGATE)

// Long rows: the sums of their pieces, in order, and what follows them.
struct JoinArgs {
	const float *part;
	const i64 *longs; // row, first piece, how many
	i64 n, cols, max;
	const u32 *args; // of maxima
	u32 *arg;
	AggregateArgs to;
};

KERNEL(join_rows, JoinArgs) {
	i64 c = threadId(), l = blockIdx.y;
	if (c >= a.cols) return;
	i64 row = a.longs[3 * l], p = a.longs[3 * l + 1], n = a.longs[3 * l + 2];
	float sum = a.part[p * a.cols + c];
	if (a.max) {
		u32 at = a.args[p * a.cols + c];
		for (i64 k = p + 1; k < p + n; k++)
			if (a.part[k * a.cols + c] > sum) sum = a.part[k * a.cols + c], at = a.args[k * a.cols + c];
		a.arg[row * a.cols + c] = at;
	} else
		for (i64 k = p + 1; k < p + n; k++) sum += a.part[k * a.cols + c];
	const AggregateArgs &t = a.to;
	if (t.self != 0) sum += selfWeight(t, row) * get(t.src, t.first + row, c);
	if (t.rowScale) sum *= t.rowScale[row];
	put(t.dst, row, c, t.add ? get(t.dst, row, c) + sum : sum);
}

// Largest number of each column: a warp a row and 32 columns.
struct MaxArgs {
	Rows rows;
	Mat dst, src;
	u32 *arg, *partArg;
};

KERNEL(aggregate_max, MaxArgs) {
	i64 task = threadId() / 32, c = blockIdx.y * 32 + threadIdx.x % 32, cols = a.src.cols;
	Span s;
	if (task >= a.rows.n || !spanOf(a.rows, task, s) || c >= cols) return;
	float best = 0;
	u32 at = ~0u;
	for (i64 e = s.lo; e < s.hi; e++) {
		u32 j = a.rows.index[e];
		float x = get(a.src, j, c);
		if (at == ~0u || x > best) best = x, at = j;
	}
	if (a.rows.segs) {
		a.rows.part[task * cols + c] = best, a.partArg[task * cols + c] = at;
		return;
	}
	put(a.dst, s.row, c, best);
	a.arg[s.row * cols + c] = at;
}

// dst is dsrc, src is ddst; entries of a row are in order, so that one given twice is beside its twin.
KERNEL(aggregate_max_grad, MaxArgs) {
	i64 task = threadId() / 32, c = blockIdx.y * 32 + threadIdx.x % 32, cols = a.src.cols;
	Span s;
	if (task >= a.rows.n || !spanOf(a.rows, task, s) || c >= cols) return;
	float sum = 0;
	i64 begin = a.rows.ptr[s.row];
	for (i64 e = s.lo; e < s.hi; e++) {
		u32 i = a.rows.index[e];
		if (e > begin && a.rows.index[e - 1] == i) continue;
		if (a.arg[i * cols + c] == (u32)s.row) sum += get(a.src, i, c);
	}
	if (a.rows.segs) a.rows.part[task * cols + c] = sum;
	else put(a.dst, s.row, c, sum);
}

struct DropValuesArgs {
	const i64 *ptr;
	const u32 *index;
	const float *value;
	Mat dst;
	Drop drop;
	i64 rows, transposed;
};

KERNEL(dropout_values, DropValuesArgs) {
	i64 r = threadId() / 32;
	if (r >= a.rows) return;
	for (i64 e = a.ptr[r] + threadIdx.x % 32; e < a.ptr[r + 1]; e += 32) {
		i64 row = a.transposed ? (i64)a.index[e] : r;
		u32 col = a.transposed ? (u32)r : a.index[e];
		Draws d = drawsOf(a.drop, row);
		float f = a.drop.threshold ? factor(a.drop, d, col) : 1.f;
		put(a.dst, e, 0, (a.value ? a.value[e] : 1.f) * f);
	}
}
