// A driver for tests: the functions of libcuda.so.1 that starling calls, on the host's memory, with the
// kernels compiled for the host. Threads of a block are fibers that take turns where they wait for each other,
// so that a kernel whose threads would wait for ever, or read what no thread has written, is found here.
//
//   g++ -std=c++17 -O1 -shared -fPIC -o libcuda.so.1 emulator.cc
//
// What a call returns can be set: EMULATOR_VERSION, EMULATOR_CARDS, EMULATOR_CAPABILITY (major), EMULATOR_MEMORY
// (bytes), EMULATOR_NO_CAPTURE, EMULATOR_NO_IPC, EMULATOR_FAIL=name:n:code (call n of a function and all after it fail
// with a code).
// With EMULATOR_LATE streams run as late as they may: when the host or another stream waits for them.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__)
#error "fibers are for x86-64"
#endif

// What CUDA C has.
#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __shared__ static

struct dim { unsigned x, y, z; };
static dim threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static float2 make_float2(float x, float y) { return {x, y}; }
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static float __uint_as_float(unsigned x) { float f; memcpy(&f, &x, 4); return f; }
static unsigned __float_as_uint(float f) { unsigned x; memcpy(&x, &f, 4); return x; }

// Fibers.
enum State { running, atWarp, atBlock, done };

// A copy to shared memory that is made when its thread waits for it.
struct Copy {
	uintptr_t to;
	const void *from;
	int size, bytes, group;
};

struct Fiber {
	void *sp;
	State state;
	unsigned mask;
	uint64_t slot[2]; // what it shows to others of its warp, and the time before
	unsigned words[2][6]; // likewise of a product
	std::vector<Copy> copies;
	int group;
	unsigned turn;
	dim thread;
	std::vector<char> stack;
};

static std::vector<Fiber> fibers;
static Fiber *current;
static void *scheduler;
static void (*body)(const void *);
static const void *arguments;

