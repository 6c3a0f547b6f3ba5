/* Open MPI beside starling bench wire: the same operations, sizes and way of
 * timing, the same JSON. Built and run by scripts/bench-wire.
 *
 *   mpirun -n N bench-wire SECONDS TURNS OPS SIZES     such as 0.3 3 all-reduce,all-to-all 4096,1048576
 *
 * A size is what one rank holds: an all-to-all sends the n-th part of it to each,
 * an all-reduce sums it. The time of a turn is rank 0's. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { IN_FLIGHT = 4, MOST_TURNS = 64 };

static int rank, ranks;
static char *from, *to;

static void round_trip(int size, int count) {
	for (int i = 0; i < count; i++) {
		if (rank == 0) {
			MPI_Send(from, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(to, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else if (rank == 1) {
			MPI_Recv(to, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(from, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
		}
	}
}

static void all_reduce(int size, int count) {
	for (int i = 0; i < count; i++)
		MPI_Allreduce(MPI_IN_PLACE, to, size / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void all_to_all(int size, int count) {
	for (int i = 0; i < count; i++)
		MPI_Alltoall(from, size / ranks, MPI_BYTE, to, size / ranks, MPI_BYTE, MPI_COMM_WORLD);
}

/* Messages one way, a few at a time; the last word is the receiver's. */
static void stream(int size, int count) {
	MPI_Request flying[IN_FLIGHT];
	for (int i = 0; i < IN_FLIGHT; i++)
		flying[i] = MPI_REQUEST_NULL;
	for (int i = 0; i < count && rank < 2; i++) {
		MPI_Request *r = &flying[i % IN_FLIGHT];
		MPI_Wait(r, MPI_STATUS_IGNORE);
		if (rank == 0)
			MPI_Isend(from, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, r);
		else
			MPI_Irecv(to + (size_t)(i % IN_FLIGHT) * size, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, r);
	}
	MPI_Waitall(IN_FLIGHT, flying, MPI_STATUSES_IGNORE);
	if (rank == 0)
		MPI_Recv(to, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else if (rank == 1)
		MPI_Send(from, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
}

/* Huge pages, as the buffers of starling bench wire have them. Not zeros: processors
 * write zeros over zeros without writing. */
static char *ones(size_t size) {
	enum { HUGE_PAGE = 2 << 20 };
	char *buf = aligned_alloc(HUGE_PAGE, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
	madvise(buf, size, MADV_HUGEPAGE);
	for (size_t i = 0; i + 4 <= size; i += 4)
		*(float *)(buf + i) = 1;
	return buf;
}

static double timed(void (*op)(int, int), int size, int count) {
	MPI_Barrier(MPI_COMM_WORLD);
	double begin = MPI_Wtime();
	op(size, count);
	return (MPI_Wtime() - begin) / count;
}

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void measure(const char *name, int size, double seconds, int turns, int *first) {
	static const struct { const char *name; void (*op)(int, int); } ops[] = {
		{"round-trip", round_trip}, {"stream", stream}, {"all-reduce", all_reduce}, {"all-to-all", all_to_all}};
	void (*op)(int, int) = NULL;
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (strcmp(ops[i].name, name) == 0)
			op = ops[i].op;
	if (op == NULL) {
		fprintf(stderr, "bench-wire: there is no %s\n", name);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	timed(op, size, 3);
	double one = timed(op, size, 5), all[MOST_TURNS];
	int count = one > 0 && seconds / turns / one < 1e5 ? (int)(seconds / turns / one) : 100000;
	count = count < 1 ? 1 : count;
	MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
	for (int t = 0; t < turns; t++)
		all[t] = timed(op, size, count);
	qsort(all, turns, sizeof *all, ascending);
	if (rank == 0)
		printf("%s{\"op\":\"%s\",\"bytes\":%d,\"seconds\":%.9g,\"best\":%.9g}", *first ? "" : ",\n", name, size, all[turns / 2], all[0]);
	*first = 0;
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 5 || ranks < 2 || atoi(argv[2]) < 1 || atoi(argv[2]) > MOST_TURNS) {
		fprintf(stderr, "usage: mpirun -n N bench-wire SECONDS TURNS OPS SIZES\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	long most = 0;
	char *sizes = strdup(argv[4]), *rest, *at;
	for (at = strtok_r(sizes, ",", &rest); at; at = strtok_r(NULL, ",", &rest))
		most = atol(at) > most ? atol(at) : most;
	from = ones(most);
	to = ones(IN_FLIGHT * most);
	int first = 1;
	if (rank == 0)
		printf("{\"workers\":%d,\"rows\":[\n", ranks);
	char *ops = strdup(argv[3]), *others;
	for (char *op = strtok_r(ops, ",", &others); op; op = strtok_r(NULL, ",", &others)) {
		sizes = strdup(argv[4]);
		for (at = strtok_r(sizes, ",", &rest); at; at = strtok_r(NULL, ",", &rest))
			measure(op, atoi(at), atof(argv[1]), atoi(argv[2]), &first);
	}
	if (rank == 0)
		printf("]}\n");
	MPI_Finalize();
	return 0;
}
