// A warp a row: layer norm, losses, softmax, marks, packing; and sums over rows.
#include "group.cuh"

struct LayerNormArgs {
	Mat y, stat, x, dy;
	const float *gamma, *beta;
	double eps;
	Epi epi;
};

KERNEL(layer_norm, LayerNormArgs) {
	i64 r = threadId() / 32;
	if (r >= a.x.rows) return;
	i64 n = a.x.cols;
	float mean = 0, sq = 0;
	for (i64 c = threadIdx.x % 32; c < n; c += 32) mean += get(a.x, r, c);
	mean = warpSum(mean) / (float)n;
	for (i64 c = threadIdx.x % 32; c < n; c += 32) {
		float d = get(a.x, r, c) - mean;
		sq += d * d;
	}
	float inv = 1.f / sqrtf(warpSum(sq) / (float)n + (float)a.eps);
	if (threadIdx.x % 32 == 0) a.stat.f32(r)[0] = mean, a.stat.f32(r)[1] = inv;
	Draws d = drawsOf(a.epi.drop, r);
	for (i64 c = threadIdx.x % 32; c < n; c += 32)
		put(a.y, r, c, finish(a.epi, d, (u32)c, (get(a.x, r, c) - mean) * inv * a.gamma[c] + a.beta[c]));
}

// y is dx.
KERNEL(layer_norm_grad, LayerNormArgs) {
	i64 r = threadId() / 32;
	if (r >= a.x.rows) return;
	i64 n = a.x.cols;
	float mean = a.stat.f32(r)[0], inv = a.stat.f32(r)[1], s0 = 0, s1 = 0;
	for (i64 c = threadIdx.x % 32; c < n; c += 32) {
		float g = get(a.dy, r, c) * a.gamma[c];
		s0 += g, s1 += g * (get(a.x, r, c) - mean) * inv;
	}
	s0 = warpSum(s0) / (float)n, s1 = warpSum(s1) / (float)n;
	for (i64 c = threadIdx.x % 32; c < n; c += 32) {
		float hat = (get(a.x, r, c) - mean) * inv;
		put(a.y, r, c, inv * (get(a.dy, r, c) * a.gamma[c] - s0 - hat * s1));
	}
}

// A sum of each of up to three kinds over all that a block's warps have seen, in order of warps.
template <int S> DEV void blockSums(double *part, const double *s) {
	__shared__ double all[8][S];
	if (threadIdx.x % 32 == 0)
		for (int i = 0; i < S; i++) all[threadIdx.x / 32][i] = s[i];
	__syncthreads();
	if (threadIdx.x < S) {
		double sum = 0;
		for (int w = 0; w < 8; w++) sum += all[w][threadIdx.x];
		part[blockIdx.x * S + threadIdx.x] = sum;
	}
}

// The largest of a row and the first column that has it.
DEV void largest(const Mat &m, i64 r, float &best, i64 &at) {
	best = -INF, at = m.cols;
	for (i64 c = threadIdx.x % 32; c < m.cols; c += 32) {
		float x = get(m, r, c);
		if (at == m.cols || x > best) best = x, at = c;
	}
	for (int o = 16; o > 0; o /= 2) {
		float x = __shfl_xor_sync(0xffffffffu, best, o);
		i64 c = __shfl_xor_sync(0xffffffffu, at, o);
		if (c < m.cols && (at == m.cols || x > best || (x == best && c < at))) best = x, at = c;
	}
}

struct LossArgs {
	Mat logits, grad, targets;
	const u32 *labels, *rows;
	i64 n, kind, compact; // compact: gradients of row rows[k] go to row k
	double scale;
	double *part;
};

DEV double crossEntropy(const LossArgs &a, i64 r, i64 to, double &right) {
	i64 n = a.logits.cols, label = a.labels[r], at;
	float top, known = get(a.logits, r, label), sum = 0;
	largest(a.logits, r, top, at);
	for (i64 c = threadIdx.x % 32; c < n; c += 32) sum += expf(get(a.logits, r, c) - top);
	sum = warpSum(sum);
	if (a.grad.p) {
		float s = (float)a.scale / sum;
		for (i64 c = threadIdx.x % 32; c < n; c += 32) {
			float g = s * expf(get(a.logits, r, c) - top);
			put(a.grad, to, c, c == label ? g - (float)a.scale : g);
		}
	}
	right += at == label;
	return a.scale * ((double)logf(sum) + top - known);
}