extern "C" void fiber_switch(void **save, void *to);
asm(".text\n.globl fiber_switch\n.hidden fiber_switch\nfiber_switch:\n"
	"push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
	"mov %rsp, (%rdi); mov %rsi, %rsp\n"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret\n");

static void fiber_main() {
	body(arguments);
	current->state = done;
	fiber_switch(&current->sp, scheduler);
	abort();
}

static void __attribute__((noinline)) waitAs(State s) {
	current->state = s;
	fiber_switch(&current->sp, scheduler);
}

static void start(Fiber &f, unsigned t) {
	const size_t bytes = 64 << 10;
	if (f.stack.empty()) f.stack.resize(bytes);
	void **top = (void **)(((uintptr_t)f.stack.data() + bytes) & ~(uintptr_t)63);
	top -= 2;
	*top = (void *)fiber_main; // where the first switch returns to; the stack is then as after a call
	f.sp = top - 6;
	f.state = running, f.turn = 0, f.group = 0;
	f.copies.clear();
	f.thread = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
}

static bool release(size_t lo, size_t hi) {
	bool any = false;
	for (size_t i = lo; i < hi; i++) {
		if (fibers[i].state != atWarp) continue;
		unsigned mask = fibers[i].mask, there = 0, alive = 0;
		for (size_t k = lo; k < hi; k++) {
			if (fibers[k].state != done) alive |= 1u << (k - lo);
			if (fibers[k].state == atWarp && fibers[k].mask == mask) there |= 1u << (k - lo);
		}
		if ((there & mask) != (mask & alive)) continue;
		for (size_t k = lo; k < hi; k++)
			if (mask >> (k - lo) & 1 && fibers[k].state == atWarp) fibers[k].state = running, any = true;
	}
	return any;
}

static void runBlock() {
	size_t n = (size_t)blockDim.x * blockDim.y * blockDim.z;
	if (fibers.size() < n) fibers.resize(n);
	for (size_t t = 0; t < n; t++) start(fibers[t], t);
	for (;;) {
		bool any = false;
		size_t finished = 0, waiting = 0;
		for (size_t t = 0; t < n; t++) {
			if (fibers[t].state == running) {
				current = &fibers[t];
				threadIdx = current->thread;
				fiber_switch(&scheduler, current->sp);
				any = true;
			}
			finished += fibers[t].state == done, waiting += fibers[t].state == atBlock;
		}
		if (finished == n) return;
		for (size_t w = 0; w < n; w += 32) any = release(w, w + 32 < n ? w + 32 : n) || any;
		if (waiting > 0 && waiting + finished == n) {
			for (size_t t = 0; t < n; t++)
				if (fibers[t].state == atBlock) fibers[t].state = running;
			any = true;
		}
		if (!any) {
			fprintf(stderr, "emulator: threads of a block wait for each other for ever\n");
			abort();
		}
	}
}

static void __syncthreads() {
	waitAs(atBlock);
	threadIdx = current->thread;
}

template <class T> static T exchange(unsigned mask, T x, size_t lane) {
	Fiber *me = current;
	unsigned turn = me->turn++ & 1;
	memcpy(&me->slot[turn], &x, sizeof x);
	me->mask = mask;
	waitAs(atWarp);
	threadIdx = current->thread;
	size_t i = me - fibers.data(), from = i / 32 * 32 + lane;
	if (from < fibers.size() && (mask >> from % 32 & 1)) memcpy(&x, &fibers[from].slot[turn], sizeof x);
	else fprintf(stderr, "emulator: a lane reads from one that takes no part\n"), abort();
	return x;
}

static size_t lane() { return (current - fibers.data()) % 32; }

template <class T> static T __shfl_xor_sync(unsigned mask, T x, int other) { return exchange(mask, x, lane() ^ other); }

template <class T> static T __shfl_sync(unsigned mask, T x, int from, int width) {
	return exchange(mask, x, lane() / width * width + from % width);
}

template <class T> static T __shfl_up_sync(unsigned mask, T x, size_t by) {
	return exchange(mask, x, lane() < by ? lane() : lane() - by);
}

static unsigned __popc(unsigned x) { return __builtin_popcount(x); }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
	return (unsigned __int128)a * b >> 64;
}
static unsigned atomicMin(unsigned *p, unsigned x) {
	unsigned old = *p;
	if (x < old) *p = x;
	return old;
}

// Copies to shared memory, in groups.
typedef uintptr_t Place;
static Place placeOf(void *p) { return (Place)p; }
static void copyLater(Place to, const void *from, int size, int bytes) {
	if (to % size || (bytes && (uintptr_t)from % size))
		fprintf(stderr, "emulator: a copy of %d bytes is not aligned\n", size), abort();
	current->copies.push_back({to, from, size, bytes, current->group});
}
static void copy16(Place to, const void *from, int bytes) { copyLater(to, from, 16, bytes); }
static void copy4(Place to, const void *from, int bytes) { copyLater(to, from, 4, bytes); }
static void endCopies() { current->group++; }
template <int N> static void waitCopies() {
	std::vector<Copy> later;
	for (const Copy &c : current->copies)
		if (c.group + N >= current->group) later.push_back(c);
		else memset((char *)c.to + c.bytes, 0, c.size - c.bytes), memcpy((void *)c.to, c.from, c.bytes);
	current->copies.swap(later);
}
static unsigned wordAt(Place p) { return *(const unsigned *)p; }

