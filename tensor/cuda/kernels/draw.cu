// Mini-batches drawn on the GPU: the draws of sample/neighbour.go, to the bit. Vertices are numbered in the order in
// which edges first name them. The one atomic operation is the minimum of whole numbers, whose result has no order.
#include "common.cuh"

struct DrawArgs {
	const i64 *indptr; // of the graph
	const u32 *indices;
	u32 *vertices; // of the batch, by row
	u32 *where;    // of each vertex of the graph: its row, or UNSEEN, or NAMED and the first edge that names it
	i64 *ptr;      // of the block that is drawn
	u32 *index;
	i64 *sums;        // of a scan's blocks of tasks
	i64 *total;       // of a scan, in memory of the host
	const i64 *count; // how many tasks there are, where the host does not know; none: n
	i64 n, chunk;     // tasks, and those of each block of a scan
	i64 fanout, replace, first;
	u64 key;
	const double *factor; // of each vertex of the graph; none: 1
	float *scale;
	const i64 *rawPtr; // the block as it is drawn, where its loops change
	const u32 *raw;
	i64 form, byId; // form: as tensor.Loops
};

#define UNSEEN 0xffffffffu
#define NAMED 0x80000000u
#define EVERY 0xffffffffu

DEV i64 least(i64 a, i64 b) { return a < b ? a : b; }

