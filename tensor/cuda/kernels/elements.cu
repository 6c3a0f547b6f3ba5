// Each number by itself: copies, sums, products, activations, batch norm, the optimisers.
#include "common.cuh"

// Four numbers of a row at a time where all matrices allow it, else one: `each` calls f(row, column).
template <int V, class F> DEV void each(i64 rows, i64 cols, F f) {
	i64 per = cols / V, n = rows * per, step = (i64)gridDim.x * blockDim.x;
	if (n < (1ll << 31))
		for (i64 t = threadId(); t < n; t += step) f((i64)((u32)t / (u32)per), (i64)((u32)t % (u32)per) * V);
	else
		for (i64 t = threadId(); t < n; t += step) f(t / per, t % per * V);
}

struct ElementArgs {
	Mat dst, x, y, z;
	double a, b;
	i64 rows, cols, kind;
	Epi epi;
};

template <int V> DEV void combine(const ElementArgs &a) {
	each<V>(a.rows, a.cols, [&](i64 r, i64 c) {
		float x[V], y[V];
		loadFrom<V>(x, a.x, r, c);
		if (a.y.p) loadFrom<V>(y, a.y, r, c);
		for (int i = 0; i < V; i++)
			x[i] = a.kind ? x[i] * y[i] : a.y.p ? (float)a.a * x[i] + (float)a.b * y[i] : (float)a.a * x[i];
		storeTo<V>(a.dst, r, c, x);
	});
}

KERNEL(combine_8, ElementArgs) { combine<8>(a); }
KERNEL(combine_4, ElementArgs) { combine<4>(a); }
KERNEL(combine_1, ElementArgs) { combine<1>(a); }

KERNEL(combine_64, ElementArgs) {
	each<1>(a.rows, a.cols, [&](i64 r, i64 c) {
		double x = get64(a.x, r, c), y = a.y.p ? get64(a.y, r, c) : 0;
		put64(a.dst, r, c, a.kind ? x * y : a.a * x + a.b * y);
	});
}

template <int V> DEV void activation(const ElementArgs &a) {
	each<V>(a.rows, a.cols, [&](i64 r, i64 c) {
		float x[V], f[V];
		loadFrom<V>(x, a.x, r, c);
		factors<V>(f, a.epi.drop, r, (u32)c);
		for (int i = 0; i < V; i++) {
			if (a.epi.bias) x[i] += a.epi.bias[c + i];
			x[i] = activate(a.epi.act, x[i]) * f[i];
		}
		storeTo<V>(a.dst, r, c, x);
	});
}

KERNEL(activate_8, ElementArgs) { activation<8>(a); }
KERNEL(activate_4, ElementArgs) { activation<4>(a); }
KERNEL(activate_1, ElementArgs) { activation<1>(a); }

// x is dy, y the result of Activate.
template <int V> DEV void activationGrads(const ElementArgs &a) {
	float inverse = 1.f / (float)a.epi.drop.scale;
	each<V>(a.rows, a.cols, [&](i64 r, i64 c) {
		float x[V], y[V], f[V];
		loadFrom<V>(x, a.x, r, c);
		loadFrom<V>(y, a.y, r, c);
		factors<V>(f, a.epi.drop, r, (u32)c);
		for (int i = 0; i < V; i++) x[i] *= f[i] * slope(a.epi.act, y[i] * inverse);
		storeTo<V>(a.dst, r, c, x);
	});
}

KERNEL(activate_grad_8, ElementArgs) { activationGrads<8>(a); }
KERNEL(activate_grad_4, ElementArgs) { activationGrads<4>(a); }
KERNEL(activate_grad_1, ElementArgs) { activationGrads<1>(a); }

// x·Φ(x); with y, the gradient of x is y·(Φ(x) + x·φ(x)).
template <int V> DEV void gelu(const ElementArgs &a) {
	each<V>(a.rows, a.cols, [&](i64 r, i64 c) {
		float x[V], y[V];
		loadFrom<V>(x, a.x, r, c);
		if (a.y.p) loadFrom<V>(y, a.y, r, c);
		for (int i = 0; i < V; i++) {
			float phi = 0.5f * erfcf(-0.70710678118f * x[i]);
			x[i] = a.y.p ? y[i] * (phi + x[i] * 0.3989422804f * expf(-0.5f * x[i] * x[i])) : x[i] * phi;
		}
		storeTo<V>(a.dst, r, c, x);
	});
}

KERNEL(gelu_8, ElementArgs) { gelu<8>(a); }
KERNEL(gelu_4, ElementArgs) { gelu<4>(a); }
KERNEL(gelu_1, ElementArgs) { gelu<1>(a); }

// Batch norm: mv is mean and variance, a the epsilon.
struct NormArgs {
	Mat dst, dy, x, mv, gs;
	const float *gamma, *beta;
	double eps, count;
	i64 rows, cols;
	Epi epi;
};

DEV float deviation(const NormArgs &a, i64 c) { return (float)(1.0 / sqrt(a.mv.f64(1)[c] + a.eps)); }

KERNEL(batch_norm, NormArgs) {
	each<1>(a.rows, a.cols, [&](i64 r, i64 c) {
		float hat = (get(a.x, r, c) - (float)a.mv.f64(0)[c]) * deviation(a, c);
		Draws d = drawsOf(a.epi.drop, r);
		put(a.dst, r, c, finish(a.epi, d, (u32)c, hat * a.gamma[c] + a.beta[c]));
	});
}

