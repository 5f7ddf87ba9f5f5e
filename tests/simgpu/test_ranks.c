/* SPDX-License-Identifier: Apache-2.0 */
/* What NCCL's stand-in must do between ranks. Started by simrun; argv[1] names the case, and the ranks
 * meet by a file in $PIPETRAIN_RDV. test_cluster.py runs the cases and looks at the truth files. */
#include "tests/simgpu/cupti_sink.h"

#include <fcntl.h>
#include <nccl.h>

#define N_ELEMENTS 3000

static int rank, world;
static cudaStream_t stream;

static void nccl_ok(ncclResult_t r, int line)
{
	if (r != ncclSuccess) {
		fprintf(stderr, "rank %d line %d: %s\n", rank, line, ncclGetErrorString(r));
		_exit(1);
	}
}

#define OK(x) nccl_ok((x), __LINE__)

static ncclUniqueId meet(const char *name)
{
	ncclUniqueId id;
	char path[600], tmp[640];
	int fd;

	snprintf(path, sizeof path, "%s/%s", getenv("PIPETRAIN_RDV"), name);
	if (rank == 0) {
		OK(ncclGetUniqueId(&id));
		snprintf(tmp, sizeof tmp, "%s.tmp", path);
		fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL, 0600);
		NEED(fd >= 0 && write(fd, &id, sizeof id) == (ssize_t)sizeof id);
		NEED(rename(tmp, path) == 0);
	} else {
		while ((fd = open(path, O_RDONLY)) < 0) {
			usleep(500);
		}
		NEED(read(fd, &id, sizeof id) == (ssize_t)sizeof id);
	}
	close(fd);
	return id;
}

static ncclComm_t comm_new(const char *name)
{
	ncclUniqueId id = meet(name);
	ncclComm_t c;

	OK(ncclCommInitRank(&c, world, id, rank));
	return c;
}

static float *floats(size_t n, float base)
{
	float *p;

	NEED(cudaMalloc((void **)&p, n * sizeof *p) == cudaSuccess);
	for (size_t i = 0; i < n; i++) {
		p[i] = base + (float)i;
	}
	return p;
}

static void settle(void)
{
	NEED(cudaStreamSynchronize(stream) == cudaSuccess);
}

static void reductions(ncclComm_t c)
{
	float *a = floats(N_ELEMENTS, (float)rank), *b = floats(N_ELEMENTS, 0);
	float n = (float)world, ranks = n * (n - 1) / 2;

	OK(ncclAllReduce(a, b, N_ELEMENTS, ncclFloat32, ncclSum, c, stream));
	settle();
	for (int i = 0; i < 40; i++) {
		NEED(b[i] == ranks + n * (float)i);
	}
	OK(ncclAllReduce(a, b, N_ELEMENTS, ncclFloat32, ncclMax, c, stream));
	settle();
	NEED(b[0] == n - 1 && b[7] == n + 6);
	OK(ncclAllReduce(a, b, N_ELEMENTS, ncclFloat32, ncclAvg, c, stream));
	settle();
	NEED(b[3] == ranks / n + 3);
	OK(ncclReduce(a, b, N_ELEMENTS, ncclFloat32, ncclSum, world - 1, c, stream));
	settle();
	NEED(rank != world - 1 || b[5] == ranks + n * 5);
	ncclRedOp_t twice;
	float two = 2.0F;
	OK(ncclRedOpCreatePreMulSum(&twice, &two, ncclFloat32, ncclScalarHostImmediate, c));
	OK(ncclAllReduce(a, b, N_ELEMENTS, ncclFloat32, twice, c, stream));
	settle();
	NEED(b[2] == 2 * (ranks + n * 2));
	OK(ncclAllReduce(a, a, N_ELEMENTS, ncclFloat32, ncclSum, c, stream)); /* in place */
	settle();
	NEED(a[9] == ranks + n * 9);
}