DEV double elementLoss(const LossArgs &a, i64 r, i64 to) {
	double sum = 0;
	for (i64 c = threadIdx.x % 32; c < a.logits.cols; c += 32) {
		float x = get(a.logits, r, c), t = get(a.targets, r, c), g;
		if (a.kind == 1) {
			sum += a.scale * (double)(fmaxf(x, 0.f) - x * t + log1pf(expf(-fabsf(x))));
			g = (float)a.scale * (1.f / (1.f + expf(-x)) - t);
		} else {
			sum += a.scale * (double)(x - t) * (double)(x - t);
			g = 2.f * (float)a.scale * (x - t);
		}
		if (a.grad.p) put(a.grad, to, c, g);
	}
	return warpSum(sum);
}

// kind: as tensor.LossKind.
KERNEL(loss, LossArgs) {
	double s[2] = {0, 0};
	for (i64 k = threadId() / 32; k < a.n; k += (i64)gridDim.x * 8) {
		i64 r = a.rows ? a.rows[k] : k, to = a.compact ? k : r;
		s[0] += a.kind == 0 ? crossEntropy(a, r, to, s[1]) : elementLoss(a, r, to);
	}
	blockSums<2>(a.part, s);
}

KERNEL(count_marks, LossArgs) {
	double s[3] = {0, 0, 0};
	for (i64 k = threadId() / 32; k < a.n; k += (i64)gridDim.x * 8) {
		i64 r = a.rows ? a.rows[k] : k;
		for (i64 c = threadIdx.x % 32; c < a.logits.cols; c += 32) {
			bool x = get(a.logits, r, c) > 0, y = get(a.targets, r, c) > 0.5f;
			s[0] += x, s[1] += y, s[2] += x && y;
		}
	}
	for (int i = 0; i < 3; i++) s[i] = warpSum(s[i]);
	blockSums<3>(a.part, s);
}

// The dot product of two matrices, logits and targets.
KERNEL(dot, LossArgs) {
	double s[1] = {0};
	for (i64 k = threadId() / 32; k < a.n; k += (i64)gridDim.x * 8)
		for (i64 c = threadIdx.x % 32; c < a.logits.cols; c += 32)
			s[0] += get64(a.logits, k, c) * get64(a.targets, k, c);
	s[0] = warpSum(s[0]);
	blockSums<1>(a.part, s);
}

struct SoftmaxArgs {
	Mat dst, src;
	u32 *at;
};

KERNEL(softmax, SoftmaxArgs) {
	i64 r = threadId() / 32, at;
	if (r >= a.src.rows) return;
	float top, sum = 0;
	largest(a.src, r, top, at);
	if (a.at) {
		if (threadIdx.x % 32 == 0) a.at[r] = (u32)(at == a.src.cols ? 0 : at);
		return;
	}
	for (i64 c = threadIdx.x % 32; c < a.src.cols; c += 32) sum += expf(get(a.src, r, c) - top);
	sum = warpSum(sum);
	for (i64 c = threadIdx.x % 32; c < a.src.cols; c += 32) put(a.dst, r, c, expf(get(a.src, r, c) - top) / sum);
}

struct PackArgs {
	Mat rows, residual;
	const u32 *at;
	u8 *bytes;
	i64 form; // as tensor.Packed
};

DEV float withResidual(const PackArgs &a, i64 r, i64 at, i64 c) {
	return get(a.rows, r, c) + (a.residual.p ? a.residual.f32(at)[c] : 0.f);
}

KERNEL(pack, PackArgs) {
	i64 r = threadId() / 32, n = a.rows.cols;
	if (r >= a.rows.rows) return;
	i64 at = a.at ? a.at[r] : r;
	if (a.form == 1) {
		for (i64 c = threadIdx.x % 32; c < n; c += 32) {
			float x = withResidual(a, r, at, c);
			u16 h = narrow(x);
			((u16 *)a.bytes)[r * n + c] = h;
			if (a.residual.p) a.residual.f32(at)[c] = x - widen(h);
		}
		return;
	}
	float top = 0;
	bool bad = false;
	for (i64 c = threadIdx.x % 32; c < n; c += 32) {
		float x = fabsf(withResidual(a, r, at, c));
		bad = bad || !(x <= 3.402823466e38f);
		top = fmaxf(top, x);
	}
	top = warpMax(bad ? INF : top);
	float scale = top > 0 ? fmaxf(top / 127.f, 1.17549435e-38f) : 0; // tensor.SmallestScale
	if (!(top <= 3.402823466e38f)) scale = __uint_as_float(0x7fc00000u);
	u8 *to = a.bytes + r * (4 + n);
	if (threadIdx.x % 32 < 4) to[threadIdx.x % 32] = (u8)(__float_as_uint(scale) >> 8 * (threadIdx.x % 32));
	for (i64 c = threadIdx.x % 32; c < n; c += 32) {
		float x = withResidual(a, r, at, c), q = 0;
		if (scale > 0) q = fmaxf(-127.f, fminf(127.f, rintf(x / scale)));
		to[4 + c] = (u8)(signed char)q;
		if (a.residual.p) a.residual.f32(at)[c] = x - q * scale;
	}
}