// What all lanes of this one's warp have shown: each has its own in a place of its fiber.
template <class F> static Fiber *together(F show) {
	Fiber *me = current;
	unsigned turn = me->turn++ & 1;
	show(turn);
	me->mask = 0xffffffffu;
	waitAs(atWarp);
	threadIdx = current->thread;
	return &fibers[(me - fibers.data()) / 32 * 32];
}
static void __syncwarp() {
	together([](unsigned) {});
}
static unsigned __match_any_sync(unsigned, unsigned x) {
	unsigned turn = 0, same = 0;
	Fiber *warp = together([&](unsigned k) { turn = k, current->slot[k] = x; });
	for (int i = 0; i < 32; i++) same |= (unsigned)((unsigned)warp[i].slot[turn] == x) << i;
	return same;
}
template <class F> static void rowsOfWarp(unsigned *r, Place p, F word) {
	unsigned turn = 0;
	Fiber *warp = together([&](unsigned k) { turn = k, current->slot[k] = p; });
	for (int q = 0; q < 4; q++) r[q] = word([&](size_t row) { return (const char *)warp[8 * q + row].slot[turn]; });
}
static void matrices(unsigned *r, Place p) {
	rowsOfWarp(r, p, [](auto row) { return *(const unsigned *)(row(lane() / 4) + lane() % 4 * 4); });
}
static void matricesTurned(unsigned *r, Place p) {
	rowsOfWarp(r, p, [](auto row) {
		size_t g = lane() / 4, t = lane() % 4;
		return *(const uint16_t *)(row(2 * t) + 2 * g) | *(const uint16_t *)(row(2 * t + 1) + 2 * g) << 16;
	});
}

// Products of a warp. Lane 4g + t has words t and t + 4 of rows g and g + 8 of the left side, and of column g of the
// right one, and gets columns 2t and 2t + 1 of these rows. each is what the words of one step multiply to.
template <class F> static void warpProduct(float *c, const unsigned *a, unsigned b0, unsigned b1, F each) {
	unsigned turn = 0;
	Fiber *warp = together([&](unsigned k) {
		turn = k;
		memcpy(current->words[k], a, 16), current->words[k][4] = b0, current->words[k][5] = b1;
	});
	size_t g = lane() / 4, t = lane() % 4;
	for (int n = 0; n < 4; n++) {
		double sum = c[n];
		for (size_t k = 0; k < 8; k++)
			sum += each(warp[4 * g + k % 4].words[turn][k / 4 * 2 + n / 2], warp[4 * (2 * t + n % 2) + k % 4].words[turn][4 + k / 4]);
		c[n] = sum;
	}
}
static float wordFloat(unsigned x) { float f; memcpy(&f, &x, 4); return f; }
static void mma8(float *c, const unsigned *a, unsigned b0, unsigned b1) {
	warpProduct(c, a, b0, b1, [](unsigned x, unsigned y) { return (double)wordFloat(x & 0xffffe000u) * wordFloat(y & 0xffffe000u); });
}
static void mma16(float *c, const unsigned *a, unsigned b0, unsigned b1) {
	warpProduct(c, a, b0, b1, [](unsigned x, unsigned y) {
		return (double)wordFloat(x << 16) * wordFloat(y << 16) + (double)wordFloat(x & 0xffff0000u) * wordFloat(y & 0xffff0000u);
	});
}
static unsigned round10(float x) {
	unsigned b;
	memcpy(&b, &x, 4);
	return x != x || std::isinf(x) ? b : (b + 0x1000) & 0xffffe000u;
}

// Kernels.
typedef void (*Body)(const void *);
static std::map<std::string, Body> &kernels() {
	static std::map<std::string, Body> all;
	return all;
}
static std::map<Body, size_t> &sizes() {
	static std::map<Body, size_t> all;
	return all;
}
struct Kernel {
	Kernel(const char *name, Body b, size_t n) { kernels()[name] = b, sizes()[b] = n; }
};

#define HOST_BUILD
#define SPARED(idle) (idle)
#define SHARED(name, bytes) alignas(256) static u8 name[bytes]
#define KERNEL(name, Args) \
	static void name(const Args &a); \
	static Kernel kernel_##name(#name, [](const void *p) { name(*(const Args *)p); }, sizeof(Args)); \
	static void name(const Args &a)