// As package rng has them.
DEV u64 mix(u64 z) {
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

#define GOLDEN 0x9e3779b97f4a7c15ull

DEV u64 fold(u64 key, u64 word) { return mix(key * 0xd6e8feb86659fd93ull + mix(word + GOLDEN)); }
DEV u64 below(u64 key, u64 i, u64 n) { return __umul64hi(mix(key + i * GOLDEN), n); }

DEV i64 tasks(const DrawArgs &a) { return a.count ? *a.count : a.n; }

// The sum over the threads of a block before this one, and over all.
DEV i64 before(i64 x, i64 &all) {
	__shared__ i64 warp[8];
	i64 sum = x;
	for (int o = 1; o < 32; o *= 2) {
		i64 y = __shfl_up_sync(EVERY, sum, o);
		if (threadIdx.x % 32 >= o) sum += y;
	}
	if (threadIdx.x % 32 == 31) warp[threadIdx.x / 32] = sum;
	__syncthreads();
	i64 earlier = 0;
	all = 0;
	for (int w = 0; w < 8; w++) {
		if (w < threadIdx.x / 32) earlier += warp[w];
		all += warp[w];
	}
	__syncthreads();
	return earlier + sum - x;
}

// A scan has two kernels: the sums of each block's chunk of tasks; then each block begins with those of the blocks
// before it.
template <class V> DEV void sumChunk(const DrawArgs &a, V value) {
	i64 lo = blockIdx.x * a.chunk, hi = least(lo + a.chunk, tasks(a)), sum = 0, all;
	for (i64 i = lo + threadIdx.x; i < hi; i += 256) sum += value(i);
	before(sum, all);
	if (threadIdx.x == 0) a.sums[blockIdx.x] = all;
}

template <class V, class P> DEV void scanChunk(const DrawArgs &a, V value, P put) {
	i64 n = tasks(a), lo = blockIdx.x * a.chunk, hi = least(lo + a.chunk, n), sum = 0, all;
	for (i64 b = threadIdx.x; b < blockIdx.x; b += 256) sum += a.sums[b];
	before(sum, all);
	i64 base = all;
	for (i64 from = lo; from < hi; from += 256) {
		i64 i = from + threadIdx.x, x = i < hi ? value(i) : 0;
		i64 at = base + before(x, all);
		if (i < hi) put(i, x, at);
		base += all;
		if (i == n - 1 && a.total) *a.total = at + x;
	}
	if (n == 0 && blockIdx.x == 0 && threadIdx.x == 0 && a.total) *a.total = 0;
}

DEV i64 degreeOf(const DrawArgs &a, i64 row) {
	u32 v = a.vertices[row];
	return a.indptr[v + 1] - a.indptr[v];
}

// How many edges of a row are drawn.
DEV i64 drawnOf(const DrawArgs &a, i64 row) {
	i64 d = degreeOf(a, row);
	if (a.fanout < 0) return d;
	if (a.replace) return d ? a.fanout : 0;
	return least(d, a.fanout);
}

// The first vertices of a batch get their rows.
KERNEL(draw_seeds, DrawArgs) {
	for (i64 i = threadId(); i < a.n; i += (i64)gridDim.x * 256) a.where[a.vertices[i]] = (u32)i;
}

// And all lose them when the batch is drawn; scale is their factors.
KERNEL(draw_end, DrawArgs) {
	for (i64 i = threadId(); i < a.n; i += (i64)gridDim.x * 256) {
		u32 v = a.vertices[i];
		a.where[v] = UNSEEN;
		if (a.scale) a.scale[i] = a.factor ? (float)a.factor[v] : 1.f;
	}
}

KERNEL(draw_count_sums, DrawArgs) {
	sumChunk(a, [&](i64 i) { return drawnOf(a, i); });
}

// Where rows begin; scale is the factors of sums over drawn edges, each of which counts for several.
KERNEL(draw_counts, DrawArgs) {
	scanChunk(
		a, [&](i64 i) { return drawnOf(a, i); },
		[&](i64 i, i64 x, i64 at) {
			a.ptr[i] = at;
			if (i == a.n - 1) a.ptr[a.n] = at + x;
			if (!a.scale) return;
			i64 d = degreeOf(a, i);
			float counts = d == 0 || (!a.replace && d <= a.fanout) ? 1.f : (float)d / (float)a.fanout;
			a.scale[i] = (float)((a.factor ? a.factor[a.vertices[i]] : 1.0) * (double)counts);
		});
}

// Whether the first n numbers of a list have x.
DEV bool among(const u32 *list, i64 n, u32 x) {
	for (i64 i = 0; i < n; i++)
		if (list[i] == x) return true;
	return false;
}

// A thread draws the edges of a row, as sample/choose.go does: with replacement, or distinct ones by Floyd's method, of
// which few fit a register's bits. The list has places among a row's edges until all are drawn.
DEV void drawRow(const DrawArgs &a, u32 *to, u64 key, i64 degree) {
	if (a.replace) {
		for (i64 i = 0; i < a.fanout; i++) to[i] = (u32)below(key, i, degree);
		return;
	}
	u64 taken = 0;
	for (i64 j = degree - a.fanout, k = 0; j < degree; j++, k++) {
		u64 at = below(key, j, j + 1);
		if (degree <= 64 ? taken >> at & 1 : among(to, k, (u32)at)) at = j;
		if (degree <= 64) taken |= 1ull << at;
		to[k] = (u32)at;
	}
}

KERNEL(draw_pick, DrawArgs) {
	i64 row = threadId();
	if (row >= a.n) return;
	u32 v = a.vertices[row];
	i64 first = a.indptr[v], degree = a.indptr[v + 1] - first, n = drawnOf(a, row);
	u32 *to = a.index + a.ptr[row];
	bool all = !a.replace && degree <= a.fanout;
	if (n && !all) drawRow(a, to, fold(a.key, v), degree);
	for (i64 k = 0; k < n; k++) to[k] = a.indices[first + (all ? k : to[k])];
}

// The row that an entry is of.
DEV i64 rowOf(const i64 *ptr, i64 rows, i64 entry) {
	i64 lo = 0, hi = rows;
	while (hi - lo > 1) {
		i64 mid = (lo + hi) / 2;
		if (ptr[mid] <= entry) lo = mid;
		else hi = mid;
	}
	return lo;
}

// Every edge of n rows; first has how many there are.
KERNEL(draw_all, DrawArgs) {
	for (i64 e = threadId(); e < a.first; e += (i64)gridDim.x * 256) {
		i64 row = rowOf(a.ptr, a.n, e);
		a.index[e] = a.indices[a.indptr[a.vertices[row]] + e - a.ptr[row]];
	}
}

// Sources without a row are named by the first of their edges.
KERNEL(draw_name, DrawArgs) {
	for (i64 e = threadId(), n = tasks(a); e < n; e += (i64)gridDim.x * 256) {
		u32 v = a.index[e];
		if (a.where[v] > (NAMED | (u32)e)) atomicMin(a.where + v, NAMED | (u32)e);
	}
}

DEV i64 names(const DrawArgs &a, i64 e) { return a.where[a.index[e]] == (NAMED | (u32)e); }

KERNEL(draw_new_sums, DrawArgs) {
	sumChunk(a, [&](i64 e) { return names(a, e); });
}

// New vertices get the rows from first on.
KERNEL(draw_new, DrawArgs) {
	scanChunk(
		a, [&](i64 e) { return names(a, e); },
		[&](i64 e, i64 x, i64 at) {
			if (!x) return;
			u32 v = a.index[e];
			a.vertices[a.first + at] = v;
			a.where[v] = (u32)(a.first + at);
		});
}

KERNEL(draw_relabel, DrawArgs) {
	for (i64 e = threadId(), n = tasks(a); e < n; e += (i64)gridDim.x * 256) a.index[e] = a.where[a.index[e]];
}

// Loops are left out, and in form 2 each row has one at its end.
DEV i64 reformedOf(const DrawArgs &a, i64 row) {
	u32 v = a.vertices[row];
	i64 n = a.form == 2;
	for (i64 e = a.rawPtr[row]; e < a.rawPtr[row + 1]; e++) n += a.raw[e] != v;
	return n;
}

KERNEL(draw_reform_sums, DrawArgs) {
	sumChunk(a, [&](i64 i) { return reformedOf(a, i); });
}

KERNEL(draw_reform, DrawArgs) {
	scanChunk(
		a, [&](i64 i) { return reformedOf(a, i); },
		[&](i64 row, i64 x, i64 at) {
			a.ptr[row] = at;
			if (row == a.n - 1) a.ptr[a.n] = at + x;
			u32 v = a.vertices[row];
			for (i64 e = a.rawPtr[row]; e < a.rawPtr[row + 1]; e++)
				if (a.raw[e] != v) a.index[at++] = a.byId ? a.raw[e] : a.where[a.raw[e]];
			if (a.form == 2) a.index[at] = a.byId ? v : (u32)row;
		});
}

// Rows of more than first entries: row, first entry, end.
DEV i64 isLong(const DrawArgs &a, i64 row) { return a.ptr[row + 1] - a.ptr[row] > a.first; }

KERNEL(draw_long_sums, DrawArgs) {
	sumChunk(a, [&](i64 i) { return isLong(a, i); });
}

struct LongArgs {
	DrawArgs of;
	i64 *rows; // in memory of the host
};

KERNEL(draw_longs, LongArgs) {
	scanChunk(
		a.of, [&](i64 i) { return isLong(a.of, i); },
		[&](i64 row, i64 x, i64 at) {
			if (!x) return;
			i64 *to = a.rows + 3 * at;
			to[0] = row, to[1] = a.of.ptr[row], to[2] = a.of.ptr[row + 1];
		});
}

// Entries are ordered by their column, equal ones by their place: eight bits at a time, from the lowest. A block has a
// tile of entries, of which each warp has 256 beside each other.
struct SortArgs {
	const u32 *keys, *places; // places: none where each entry is at its own
	u32 *keysTo, *placesTo;
	i64 *counts; // bits x tiles: how many entries, or where the first goes
	i64 n, shift, tiles;
};

#define TILE 2048

// The lanes of a warp whose digits are this one's, and how many of them come before.
DEV u32 alike(u32 digit, u32 &earlier) {
	u32 same = __match_any_sync(EVERY, digit), lower = (1u << threadIdx.x % 32) - 1;
	earlier = __popc(same & lower);
	return same;
}

// What a warp does with each of its entries; digit is 256 of none.
template <class F> DEV void eachEntry(const SortArgs &a, F f) {
	for (int k = 0; k < 8; k++) {
		i64 e = (i64)blockIdx.x * TILE + threadIdx.x / 32 * 256 + k * 32 + threadIdx.x % 32;
		u32 key = e < a.n ? a.keys[e] : 0, digit = e < a.n ? key >> a.shift & 255 : 256, earlier;
		u32 same = alike(digit, earlier);
		f(e, key, digit, earlier, same);
		__syncwarp();
	}
}

// Each of the warp's digits, where none was counted before.
DEV void countDigits(const SortArgs &a, i64 (*counts)[257]) {
	for (int w = 0; w < 8; w++) {
		counts[w][threadIdx.x] = 0;
		if (threadIdx.x == 0) counts[w][256] = 0;
	}
	__syncthreads();
	eachEntry(a, [&](i64, u32, u32 digit, u32 earlier, u32 same) {
		if (earlier == 0) counts[threadIdx.x / 32][digit] += __popc(same);
	});
	__syncthreads();
}

KERNEL(sort_count, SortArgs) {
	__shared__ i64 counts[8][257];
	countDigits(a, counts);
	i64 sum = 0;
	for (int w = 0; w < 8; w++) sum += counts[w][threadIdx.x];
	a.counts[threadIdx.x * a.tiles + blockIdx.x] = sum;
}

KERNEL(sort_move, SortArgs) {
	__shared__ i64 counts[8][257];
	countDigits(a, counts);
	i64 at = a.counts[threadIdx.x * a.tiles + blockIdx.x];
	for (int w = 0; w < 8; w++) {
		i64 n = counts[w][threadIdx.x];
		counts[w][threadIdx.x] = at;
		at += n;
	}
	__syncthreads();
	eachEntry(a, [&](i64 e, u32 key, u32 digit, u32 earlier, u32 same) {
		i64 to = counts[threadIdx.x / 32][digit] + earlier;
		if (digit < 256) a.keysTo[to] = key, a.placesTo[to] = a.places ? a.places[e] : (u32)e;
		__syncwarp();
		if (earlier == 0) counts[threadIdx.x / 32][digit] += __popc(same);
	});
}

// The counts of a pass become where each digit of each tile begins: ptr is read and written.
KERNEL(sort_sums, DrawArgs) {
	sumChunk(a, [&](i64 i) { return a.ptr[i]; });
}

KERNEL(sort_starts, DrawArgs) {
	scanChunk(a, [&](i64 i) { return a.ptr[i]; }, [&](i64 i, i64, i64 at) { a.ptr[i] = at; });
}

struct TransposeArgs {
	const u32 *keys, *places; // in order of keys
	const i64 *ptr;           // of the rows that are transposed
	i64 *backPtr;
	u32 *back;
	i64 entries, rows, cols;
};

// Where each column begins, and the row of each entry.
KERNEL(draw_transpose, TransposeArgs) {
	for (i64 i = threadId(); i <= a.cols || i < a.entries; i += (i64)gridDim.x * 256) {
		if (i < a.entries) a.back[i] = (u32)rowOf(a.ptr, a.rows, a.places[i]);
		if (i > a.cols) continue;
		i64 lo = 0, hi = a.entries; // the first entry whose key is not below i
		while (lo < hi) {
			i64 mid = (lo + hi) / 2;
			if (a.keys[mid] < i) lo = mid + 1;
			else hi = mid;
		}
		a.backPtr[i] = lo;
	}
}