KERNEL(unpack, PackArgs) {
	i64 r = threadId() / 32, n = a.rows.cols;
	if (r >= a.rows.rows) return;
	if (a.form == 1) {
		for (i64 c = threadIdx.x % 32; c < n; c += 32) put(a.rows, r, c, widen(((const u16 *)a.bytes)[r * n + c]));
		return;
	}
	const u8 *from = a.bytes + r * (4 + n);
	float scale = __uint_as_float((u32)from[0] | (u32)from[1] << 8 | (u32)from[2] << 16 | (u32)from[3] << 24);
	for (i64 c = threadIdx.x % 32; c < n; c += 32) put(a.rows, r, c, (float)(signed char)from[4 + c] * scale);
}

// Sums over rows, column by column: a block has 32 columns and a piece of the rows. Each thread adds a few
// in float and those sums in double.
struct ColumnArgs {
	Mat x, y, mv, score;
	double eps;
	i64 width, piece;
	double *part; // pieces x sums x columns
	Mat dst;
	Epi epi;
};

// A lane has V columns beside each other; f takes up to four rows, eight apart, which are read before any is written.
template <int S, int V, class F> DEV void columnSums(const ColumnArgs &a, F f) {
	__shared__ double all[S][8][32 * V];
	i64 c = (blockIdx.x * 32 + threadIdx.x) * V, lo = blockIdx.y * a.piece, hi = lo + a.piece;
	if (hi > a.x.rows) hi = a.x.rows;
	double sum[S][V];
	for (int s = 0; s < S; s++)
		for (int i = 0; i < V; i++) sum[s][i] = 0;
	if (c < a.x.cols)
		for (i64 r0 = lo + threadIdx.y; r0 < hi; r0 += 8 * 16) {
			float few[S][V];
			for (int s = 0; s < S; s++)
				for (int i = 0; i < V; i++) few[s][i] = 0;
			i64 end = r0 + 8 * 16 < hi ? r0 + 8 * 16 : hi;
			for (i64 r = r0; r < end; r += 8 * 4) f(r, end, c, few);
			for (int s = 0; s < S; s++)
				for (int i = 0; i < V; i++) sum[s][i] += few[s][i];
		}
	for (int s = 0; s < S; s++)
		for (int i = 0; i < V; i++) all[s][threadIdx.y][threadIdx.x * V + i] = sum[s][i];
	__syncthreads();
	for (int t = threadIdx.y * 32 + threadIdx.x; t < S * 32 * V; t += 256) {
		i64 s = t / (32 * V), at = t % (32 * V), column = blockIdx.x * 32 * V + at;
		if (column >= a.x.cols) continue;
		double sum = 0;
		for (int y = 0; y < 8; y++) sum += all[s][y][at];
		a.part[(blockIdx.y * S + s) * a.x.cols + column] = sum;
	}
}

// Four rows, all on their way before the first is made floats.
template <class T, int V> DEV void fourRowsOf(float (*x)[V], const T *p, i64 stride, i64 r, i64 end) {
	Raw<T, V> raw[4];
#pragma unroll
	for (int q = 0; q < 4; q++) raw[q].fetch(p + (r + 8 * q < end ? r + 8 * q : r) * stride);
#pragma unroll
	for (int q = 0; q < 4; q++) raw[q].floats(x[q]);
}

template <int V> DEV void fourRows(float (*x)[V], const Mat &m, i64 r, i64 end, i64 c) {
	if (m.type == F32) fourRowsOf<float, V>(x, (const float *)m.p + c, m.stride, r, end);
	else if (m.type == BF16) fourRowsOf<bf16, V>(x, (const bf16 *)m.p + c, m.stride, r, end);
	else
		for (int q = 0; q < 4; q++) loadFrom<V>(x[q], m, r + 8 * q < end ? r + 8 * q : r, c);
}