#include "../kernels/common.cuh"
#include "../kernels/group.cuh"
namespace aggregates {
#include "../kernels/aggregate.cu"
}
namespace attentions {
#include "../kernels/attention.cu"
}
namespace drawing {
#include "../kernels/draw.cu"
}
namespace edges {
#include "../kernels/edgewise.cu"
}
namespace numbers {
#include "../kernels/elements.cu"
}
#include "../kernels/product.cuh"
namespace products {
#include "../kernels/product.cu"
}
#include "../kernels/mma.cuh"
namespace tensorcores {
#include "../kernels/mma_bf16.cu"
#include "../kernels/mma_split.cu"
#include "../kernels/mma_tf32.cu"
}
namespace rowwise {
#include "../kernels/rows.cu"
}

// The driver.
static std::recursive_mutex lock;
static std::map<uintptr_t, size_t> blocks;
static size_t used;
static int broken;

static long setting(const char *name, long otherwise) {
	const char *v = getenv(name);
	return v && *v ? atol(v) : otherwise;
}

// fails counts calls and says what this one returns.
static int fails(const char *name) {
	static std::map<std::string, long> counts;
	static std::string which;
	static long at, code;
	static bool read;
	if (!read) {
		read = true;
		if (const char *v = getenv("EMULATOR_FAIL")) {
			char text[64];
			if (sscanf(v, "%63[^:]:%ld:%ld", text, &at, &code) == 3) which = text;
		}
	}
	if (broken) return broken;
	if (which == name && ++counts[which] >= at) {
		if (code >= 700) broken = code; // such errors stay
		return code;
	}
	return 0;
}