static void types(ncclComm_t c)
{
	static const ncclDataType_t all[] = { ncclInt8,    ncclUint8,   ncclInt32,   ncclUint32,
					      ncclInt64,   ncclUint64,  ncclFloat16, ncclFloat32,
					      ncclFloat64, ncclBfloat16 };
	static const size_t size[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2 };
	/* One in each type, and the sums of one up to four ones as float16 and bfloat16. */
	static const uint16_t half[] = { 0, 0x3c00, 0x4000, 0x4200, 0x4400 };
	static const uint16_t brain[] = { 0, 0x3f80, 0x4000, 0x4040, 0x4080 };
	uint64_t *a, *b;

	NEED(world <= 4);
	NEED(cudaMalloc((void **)&a, 64) == cudaSuccess &&
	     cudaMalloc((void **)&b, 64) == cudaSuccess);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		float f = 1.0F;
		double d = 1.0, sum;
		uint64_t one = 1, want = (uint64_t)world;
		bool is_half = all[i] == ncclFloat16, is_brain = all[i] == ncclBfloat16;
		memset(a, 0, 64);
		memset(b, 0, 64);
		memcpy(&one, all[i] == ncclFloat32 ? (void *)&f : (void *)&one, 4);
		memcpy(&one, all[i] == ncclFloat64 ? (void *)&d : (void *)&one, 8);
		one = is_half ? half[1] : is_brain ? brain[1] : one;
		memcpy(a, &one, size[i]);
		OK(ncclAllReduce(a, b, 1, all[i], ncclSum, c, stream));
		settle();
		f = (float)world;
		sum = world;
		memcpy(&want, all[i] == ncclFloat32 ? (void *)&f : (void *)&want, 4);
		memcpy(&want, all[i] == ncclFloat64 ? (void *)&sum : (void *)&want, 8);
		want = is_half ? half[world] : is_brain ? brain[world] : want;
		NEED(memcmp(b, &want, size[i]) == 0);
	}
}

static void movements(ncclComm_t c)
{
	size_t n = 100, all = n * (size_t)world;
	float *a = floats(all, (float)rank * 1000), *b = floats(all, -1);

	OK(ncclAllGather(a, b, n, ncclFloat32, c, stream));
	settle();
	for (int r = 0; r < world; r++) {
		NEED(b[(size_t)r * n + 3] == (float)r * 1000 + 3);
	}
	OK(ncclReduceScatter(a, b, n, ncclFloat32, ncclSum, c, stream));
	settle();
	int want = 1000 * world * (world - 1) / 2 + world * (rank * (int)n + 1);
	NEED(b[1] == (float)want);
	OK(ncclBroadcast(a, b, n, ncclFloat32, 1, c, stream));
	settle();
	NEED(b[4] == 1004);
	OK(ncclAlltoAll(a, b, n, ncclFloat32, c, stream));
	settle();
	for (int r = 0; r < world; r++) {
		NEED(b[(size_t)r * n] == (float)(r * 1000 + rank * (int)n));
	}
	OK(ncclGather(a, b, n, ncclFloat32, 0, c, stream));
	settle();
	NEED(rank != 0 || b[(size_t)(world - 1) * n] == (float)(1000 * (world - 1)));
	OK(ncclScatter(a, b, n, ncclFloat32, 0, c, stream));
	settle();
	NEED(b[2] == (float)(rank * (int)n + 2));
	OK(ncclBcast(a, n, ncclFloat32, 0, c, stream));
	settle();
	NEED(a[6] == 6);
}

static void children(ncclComm_t c)
{
	ncclComm_t half, less;
	int n, r, out = 0;
	float *a = floats(8, (float)rank), *b = floats(8, 0);

	OK(ncclCommSplit(c, rank % 2, -rank, &half, NULL)); /* keys turn the order around */
	OK(ncclCommCount(half, &n));
	OK(ncclCommUserRank(half, &r));
	NEED(n == world / 2 && r == n - 1 - rank / 2);
	OK(ncclAllReduce(a, b, 8, ncclFloat32, ncclSum, half, stream));
	settle();
	float want = 0;
	for (int i = rank % 2; i < world; i += 2) {
		want += (float)i;
	}
	NEED(b[0] == want);
	if (rank != 0) {
		OK(ncclCommShrink(c, &out, 1, &less, NULL, NCCL_SHRINK_DEFAULT));
		OK(ncclAllReduce(a, b, 8, ncclFloat32, ncclSum, less, stream));
		settle();
		int others = world * (world - 1) / 2;
		NEED(b[0] == (float)others);
		OK(ncclCommDestroy(less));
	}
	OK(ncclCommFinalize(half));
	OK(ncclCommDestroy(half));
	ncclComm_t none = c;
	OK(ncclCommSplit(c, rank == 0 ? NCCL_SPLIT_NOCOLOR : 1, 0, &none, NULL));
	NEED((none == NULL) == (rank == 0));
	OK(ncclCommDestroy(none));
}

