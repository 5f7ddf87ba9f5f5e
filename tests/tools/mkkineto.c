/* SPDX-License-Identifier: Apache-2.0 */
/* mkkineto: Kineto traces of any size of one data-parallel job, whose truth is in the options: who is
 * slow, by what factor, how far the hosts' clocks are apart. The same options give the same bytes. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tools/mkk_event.h"

#define RANKS_MAX   1024
#define COMPUTE     7
#define COMM        20
#define LAYERS      8
#define KERNELS     10 /* of a layer */
#define LAUNCH_NS   6000
#define DELAY_NS    4000
#define TRANSFER_NS 120000
#define BASE_NS     1711929600000000000

struct rank {
	struct mkk_who who;
	struct mkk_out *out;
	char host[32];
	int64_t clock_ns; /* what this host's clock shows too much */
	double factor;    /* on the duration of its compute */
	int64_t cpu_ns, gpu_ns, next_id;
	int64_t enqueued_ns; /* when its collective could start at the earliest */
	int64_t collective_id;
};

struct options {
	const char *out;
	uint64_t size, seed;
	int ranks, per_host, straggler;
	double factor;
	int64_t clock_ns[RANKS_MAX];
	int64_t begin_ns; /* after the base */
	bool no_host;
};

static const char *const kernels[] = {
	"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_"
	"segment_k_off_kernel__5x_cublas",
	"void at::native::vectorized_elementwise_kernel<4, "
	"at::native::GeluCUDAKernelImpl(at::Tensor"
	"IteratorBase&, at::native::GeluType)::{lambda()#1}::operator()() "
	"const::{lambda()#4}>(int)",
	"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>"
	"(int, float, c10::BFloat16 const*, c10::BFloat16 const*)",
	"triton_poi_fused_add_native_layer_norm_3",
	"void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::"
	"bfloat16_t>, false, true, false, false, true, true, false>(Flash_fwd_params)",
};
static const char *const ops[] = { "aten::linear", "aten::addmm", "aten::gelu", "aten::layer_norm",
				   "aten::_flash_attention_forward" };