#define CALL(name) \
	std::lock_guard<std::recursive_mutex> guard(lock); \
	if (int code = fails(#name)) return code;

// A stream runs what it is given at once, or adds it to a graph.
struct Node {
	std::function<int(const void *)> run;
	std::vector<char> args; // of a kernel
};
struct Graph {
	std::vector<Node *> nodes;
};
struct Stream {
	Graph *captured = nullptr;
	std::vector<std::function<int()>> late;
	size_t ran = 0; // how many since the beginning
	int queue(std::function<int(const void *)> run, const void *args = nullptr, size_t n = 0) {
		if (captured) {
			captured->nodes.push_back(new Node{run, {(const char *)args, (const char *)args + n}});
			return 0;
		}
		std::vector<char> copy((const char *)args, (const char *)args + n);
		return later([=] { return run(copy.data()); });
	}
	int later(std::function<int()> run) {
		if (!setting("EMULATOR_LATE", 0)) return ran++, run();
		late.push_back(run);
		return 0;
	}
	int catchUp(size_t until) {
		int code = 0;
		size_t n = 0;
		for (; n < late.size() && ran < until; n++, ran++)
			if (int c = late[n]()) code = c;
		late.erase(late.begin(), late.begin() + n);
		return code;
	}
};
struct Event {
	Stream *of = nullptr;
	size_t at = 0;
};

static const uint64_t canary = 0x5eed5eed5eed5eedull;

extern "C" {
int cuInit(unsigned) { CALL(cuInit) return setting("EMULATOR_CARDS", 1) ? 0 : 100; }
int cuDriverGetVersion(int *v) { *v = setting("EMULATOR_VERSION", 12040); return 0; }
int cuDeviceGetCount(int *n) { CALL(cuDeviceGetCount) *n = setting("EMULATOR_CARDS", 1); return 0; }
int cuDeviceGet(int *d, int i) { CALL(cuDeviceGet) *d = i; return 0; }
int cuDeviceGetName(char *name, int n, int) { snprintf(name, n, "Emulated card"); return 0; }
int cuDeviceTotalMem_v2(size_t *n, int) { *n = setting("EMULATOR_MEMORY", 1l << 32); return 0; }
int cuDeviceGetAttribute(int *v, int which, int) {
	*v = which == 16 ? 2 : which == 75 ? setting("EMULATOR_CAPABILITY", 9) : 0;
	return 0;
}
int cuDeviceGetUuid_v2(char *id, int card) { memset(id, 0, 16), id[0] = card + 1; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int) { CALL(cuDevicePrimaryCtxRetain) *c = &lock; return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void *) { CALL(cuCtxSetCurrent) return 0; }
int cuModuleLoadData(void **m, const char *ptx) {
	CALL(cuModuleLoadData)
	*m = &lock;
	return strstr(ptx, ".version") ? 0 : 218;
}
int cuModuleGetFunction(void **f, void *, const char *name) {
	CALL(cuModuleGetFunction)
	auto k = kernels().find(name);
	if (k == kernels().end()) return 500;
	*f = (void *)k->second;
	return 0;
}
static std::map<void *, unsigned> allowed; // bytes of shared memory, where they are more than 48 KiB
int cuFuncSetAttribute(void *f, int which, int v) {
	CALL(cuFuncSetAttribute)
	if (which != 8 || v > 99 << 10) return 1;
	allowed[f] = v;
	return 0;
}
int cuStreamCreate(Stream **s, unsigned) { CALL(cuStreamCreate) *s = new Stream; return 0; }
int cuStreamCreateWithPriority(Stream **s, unsigned, int) { CALL(cuStreamCreateWithPriority) *s = new Stream; return 0; }
int cuEventCreate(Event **e, unsigned) { CALL(cuEventCreate) *e = new Event; return 0; }
int cuEventRecord(Event *e, Stream *s) { CALL(cuEventRecord) e->of = s, e->at = s->ran + s->late.size(); return 0; }
int cuEventSynchronize(Event *e) { CALL(cuEventSynchronize) return e->of ? e->of->catchUp(e->at) : 0; }
int cuEventDestroy_v2(Event *e) { delete e; return 0; }
int cuStreamWaitEvent(Stream *s, Event *e, unsigned) {
	CALL(cuStreamWaitEvent)
	Stream *of = e->of;
	size_t at = e->at;
	return of ? s->later([=] { return of->catchUp(at); }) : 0;
}
int cuStreamDestroy_v2(Stream *s) { delete s; return 0; }
int cuStreamSynchronize(Stream *s) { CALL(cuStreamSynchronize) return s->captured ? 900 : s->catchUp(~(size_t)0); }
int cuStreamBeginCapture_v2(Stream *s, int) { CALL(cuStreamBeginCapture) if (getenv("EMULATOR_NO_CAPTURE")) return 900; s->captured = new Graph; return 0; }
int cuStreamEndCapture(Stream *s, Graph **g) { CALL(cuStreamEndCapture) *g = s->captured, s->captured = nullptr; return 0; }
int cuStreamGetCaptureInfo_v2(Stream *s, int *status, uint64_t *id, Graph **g, Node ***nodes, size_t *n) {
	CALL(cuStreamGetCaptureInfo)
	*status = 1, *id = 1, *g = s->captured, *n = 1;
	*nodes = &s->captured->nodes.back();
	return 0;
}
int cuGraphInstantiateWithFlags(Graph **e, Graph *g, uint64_t) {
	CALL(cuGraphInstantiate)
	*e = g; // graphs are made and destroyed together
	return 0;
}
int cuGraphLaunch(Graph *e, Stream *s) {
	CALL(cuGraphLaunch)
	for (Node *n : e->nodes)
		if (int code = s->queue(n->run, n->args.data(), n->args.size())) return code;
	return 0;
}
struct NodeParams {
	void *f;
	unsigned shape[6], shared;
	void **params, **extra;
};
int cuGraphExecKernelNodeSetParams(Graph *, Node *n, const NodeParams *p) {
	CALL(cuGraphExecKernelNodeSetParams)
	if (n->args.size() != sizes()[(Body)p->f]) return 1;
	memcpy(n->args.data(), p->params[0], n->args.size());
	return 0;
}
int cuGraphExecDestroy(Graph *) { return 0; }
int cuGraphDestroy(Graph *g) {
	for (Node *n : g->nodes) delete n;
	delete g;
	return 0;
}
int cuDeviceGetDefaultMemPool(void **p, int) { *p = &lock; return 0; }
int cuMemPoolSetAttribute(void *, int, void *) { return 0; }
int cuMemPoolTrimTo(void *, size_t) { return 0; }

// Memory is full of what is not a number, and ends with a mark that nobody may write.
int cuMemAllocAsync(void **p, size_t n, void *) {
	CALL(cuMemAllocAsync)
	if (used + n > (size_t)setting("EMULATOR_MEMORY", 1l << 32)) return 2;
	if (posix_memalign(p, 256, n + 256)) return 2;
	memset(*p, 0xff, n);
	memcpy((char *)*p + n, &canary, 8);
	blocks[(uintptr_t)*p] = n;
	used += n;
	return 0;
}
static int giveUp(void *p) {
	auto b = blocks.find((uintptr_t)p);
	if (b == blocks.end()) return 1;
	if (memcmp((char *)p + b->second, &canary, 8)) {
		fprintf(stderr, "emulator: a kernel wrote beyond %zu bytes\n", b->second);
		abort();
	}
	memset(p, 0xff, b->second);
	used -= b->second;
	blocks.erase(b);
	free(p);
	return 0;
}
int cuMemFreeAsync(void *p, Stream *s) {
	CALL(cuMemFreeAsync)
	return s->later([=] { return giveUp(p); });
}

// Memory that other processes can open is a file without a name, which ends with its last process.
struct Handle {
	char text[64];
};
static std::map<uintptr_t, std::pair<int, size_t>> shared;

static int mapped(void **p, int fd, size_t n) {
	*p = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*p == MAP_FAILED) return 1;
	shared[(uintptr_t)*p] = {fd, n};
	return 0;
}
int cuMemAlloc_v2(void **p, size_t n) {
	CALL(cuMemAlloc)
	if (used + n > (size_t)setting("EMULATOR_MEMORY", 1l << 32)) return 2;
	int fd = memfd_create("emulated card", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, n) || mapped(p, fd, n)) return 2;
	used += n;
	return 0;
}
int cuMemFree_v2(void *p) {
	CALL(cuMemFree)
	auto b = shared.find((uintptr_t)p);
	if (b == shared.end()) return 1;
	used -= b->second.second;
	munmap(p, b->second.second), close(b->second.first);
	shared.erase(b);
	return 0;
}
int cuIpcGetMemHandle(Handle *h, void *p) {
	CALL(cuIpcGetMemHandle)
	auto b = shared.find((uintptr_t)p);
	if (b == shared.end() || getenv("EMULATOR_NO_IPC")) return 801;
	memset(h, 0, sizeof *h);
	snprintf(h->text, sizeof h->text, "/proc/%d/fd/%d", getpid(), b->second.first);
	return 0;
}
int cuIpcOpenMemHandle_v2(void **p, Handle h, unsigned flags) {
	CALL(cuIpcOpenMemHandle)
	int fd = flags == 1 && strnlen(h.text, sizeof h.text) < sizeof h.text ? open(h.text, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0) return 400;
	return mapped(p, fd, lseek(fd, 0, SEEK_END));
}
int cuIpcCloseMemHandle(void *p) {
	CALL(cuIpcCloseMemHandle)
	auto b = shared.find((uintptr_t)p);
	if (b == shared.end()) return 400;
	munmap(p, b->second.second), close(b->second.first);
	shared.erase(b);
	return 0;
}
int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t n, Stream *s) {
	CALL(cuMemcpyDtoD)
	return s->later([=] { memcpy(to, from, n); return 0; });
}

