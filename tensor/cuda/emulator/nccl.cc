// NCCL for tests: the functions that starling calls, between threads of one process whose cards are emulated.
//
//   g++ -std=c++17 -O1 -shared -fPIC -o libnccl.so.2 nccl.cc
//
// Sums are from the last rank to the first, since NCCL's order is its own. EMULATOR_NCCL_FAIL=init has ranks after the
// first fail to join, late has them never join, and lost has the second rank take no part in sums.
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

struct Id {
	char text[128];
};
struct Group {
	std::vector<void *> given;
	int joined = 0, there = 0, round = 0;
	bool aborted = false;
};
struct Comm {
	Group *group;
	int rank;
};

static std::mutex lock;
static std::condition_variable changed;
static std::map<std::string, Group *> groups;
static int last;

static bool asked(const char *what) {
	const char *v = getenv("EMULATOR_NCCL_FAIL");
	return v && !strcmp(v, what);
}

template <class T> static void sum(Group *g, size_t n) {
	for (size_t i = 0; i < n; i++) {
		T total = 0;
		for (size_t r = g->given.size(); r-- > 0;) total += ((T *)g->given[r])[i];
		for (void *p : g->given) ((T *)p)[i] = total;
	}
}

extern "C" {
int ncclGetUniqueId(Id *id) {
	std::lock_guard<std::mutex> guard(lock);
	memset(id, 0, sizeof *id);
	memcpy(id->text, &++last, sizeof last);
	id->text[127] = 42; // all of it has to arrive
	return 0;
}
int ncclCommInitRankConfig(Comm **c, int ranks, Id id, int rank, void *config) {
	std::lock_guard<std::mutex> guard(lock);
	if (id.text[127] != 42 || ((unsigned *)config)[2] != 0xcafebeef) return 4;
	if (rank > 0 && asked("init")) return 2;
	Group *&g = groups[std::string(id.text, sizeof id.text)];
	if (!g) g = new Group;
	g->given.resize(ranks);
	*c = new Comm{g, rank};
	if (rank == 0 || !asked("late")) g->joined++;
	return 7;
}
int ncclCommGetAsyncError(Comm *c, int *state) {
	std::lock_guard<std::mutex> guard(lock);
	*state = c->group->joined < (int)c->group->given.size() ? 7 : 0;
	return 0;
}
int ncclCommAbort(Comm *c) {
	std::lock_guard<std::mutex> guard(lock);
	c->group->aborted = true;
	changed.notify_all();
	return 0;
}
int ncclGroupStart() { return 0; }
int ncclGroupEnd() { return 0; }
int ncclAllReduce(void *from, void *to, size_t n, int type, int op, Comm *c, void *) {
	std::unique_lock<std::mutex> guard(lock);
	Group *g = c->group;
	if (from != to || op != 0 || g->aborted) return 4;
	if (c->rank == 1 && asked("lost")) return 6;
	g->given[c->rank] = to;
	int round = g->round;
	if (++g->there == (int)g->given.size()) {
		if (type == 7) sum<float>(g, n);
		else sum<double>(g, n);
		g->there = 0, g->round++;
		changed.notify_all();
	}
	changed.wait(guard, [=] { return g->round > round || g->aborted; });
	return g->round > round ? 0 : 6;
}
const char *ncclGetErrorString(int code) { return code == 2 ? "unhandled system error" : code == 6 ? "remote process exited" : "an error of the emulator"; }
const char *ncclGetLastError(void *) { return ""; }
}