static void case_sums(void)
{
	ncclComm_t c = comm_new("id");

	reductions(c);
	types(c);
	movements(c);
	children(c);
	NEED(ncclAllReduce(NULL, NULL, 1, ncclFloat32, ncclSum, NULL, stream) ==
	     ncclInvalidArgument);
	NEED(ncclSend(NULL, 1, ncclFloat32, world, c, stream) == ncclInvalidArgument);
	OK(ncclCommDestroy(c));
}

/* Rank 0 sends, rank 1 receives 400 ms late; prints how long the sender's stream was busy. */
static void case_eager(void)
{
	ncclComm_t c = comm_new("id");
	size_t bytes = (size_t)env_number("SIM_TEST_BYTES");
	char *p;

	NEED(cudaMalloc((void **)&p, bytes) == cudaSuccess);
	int64_t t0 = test_now();
	if (rank == 0) {
		OK(ncclSend(p, bytes, ncclInt8, 1, c, stream));
		settle();
		printf("sender %ld us\n", (long)((test_now() - t0) / 1000));
	} else {
		usleep(400000);
		OK(ncclRecv(p, bytes, ncclInt8, 0, c, stream));
		settle();
	}
	OK(ncclCommDestroy(c));
}

/* Rank 0's kernel keeps it from joining for 20 ms; all ranks do ten all-reduces. */
static void case_late(void)
{
	ncclComm_t c = comm_new("id");
	float *a = floats(1 << 20, 1);
	cudaKernel_t k = test_kernel("alpha");

	for (int i = 0; i < 10; i++) {
		test_launch(k, rank == 0 ? 20000000 : 1000000, stream);
		OK(ncclAllReduce(a, a, 1 << 20, ncclFloat32, ncclSum, c, stream));
	}
	settle();
	OK(ncclCommDestroy(c));
}

/* Some rank hangs: nobody's stream becomes idle. */
static void case_hang(void)
{
	ncclComm_t c = comm_new("id");
	float *a = floats(1 << 20, 1);

	alarm(rank == 1 ? 2 : 0); /* a host that hangs in the call is ended by it */
	for (int i = 0; i < 4; i++) {
		OK(ncclAllReduce(a, a, 1 << 20, ncclFloat32, ncclSum, c, stream));
	}
	usleep(300000);
	printf("rank %d %s\n", rank, cudaStreamQuery(stream) == cudaSuccess ? "idle" : "busy");
	fflush(stdout);
	usleep(300000);
	OK(ncclCommAbort(c)); /* frees the streams of all but the one whose own kernel hangs */
	if (!strstr(getenv("SIMGPU_HANG") ? getenv("SIMGPU_HANG") : "", "gpu") || rank != 1) {
		settle();
	}
	_exit(0);
}

/* A group launches at its end; its sends and receives are one operation. */
static void case_group(void)
{
	ncclComm_t c = comm_new("id");
	float *a = floats(64, (float)rank), *b = floats(64, 0);
	int next = (rank + 1) % world, prev = (rank + world - 1) % world;

	OK(ncclGroupStart());
	OK(ncclGroupStart());
	OK(ncclRecv(b, 64, ncclFloat32, prev, c, stream));
	OK(ncclGroupEnd());
	OK(ncclSend(a, 64, ncclFloat32, next, c, stream));
	usleep(20000);
	NEED(cudaStreamQuery(stream) == cudaSuccess && b[0] == 0);
	OK(ncclGroupEnd());
	settle();
	NEED(b[1] == (float)prev + 1);
	NEED(ncclGroupEnd() == ncclInvalidUsage);
	OK(ncclCommDestroy(c));
}

/* One process, several devices. */
static void case_all(void)
{
	ncclComm_t c[3];
	float *a[3], *b[3];
	cudaStream_t s[3];
	int device;

	OK(ncclCommInitAll(c, 3, NULL));
	for (int i = 0; i < 3; i++) {
		NEED(cudaSetDevice(i) == cudaSuccess);
		s[i] = test_stream();
		a[i] = floats(10, (float)i);
		b[i] = floats(10, 0);
		OK(ncclCommCuDevice(c[i], &device));
		NEED(device == i);
	}
	OK(ncclGroupStart());
	for (int i = 0; i < 3; i++) {
		OK(ncclAllReduce(a[i], b[i], 10, ncclFloat32, ncclSum, c[i], s[i]));
	}
	OK(ncclGroupEnd());
	for (int i = 0; i < 3; i++) {
		NEED(cudaStreamSynchronize(s[i]) == cudaSuccess);
		NEED(b[i][1] == 6);
	}
}