// Memory that is put under addresses.
int cuMemAddressReserve(void **p, size_t n, size_t, void *, uint64_t) {
	CALL(cuMemAddressReserve)
	const size_t grain = 2 << 20;
	char *at = (char *)mmap(nullptr, n + grain, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED) return 2;
	*p = (void *)(((uintptr_t)at + grain - 1) & ~(uintptr_t)(grain - 1)); // the rest is never freed
	return 0;
}
int cuMemAddressFree(void *p, size_t n) { return munmap(p, n) ? 1 : 0; }
int cuMemCreate(size_t *handle, size_t n, const void *, uint64_t) {
	CALL(cuMemCreate)
	if (n % (2 << 20)) return 1;
	if (used + n > (size_t)setting("EMULATOR_MEMORY", 1l << 32)) return 2;
	used += n, *handle = n;
	return 0;
}
int cuMemRelease(size_t) { return 0; }
int cuMemMap(void *p, size_t n, size_t, size_t handle, uint64_t) {
	CALL(cuMemMap)
	return n == handle ? 0 : 1;
}
int cuMemSetAccess(void *p, size_t n, const void *, size_t) {
	CALL(cuMemSetAccess)
	if (mprotect(p, n, PROT_READ | PROT_WRITE)) return 1;
	memset(p, 0xff, n);
	return 0;
}
int cuMemUnmap(void *p, size_t n) {
	CALL(cuMemUnmap)
	if (madvise(p, n, MADV_DONTNEED) || mprotect(p, n, PROT_NONE)) return 1;
	used -= n;
	return 0;
}
int cuMemGetInfo_v2(size_t *freed, size_t *total) {
	*total = setting("EMULATOR_MEMORY", 1l << 32), *freed = *total - used;
	return 0;
}
int cuMemAllocHost_v2(void **p, size_t n) { CALL(cuMemAllocHost) *p = malloc(n); return 0; }
int cuMemFreeHost(void *p) { free(p); return 0; }
int cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t n, Stream *s) {
	CALL(cuMemcpyHtoD)
	return s->later([=] { memcpy(to, from, n); return 0; });
}
int cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t n, Stream *s) {
	CALL(cuMemcpyDtoH)
	return s->later([=] { memcpy(to, from, n); return 0; });
}

