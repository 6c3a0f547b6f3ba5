// Layers whose messages depend on both ends of an edge, or on the edge: a warp a row and 32 columns (or a
// head), numbers one by one.
#include "common.cuh"

struct EdgeArgs {
	Rows rows;
	Mat dst, z, right, ddst, film; // by what the kernel is for
	const float *a;                // of dynamic attention
	Mat alpha, de, delta;
	i64 heads, width;
	double slope;
	Drop drop;
	const u32 *srcIds, *perm;
	Mat features, weight;
	const float *bias;
	const i64 *ptr; // of adj, where rows are the transpose's
	i64 piece, kind, add;
	double *part; // pieces x 1 x columns
	i64 which;
};

// What an edge's features add to a column.
DEV float edgeTerm(const EdgeArgs &a, i64 e, i64 c) {
	if (!a.features.p) return 0;
	float t = a.bias ? a.bias[c] : 0.f;
	for (i64 k = 0; k < a.features.cols; k++) t += a.features.f32(e)[k] * a.weight.f32(k)[c];
	return t;
}

// Scores of dynamic attention, into alpha.
KERNEL(dynamic_score, EdgeArgs) {
	i64 t = threadId() / 32, task = t / a.heads, h = t % a.heads;
	Span s;
	if (task >= a.rows.n || !spanOf(a.rows, task, s)) return;
	for (i64 e = s.lo; e < s.hi; e++) {
		u32 j = a.rows.index[e];
		float sum = 0;
		for (i64 c = h * a.width + threadIdx.x % 32; c < (h + 1) * a.width; c += 32)
			sum += a.a[c] * leaky(get(a.z, j, c) + get(a.right, s.row, c) + edgeTerm(a, e, c), (float)a.slope);
		sum = warpSum(sum);
		if (threadIdx.x % 32 == 0) a.alpha.f32(e)[h] = sum;
	}
}

// Products of rows of right and of z, into alpha.
KERNEL(edge_dot, EdgeArgs) {
	i64 t = threadId() / 32, task = t / a.heads, h = t % a.heads;
	Span s;
	if (task >= a.rows.n || !spanOf(a.rows, task, s)) return;
	for (i64 e = s.lo; e < s.hi; e++) {
		u32 j = a.rows.index[e];
		float sum = 0;
		for (i64 c = h * a.width + threadIdx.x % 32; c < (h + 1) * a.width; c += 32)
			sum += get(a.z, j, c) * get(a.right, s.row, c);
		sum = warpSum(sum);
		if (threadIdx.x % 32 == 0) a.alpha.f32(e)[h] = sum;
	}
}

// Gradients of scores, into de.
KERNEL(dynamic_score_grad, EdgeArgs) {
	i64 t = threadId() / 32, task = t / a.heads, h = t % a.heads;
	Span s;
	if (task >= a.rows.n || !spanOf(a.rows, task, s)) return;
	u64 own = drawsOf(a.drop, s.row).own;
	for (i64 e = s.lo; e < s.hi; e++) {
		u32 j = a.rows.index[e];
		float d = 0;
		for (i64 c = h * a.width + threadIdx.x % 32; c < (h + 1) * a.width; c += 32)
			d += get(a.z, j, c) * get(a.ddst, s.row, c);
		d = warpSum(d);
		float p = a.alpha.f32(e)[h];
		float drop = coefficient(a.drop, own, a.srcIds ? a.srcIds[j] : j, h);
		float de = p == 1.f ? 0.f : p * (drop * d - a.delta.f32(s.row)[h]);
		if (threadIdx.x % 32 == 0) a.de.f32(e)[h] = de;
	}
}

// One column of a row's sum over its entries.
template <class F> DEV void columnOfRow(const EdgeArgs &a, i64 cols, F f) {
	i64 task = threadId() / 32, c = blockIdx.y * 32 + threadIdx.x % 32;
	Span s;
	if (task >= a.rows.n || !spanOf(a.rows, task, s) || c >= cols) return;
	float sum = f(s, c);
	if (a.rows.segs) a.rows.part[task * cols + c] = sum;
	else put(a.dst, s.row, c, a.add ? get(a.dst, s.row, c) + sum : sum);
}

// Sums of rows of z by numbers of entries, de; with perm rows are the transpose's.
KERNEL(edge_dot_grad, EdgeArgs) {
	columnOfRow(a, a.z.cols, [&](const Span &s, i64 c) {
		float sum = 0;
		for (i64 e = s.lo; e < s.hi; e++)
			sum += a.de.f32(a.perm ? a.perm[e] : e)[c / a.width] * get(a.z, a.rows.index[e], c);
		return sum;
	});
}

DEV float dynamicTerm(const EdgeArgs &a, i64 i, u32 j, i64 e, i64 c) {
	float s = get(a.z, j, c) + get(a.right, i, c) + edgeTerm(a, e, c);
	float ds = a.de.f32(e)[c / a.width] * a.a[c];
	return s > 0 ? ds : ds * (float)a.slope;
}

// dst is dright.
KERNEL(dynamic_grad_target, EdgeArgs) {
	columnOfRow(a, a.z.cols, [&](const Span &s, i64 c) {
		float sum = 0;
		for (i64 e = s.lo; e < s.hi; e++) sum += dynamicTerm(a, s.row, a.rows.index[e], e, c);
		return sum;
	});
}