KERNEL(batch_norm_grad, NormArgs) {
	each<1>(a.rows, a.cols, [&](i64 r, i64 c) {
		float inv = deviation(a, c), hat = (get(a.x, r, c) - (float)a.mv.f64(0)[c]) * inv;
		float g = get(a.dy, r, c) - (float)(a.gs.f64(0)[c] / a.count) - hat * (float)(a.gs.f64(1)[c] / a.count);
		put(a.dst, r, c, a.gamma[c] * inv * g);
	});
}

struct MomentArgs {
	Mat mv, running, sums;
	double count, momentum;
};

KERNEL(moments, MomentArgs) {
	i64 c = threadId();
	if (c >= a.mv.cols) return;
	double n = a.count > 1 ? a.count : 1, mean = a.sums.f64(0)[c] / n, var = a.sums.f64(1)[c] / n - mean * mean;
	var = var > 0 ? var : 0;
	a.mv.f64(0)[c] = mean, a.mv.f64(1)[c] = var;
	if (!a.running.p) return;
	double unbias = a.count / (a.count > 2 ? a.count - 1 : 1);
	a.running.f64(0)[c] += a.momentum * (mean - a.running.f64(0)[c]);
	a.running.f64(1)[c] += a.momentum * (var * unbias - a.running.f64(1)[c]);
}

struct OptimiserArgs {
	Mat p, g, m, v;
	double lr, beta1, beta2, eps, decay, c1, c2;
	i64 decoupled, nesterov, first;
};

KERNEL(adam, OptimiserArgs) {
	float lr = (float)a.lr, b1 = (float)a.beta1, b2 = (float)a.beta2, decay = (float)a.decay;
	float r1 = (float)(1 - a.beta1), r2 = (float)(1 - a.beta2);
	float step = (float)(a.lr / a.c1), root = (float)(1 / sqrt(a.c2));
	each<1>(a.p.rows, a.p.cols, [&](i64 r, i64 c) {
		float p = a.p.f32(r)[c], g = a.g.f32(r)[c];
		if (a.decoupled) p -= lr * decay * p;
		else g += decay * p;
		float m = b1 * a.m.f32(r)[c] + r1 * g, v = b2 * a.v.f32(r)[c] + r2 * g * g;
		a.m.f32(r)[c] = m, a.v.f32(r)[c] = v;
		a.p.f32(r)[c] = p - step * m / (sqrtf(v) * root + (float)a.eps);
	});
}

// beta1 is the momentum, m its buffer.
KERNEL(sgd, OptimiserArgs) {
	float lr = (float)a.lr, momentum = (float)a.beta1, decay = (float)a.decay;
	each<1>(a.p.rows, a.p.cols, [&](i64 r, i64 c) {
		float p = a.p.f32(r)[c], g = a.g.f32(r)[c] + decay * p;
		if (momentum != 0) {
			float b = a.first ? g : momentum * a.m.f32(r)[c] + g;
			a.m.f32(r)[c] = b;
			g = a.nesterov ? g + momentum * b : b;
		}
		a.p.f32(r)[c] = p - lr * g;
	});
}

struct GatherArgs {
	Mat dst, src;
	const u32 *rows;
	i64 n, cols;
};

template <int V> DEV void gather(const GatherArgs &a) {
	each<V>(a.n, a.cols, [&](i64 r, i64 c) {
		float x[V];
		loadFrom<V>(x, a.src, a.rows[r], c);
		storeTo<V>(a.dst, r, c, x);
	});
}

KERNEL(gather_4, GatherArgs) { gather<4>(a); }
KERNEL(gather_1, GatherArgs) { gather<1>(a); }

// Rows of the host's memory, some of which the card has as well.
struct FarArgs {
	GatherArgs to;
	Mat cache;
	const u32 *place; // of each row in the cache
};

template <int V> DEV void gatherFar(const FarArgs &a) {
	each<V>(a.to.n, a.to.cols, [&](i64 r, i64 c) {
		u32 row = a.to.rows[r], at = a.place[row];
		float x[V];
		if (at != ~0u) loadFrom<V>(x, a.cache, at, c);
		else loadFrom<V>(x, a.to.src, row, c);
		storeTo<V>(a.to.dst, r, c, x);
	});
}

KERNEL(gather_far_4, FarArgs) { gatherFar<4>(a); }
KERNEL(gather_far_1, FarArgs) { gatherFar<1>(a); }

// Rows that are all different.
template <int V> DEV void scatter(const GatherArgs &a) {
	each<V>(a.n, a.cols, [&](i64 r, i64 c) {
		float x[V], y[V];
		loadFrom<V>(x, a.src, r, c);
		loadFrom<V>(y, a.dst, a.rows[r], c);
		for (int i = 0; i < V; i++) x[i] += y[i];
		storeTo<V>(a.dst, a.rows[r], c, x);
	});
}

KERNEL(scatter_4, GatherArgs) { scatter<4>(a); }
KERNEL(scatter_1, GatherArgs) { scatter<1>(a); }

// Rows that may repeat, where nothing is known of them: in order, each column by itself.
KERNEL(scatter_in_order, GatherArgs) {
	i64 c = threadId();
	if (c >= a.cols) return;
	for (i64 k = 0; k < a.n; k++) put(a.dst, a.rows[k], c, get(a.dst, a.rows[k], c) + get(a.src, k, c));
}