struct Copy2D {
	size_t srcX, srcY, srcKind;
	char *srcHost, *srcCard, *srcArray;
	size_t srcPitch, dstX, dstY, dstKind;
	char *dstHost, *dstCard, *dstArray;
	size_t dstPitch, bytes, rows;
};
int cuMemcpy2DAsync_v2(const Copy2D *p, Stream *s) {
	CALL(cuMemcpy2D)
	Copy2D c = *p;
	return s->later([=] {
		const char *from = (c.srcKind & 0xffffffff) == 1 ? c.srcHost : c.srcCard;
		char *to = (c.dstKind & 0xffffffff) == 1 ? c.dstHost : c.dstCard;
		for (size_t i = 0; i < c.rows; i++) memcpy(to + i * c.dstPitch, from + i * c.srcPitch, c.bytes);
		return 0;
	});
}
int cuMemsetD8Async(void *p, unsigned char v, size_t n, Stream *s) {
	CALL(cuMemsetD8)
	return s->queue([=](const void *) { memset(p, v, n); return 0; });
}
int cuMemsetD2D8Async(char *p, size_t pitch, unsigned char v, size_t w, size_t h, Stream *s) {
	CALL(cuMemsetD2D8)
	return s->queue([=](const void *) {
		for (size_t i = 0; i < h; i++) memset(p + i * pitch, v, w);
		return 0;
	});
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
	Stream *s, void **params, void **) {
	CALL(cuLaunchKernel)
	if (shared > (allowed.count(f) ? allowed[f] : 48 << 10)) return 1;
	if (bx * by * bz > 1024 || gy > 65535 || gz > 65535 || !gx || !gy || !gz) return 1;
	return s->queue([=](const void *args) {
		body = (Body)f, arguments = args;
		gridDim = {gx, gy, gz}, blockDim = {bx, by, bz};
		for (unsigned z = 0; z < gz; z++)
			for (unsigned y = 0; y < gy; y++)
				for (unsigned x = 0; x < gx; x++) {
					blockIdx = {x, y, z};
					runBlock();
				}
		return 0;
	}, params[0], sizes()[(Body)f]);
}
int cuGetErrorName(int code, const char **s) { *s = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR"; return 0; }
int cuGetErrorString(int code, const char **s) { *s = code == 2 ? "out of memory" : "an error of the emulator"; return 0; }
}