template <int V> DEV void columnSum(const ColumnArgs &a) {
	columnSums<1, V>(a, [&](i64 r, i64 end, i64 c, float (*s)[V]) {
		float x[4][V];
		fourRows<V>(x, a.x, r, end, c);
#pragma unroll
		for (int q = 0; q < 4; q++)
			if (r + 8 * q < end)
				for (int i = 0; i < V; i++) s[0][i] += x[q][i];
	});
}

KERNEL(column_sum_4, ColumnArgs) { columnSum<4>(a); }
KERNEL(column_sum_1, ColumnArgs) { columnSum<1>(a); }

KERNEL(column_sums_1, ColumnArgs) {
	columnSums<2, 1>(a, [&](i64 first, i64 end, i64 c, float (*s)[1]) {
		for (i64 r = first; r < end && r < first + 32; r += 8) {
			float x = get(a.x, r, c);
			s[0][0] += x, s[1][0] += x * x;
		}
	});
}

// x is dy, y is x.
KERNEL(batch_norm_sums_1, ColumnArgs) {
	i64 col = blockIdx.x * 32 + threadIdx.x;
	float mean = 0, inv = 0;
	if (col < a.x.cols) mean = (float)a.mv.f64(0)[col], inv = (float)(1.0 / sqrt(a.mv.f64(1)[col] + a.eps));
	columnSums<2, 1>(a, [&](i64 first, i64 end, i64 c, float (*s)[1]) {
		for (i64 r = first; r < end && r < first + 32; r += 8) {
			float g = get(a.x, r, c);
			s[0][0] += g, s[1][0] += g * (get(a.y, r, c) - mean) * inv;
		}
	});
}

// x is dy, y is x, score the statistics: dgamma and dbeta.
KERNEL(layer_norm_sums_1, ColumnArgs) {
	columnSums<2, 1>(a, [&](i64 first, i64 end, i64 c, float (*s)[1]) {
		for (i64 r = first; r < end && r < first + 32; r += 8) {
			float g = get(a.x, r, c);
			s[0][0] += g * (get(a.y, r, c) - a.score.f32(r)[0]) * a.score.f32(r)[1], s[1][0] += g;
		}
	});
}

// x is z, score the gradients of the heads' scores.
KERNEL(head_sums_1, ColumnArgs) {
	columnSums<1, 1>(a, [&](i64 first, i64 end, i64 c, float (*s)[1]) {
		for (i64 r = first; r < end && r < first + 32; r += 8) s[0][0] += a.score.f32(r)[c / a.width] * get(a.x, r, c);
	});
}

// x is dy, y the result: dst = dx, and its sums.
template <int V> DEV void activateGradSums(const ColumnArgs &a) {
	float inverse = 1.f / (float)a.epi.drop.scale;
	columnSums<1, V>(a, [&](i64 first, i64 end, i64 c, float (*s)[V]) {
		float x[4][V], y[4][V], f[V];
		fourRows<V>(x, a.x, first, end, c);
		fourRows<V>(y, a.y, first, end, c);
#pragma unroll
		for (int q = 0; q < 4; q++) {
			i64 r = first + 8 * q;
			if (r >= end) continue;
			factors<V>(f, a.epi.drop, r, (u32)c);
			for (int i = 0; i < V; i++) x[q][i] *= f[i] * slope(a.epi.act, y[q][i] * inverse), s[0][i] += x[q][i];
			storeTo<V>(a.dst, r, c, x[q]);
		}
	});
}

KERNEL(activate_grad_sums_4, ColumnArgs) { activateGradSums<4>(a); }
KERNEL(activate_grad_sums_1, ColumnArgs) { activateGradSums<1>(a); }

struct FinishArgs {
	const double *part; // pieces x sums x columns
	i64 pieces, sums, cols, add;
	Mat dst[2]; // one of each sum, or one of as many rows
};

// The sums of pieces, eight threads a column, in order.
KERNEL(finish_sums, FinishArgs) {
	__shared__ double all[8][32];
	i64 c = blockIdx.x * 32 + threadIdx.x, s = blockIdx.y;
	double sum = 0;
	if (c < a.cols)
		for (i64 p = threadIdx.y; p < a.pieces; p += 8) sum += a.part[(p * a.sums + s) * a.cols + c];
	all[threadIdx.y][threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.y || c >= a.cols) return;
	double t = 0;
	for (int y = 0; y < 8; y++) t += all[y][threadIdx.x];
	const Mat &to = a.dst[1].p && s == 1 ? a.dst[1] : a.dst[0];
	i64 row = a.dst[1].p ? 0 : s;
	put64(to, row, c, a.add ? get64(to, row, c) + t : t);
}