static uint64_t draw(uint64_t *state)
{
	uint64_t x = (*state += 0x9e3779b97f4a7c15u);

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static int64_t shown(const struct rank *r, int64_t true_ns)
{
	return true_ns + r->clock_ns + BASE_NS - r->who.base_ns;
}

/* One kernel of a layer with what leads to it: python, operators, the call. */
static void launch(struct rank *r, unsigned which, int64_t dur_ns)
{
	struct mkk_out *o = r->out;
	int64_t at = shown(r, r->cpu_ns), id = r->next_id, start;

	if (which % 5 == 0) {
		mkk_python(o, &r->who, "torch/nn/modules/module.py(1532): _call_impl", at,
			   4 * (int64_t)LAUNCH_NS, id);
	}
	mkk_op(o, &r->who, ops[which % 5], at, LAUNCH_NS, id, which % 2);
	mkk_op(o, &r->who, "aten::empty", at + 400, 700, id + 1, false);
	if (which % 2)
		mkk_op(o, &r->who, "aten::view", at + 1200, 300, id + 2, true);
	mkk_call(o, &r->who, "cudaLaunchKernel", 211, at + 2000, 3100, id + 3);
	start = r->cpu_ns + 5100 + DELAY_NS;
	if (start < r->gpu_ns)
		start = r->gpu_ns;
	r->gpu_ns = start + dur_ns;
	mkk_kernel(o, &r->who, kernels[which % 5], COMPUTE, shown(r, start), dur_ns, id + 3, 0);
	r->cpu_ns += LAUNCH_NS;
	r->next_id += 4;
}

static void enqueue_collective(struct rank *r)
{
	int64_t at = shown(r, r->cpu_ns);

	mkk_op(r->out, &r->who, "c10d::allreduce_", at, LAUNCH_NS, r->next_id, true);
	mkk_call(r->out, &r->who, "cudaLaunchKernelExC", 430, at + 2000, 3100, r->next_id + 1);
	r->enqueued_ns = r->cpu_ns + 5100 + DELAY_NS;
	if (r->enqueued_ns < r->gpu_ns)
		r->enqueued_ns = r->gpu_ns;
	r->collective_id = r->next_id + 1;
	r->cpu_ns += LAUNCH_NS;
	r->next_id += 2;
}

/* Every rank's kernel ends when the transfer does, which begins when the last has come. */
static void collective(struct rank *ranks, int n, uint64_t *state)
{
	int64_t last = 0;

	for (int i = 0; i < n; i++) {
		enqueue_collective(&ranks[i]);
		last = ranks[i].enqueued_ns > last ? ranks[i].enqueued_ns : last;
	}
	for (int i = 0; i < n; i++) {
		struct rank *r = &ranks[i];
		int64_t end = last + TRANSFER_NS + (int64_t)(draw(state) % 2000);

		mkk_kernel(r->out, &r->who,
			   "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, "
			   "ncclWork*)",
			   COMM, shown(r, r->enqueued_ns), end - r->enqueued_ns, r->collective_id,
			   8388608);
		r->gpu_ns = end;
	}
}

static void step(struct rank *ranks, int n, int number, uint64_t *state)
{
	int64_t begun[RANKS_MAX];

	for (int i = 0; i < n; i++)
		begun[i] = ranks[i].cpu_ns;
	for (int layer = 0; layer < LAYERS; layer++) {
		for (unsigned k = 0; k < KERNELS; k++) {
			int64_t dur = 15000 + (int64_t)(draw(state) % 40000);

			for (int i = 0; i < n; i++) {
				double own = ranks[i].factor *
					     (1 + (double)(draw(state) % 2000) / 100000);

				launch(&ranks[i], k, (int64_t)((double)dur * own));
			}
		}
		collective(ranks, n, state);
	}
	for (int i = 0; i < n; i++) {
		struct rank *r = &ranks[i];

		mkk_call(r->out, &r->who, "cudaDeviceSynchronize", 165, shown(r, r->cpu_ns),
			 r->gpu_ns - r->cpu_ns + 2000, r->next_id++);
		r->cpu_ns = r->gpu_ns + 3000;
		mkk_annotation(r->out, &r->who, "ProfilerStep#", number, shown(r, begun[i]),
			       r->cpu_ns - begun[i]);
	}
}

static bool open_rank(struct rank *r, int i, const struct options *o)
{
	char path[4096];
	int host = i / o->per_host;

	(void)snprintf(r->host, sizeof(r->host), "node%d", host);
	r->who = (struct mkk_who){ .rank = i,
				   .n_ranks = o->ranks,
				   .device = i % o->per_host,
				   .pid = 4000 + i,
				   .base_ns = BASE_NS + (int64_t)host * 1000000000,
				   .host = o->no_host ? NULL : r->host };
	r->clock_ns = o->clock_ns[host];
	r->factor = i == o->straggler ? o->factor : 1;
	r->cpu_ns = o->begin_ns + (int64_t)i * 1700;
	r->gpu_ns = 0;
	r->next_id = 1;
	r->out = malloc(sizeof(*r->out));
	if (!r->out)
		return false;
	memset(r->out, 0, offsetof(struct mkk_out, bytes));
	(void)snprintf(path, sizeof(path), "%s/rank%d.json", o->out, i);
	if (o->ranks == 1 && strstr(o->out, ".json"))
		(void)snprintf(path, sizeof(path), "%s", o->out);
	r->out->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (r->out->fd < 0) {
		perror(path);
		return false;
	}
	mkk_head(r->out, &r->who);
	return true;
}

static int generate(const struct options *o)
{
	struct rank *ranks = calloc((size_t)o->ranks, sizeof(*ranks));
	uint64_t state = o->seed;
	int code = 0, n = 0;

	if (!ranks)
		return 1;
	if (!strstr(o->out, ".json") && mkdir(o->out, 0755) && errno != EEXIST)
		perror(o->out);
	while (n < o->ranks && open_rank(&ranks[n], n, o))
		n++;
	for (int number = 0; n == o->ranks && ranks[0].out->written < o->size; number++)
		step(ranks, n, number, &state);
	for (int i = 0; i < n; i++) {
		struct rank *r = &ranks[i];

		mkk_tail(r->out, &r->who, shown(r, r->cpu_ns));
		mkk_flush(r->out);
		code |= r->out->failed || close(r->out->fd) != 0;
		free(r->out);
	}
	free(ranks);
	return code || n < o->ranks;
}

/* "N:X": a number and a value, as far as *end. */
static bool parse_pair(const char *text, int limit, int *number, double *value, char **end)
{
	long n = strtol(text, end, 10);

	if (*end == text || **end != ':' || n < 0 || n >= limit)
		return false;
	*number = (int)n;
	text = *end + 1;
	*value = strtod(text, end);
	return *end != text;
}

/* "H:US,H:US": what host H's clock shows too much. */
static bool parse_clocks(const char *text, struct options *o)
{
	char *end;

	for (;; text = end + 1) {
		double us;
		int host;

		if (!parse_pair(text, RANKS_MAX, &host, &us, &end))
			return false;
		o->clock_ns[host] = (int64_t)(us * 1000);
		if (*end != ',')
			return !*end;
	}
}

static int usage(void)
{
	(void)fputs(
		"usage: mkkineto --out FILE.json|DIR [--size BYTES] [--seed N] [--ranks N]\n"
		"       [--per-host N] [--clock HOST:US,...] [--straggler RANK:FACTOR] "
		"[--no-host] [--begin S]\n"
		"--begin: seconds from the file's base to its first event (default 4458676.52).\n"
		"Size is that of each rank's file, at least; every file has the same steps.\n",
		stderr);
	return 2;
}

static bool set_option(struct options *o, int c, const char *value)
{
	char *end;

	switch (c) {
	case 'o':
		o->out = value;
		return true;
	case 's':
		o->size = strtoull(value, NULL, 0);
		return true;
	case 'e':
		o->seed = strtoull(value, NULL, 0);
		return true;
	case 'r':
		o->ranks = (int)strtol(value, NULL, 10);
		return true;
	case 'p':
		o->per_host = (int)strtol(value, NULL, 10);
		return true;
	case 'b':
		o->begin_ns = (int64_t)(strtod(value, NULL) * 1e9);
		return true;
	case 'c':
		return parse_clocks(value, o);
	case 'n':
		o->no_host = true;
		return true;
	case 't':
		return parse_pair(value, RANKS_MAX, &o->straggler, &o->factor, &end) && !*end;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "out", 1, NULL, 'o' },       { "size", 1, NULL, 's' },
		{ "seed", 1, NULL, 'e' },      { "ranks", 1, NULL, 'r' },
		{ "per-host", 1, NULL, 'p' },  { "clock", 1, NULL, 'c' },
		{ "no-host", 0, NULL, 'n' },   { "begin", 1, NULL, 'b' },
		{ "straggler", 1, NULL, 't' }, { NULL, 0, NULL, 0 }
	};
	static struct options o = {
		.size = 1 << 20,
		.ranks = 1,
		.per_host = 8,
		.straggler = -1,
		.factor = 1,
		.begin_ns = 4458676522690655,
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (!set_option(&o, c, optarg))
			return usage();
	}
	if (!o.out || optind != argc || o.ranks < 1 || o.ranks > RANKS_MAX || o.per_host < 1 ||
	    (o.ranks > 1 && strstr(o.out, ".json")))
		return usage();
	return generate(&o);
}