/* A non-blocking communicator is in progress until all have come. */
static void case_async(void)
{
	ncclUniqueId id = meet("id");
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclResult_t state;
	ncclComm_t c;

	config.blocking = 0;
	usleep(rank == 0 ? 30000 : 0);
	NEED(ncclCommInitRankConfig(&c, world, id, rank, &config) == ncclInProgress);
	do {
		OK(ncclCommGetAsyncError(c, &state));
		usleep(1000);
	} while (state == ncclInProgress);
	OK(state);
	float *a = floats(16, 1);
	OK(ncclAllReduce(a, a, 16, ncclFloat32, ncclSum, c, stream));
	settle();
	NEED(a[0] == (float)world);
	OK(ncclCommDestroy(c));
}

/* Prints what CUPTI shows of each communication kernel. */
static void case_report(void)
{
	sink_start(sink_kernels, 1);
	ncclComm_t c = comm_new("id");
	float *a = floats(1 << 18, 1);
	for (int i = 0; i < 20; i++) {
		OK(ncclAllReduce(a, a, 1 << 18, ncclFloat32, ncclSum, c, stream));
		settle();
		usleep(10000);
	}
	OK(ncclCommDestroy(c));
	NEED(cuptiActivityFlushAll(1) == CUPTI_SUCCESS);
	CUpti_ActivityKernel10 *k;
	for (unsigned i = 0; (k = sink_kernel(i)); i++) {
		printf("%d %lu %lu %s\n", rank, (unsigned long)k->start, (unsigned long)k->end,
		       k->name);
	}
}

/* A compute kernel beside a communication kernel that waits for its peer all the time. */
static void case_contend(void)
{
	ncclComm_t c[2];
	cudaStream_t comm[2], compute;
	cudaEvent_t e[2];
	float *a[2], ms;
	cudaKernel_t k = test_kernel("alpha");

	OK(ncclCommInitAll(c, 2, NULL));
	for (int i = 1; i >= 0; i--) {
		NEED(cudaSetDevice(i) == cudaSuccess);
		comm[i] = test_stream();
		a[i] = floats(16, 0);
	}
	compute = test_stream();
	NEED(cudaEventCreate(&e[0]) == cudaSuccess && cudaEventCreate(&e[1]) == cudaSuccess);
	test_launch(k, 100000000, comm[1]);
	OK(ncclGroupStart());
	OK(ncclAllReduce(a[0], a[0], 16, ncclFloat32, ncclSum, c[0], comm[0]));
	OK(ncclAllReduce(a[1], a[1], 16, ncclFloat32, ncclSum, c[1], comm[1]));
	OK(ncclGroupEnd());
	test_launch(k, 20000000, compute); /* while this runs, the rest is enqueued */
	NEED(cudaEventRecord(e[0], compute) == cudaSuccess);
	test_launch(k, 10000000, compute);
	NEED(cudaEventRecord(e[1], compute) == cudaSuccess);
	NEED(cudaStreamSynchronize(compute) == cudaSuccess);
	NEED(cudaEventElapsedTime(&ms, e[0], e[1]) == cudaSuccess);
	NEED(ms > 14.9F && ms < 15.2F);
	NEED(cudaStreamSynchronize(comm[0]) == cudaSuccess);
	test_launch(k, 20000000, compute); /* while this runs, the rest is enqueued */
	NEED(cudaEventRecord(e[0], compute) == cudaSuccess);
	test_launch(k, 10000000, compute);
	NEED(cudaEventRecord(e[1], compute) == cudaSuccess);
	NEED(cudaStreamSynchronize(compute) == cudaSuccess);
	NEED(cudaEventElapsedTime(&ms, e[0], e[1]) == cudaSuccess);
	NEED(ms > 9.9F && ms < 10.2F);
	NEED(cudaEventDestroy(e[0]) == cudaSuccess && cudaEventDestroy(e[1]) == cudaSuccess);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "sums", case_sums },      { "eager", case_eager },
		      { "late", case_late },      { "hang", case_hang },
		      { "group", case_group },    { "all", case_all },
		      { "async", case_async },    { "report", case_report },
		      { "contend", case_contend } };

	rank = (int)env_number("RANK");
	world = (int)env_number("WORLD_SIZE");
	NEED(argc == 2 && cudaSetDevice((int)env_number("LOCAL_RANK")) == cudaSuccess);
	stream = test_stream();
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		if (strcmp(cases[i].name, argv[1]) == 0) {
			cases[i].run();
			return 0;
		}
	}
	return 2;
}