// dst is dz, rows are the transpose's.
KERNEL(dynamic_grad_source, EdgeArgs) {
	columnOfRow(a, a.z.cols, [&](const Span &s, i64 c) {
		float sum = 0;
		u32 source = a.srcIds ? a.srcIds[s.row] : (u32)s.row;
		i64 h = c / a.width;
		for (i64 t = s.lo; t < s.hi; t++) {
			u32 i = a.rows.index[t];
			i64 e = a.perm[t];
			float drop = a.drop.threshold ? coefficient(a.drop, drawsOf(a.drop, i).own, source, h) : 1.f;
			sum += a.alpha.f32(e)[h] * drop * get(a.ddst, i, c) + dynamicTerm(a, i, (u32)s.row, e, c);
		}
		return sum;
	});
}

KERNEL(film_mean, EdgeArgs) {
	columnOfRow(a, a.z.cols, [&](const Span &s, i64 c) {
		float sum = 0, beta = get(a.film, s.row, c), gamma = get(a.film, s.row, a.z.cols + c);
		for (i64 e = s.lo; e < s.hi; e++) sum += fmaxf(0.f, gamma * get(a.z, a.rows.index[e], c) + beta);
		i64 n = a.rows.ptr[s.row + 1] - a.rows.ptr[s.row];
		return n > 0 ? sum / (float)n : 0.f;
	});
}

// dst is dfilm: the gradient of beta, then that of gamma.
KERNEL(film_grad_target, EdgeArgs) {
	columnOfRow(a, 2 * a.z.cols, [&](const Span &s, i64 at) {
		i64 w = a.z.cols, c = at % w;
		float sum = 0, beta = get(a.film, s.row, c), gamma = get(a.film, s.row, w + c);
		for (i64 e = s.lo; e < s.hi; e++) {
			float x = get(a.z, a.rows.index[e], c);
			if (gamma * x + beta > 0) sum += at < w ? 1.f : x;
		}
		i64 n = a.rows.ptr[s.row + 1] - a.rows.ptr[s.row];
		return n > 0 ? sum * get(a.ddst, s.row, c) / (float)n : 0.f;
	});
}

// dst is dz, rows are the transpose's.
KERNEL(film_grad_source, EdgeArgs) {
	columnOfRow(a, a.z.cols, [&](const Span &s, i64 c) {
		float sum = 0, x = get(a.z, s.row, c);
		for (i64 e = s.lo; e < s.hi; e++) {
			u32 i = a.rows.index[e];
			float beta = get(a.film, i, c), gamma = get(a.film, i, a.z.cols + c);
			if (gamma * x + beta > 0) sum += get(a.ddst, i, c) / (float)(a.ptr[i + 1] - a.ptr[i]) * gamma;
		}
		return sum;
	});
}

KERNEL(edge_sum, EdgeArgs) {
	columnOfRow(a, a.z.cols, [&](const Span &s, i64 c) {
		float sum = 0;
		for (i64 e = s.lo; e < s.hi; e++) sum += fmaxf(0.f, get(a.z, a.rows.index[e], c) + edgeTerm(a, e, c));
		return sum;
	});
}

// dst is dsrc, rows are the transpose's.
KERNEL(edge_sum_grad, EdgeArgs) {
	columnOfRow(a, a.z.cols, [&](const Span &s, i64 c) {
		float sum = 0, x = get(a.z, s.row, c);
		for (i64 t = s.lo; t < s.hi; t++)
			if (x + edgeTerm(a, a.perm[t], c) > 0) sum += get(a.ddst, a.rows.index[t], c);
		return sum;
	});
}

// Sums over all entries, column by column: the gradients of dynamic attention's vector (which is 0) and of
// the edges' map (row which - 1 of its weight; of its bias with 0). A block has a piece of the entries.
KERNEL(edge_columns, EdgeArgs) {
	__shared__ double all[8][32];
	i64 cols = a.z.cols, c = blockIdx.x * 32 + threadIdx.x, end = a.rows.ptr[a.rows.n];
	i64 lo = a.rows.ptr[0] + blockIdx.y * a.piece, hi = lo + a.piece;
	if (hi > end) hi = end;
	i64 each = (a.piece + 7) / 8;
	lo += threadIdx.y * each;
	if (lo + each < hi) hi = lo + each;
	double sum = 0;
	if (c < cols && lo < hi) {
		i64 row = 0, above = a.rows.n; // the last row that begins at or before lo
		while (above - row > 1) {
			i64 mid = (row + above) / 2;
			if (a.rows.ptr[mid] <= lo) row = mid;
			else above = mid;
		}
		for (i64 e = lo; e < hi; e++) {
			while (a.rows.ptr[row + 1] <= e) row++;
			u32 j = a.rows.index[e];
			float x;
			if (a.kind == 0) {
				float s = get(a.z, j, c) + get(a.right, row, c) + edgeTerm(a, e, c), de = a.de.f32(e)[c / a.width];
				x = a.which == 0 ? de * leaky(s, (float)a.slope) : de * a.a[c] * (s > 0 ? 1.f : (float)a.slope);
			} else
				x = get(a.z, j, c) + edgeTerm(a, e, c) > 0 ? get(a.ddst, row, c) : 0.f;
			if (a.which > 0) x *= a.features.f32(e)[a.which - 1];
			sum += x;
		}
	}
	all[threadIdx.y][threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.y == 0 && c < cols) {
		double t = 0;
		for (int y = 0; y < 8; y++) t += all[y][threadIdx.x];
		a.part[blockIdx.y * cols + c] = t;
	}
}
