/* SPDX-License-Identifier: Apache-2.0 */
/* mktrace's command line. */
#include "tests/tools/mkt_options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum value_kind {
	V_INT,
	V_REAL,
	V_US,
	V_BYTES,
	V_FLAG,
	V_OFF,
	V_SEED,
	V_TEXT,
	V_ORDER,
	V_LAYERS,
	V_FAULT
};

/* One option: where its value goes and what it may be. lo and hi bound numbers (us for times). */
struct option_def {
	const char *name, *arg, *help;
	enum value_kind kind;
	size_t at;
	double lo, hi;
};

#define AT(field) offsetof(struct mkt_options, field)

static const struct option_def defs[] = {
	{ "out", "DIR", "folder for the files (made when absent)", V_TEXT, AT(out), 0, 0 },
	{ "seed", "N", "every draw comes from it", V_SEED, AT(seed), 0, 0 },
	{ "pp", "N", "pipeline stages", V_INT, AT(pp), 1, MKT_PP_MAX },
	{ "dp", "N", "data-parallel replicas", V_INT, AT(dp), 1, 4096 },
	{ "tp", "N", "tensor-parallel degree", V_INT, AT(tp), 1, 64 },
	{ "chunks", "V", "model chunks of a stage (interleaved)", V_INT, AT(chunks), 1, 32 },
	{ "microbatches", "M", "", V_INT, AT(microbatches), 1, 1024 },
	{ "steps", "N", "", V_INT, AT(steps), 1, 1e7 },
	{ "per-host", "N", "ranks on each host", V_INT, AT(ranks_per_host), 1, 64 },
	{ "schedule", "NAME", "gpipe, 1f1b, interleaved", V_ORDER, AT(order), 0, 0 },
	{ "layers", "L[,L...]", "layers of each stage; one number counts for all", V_LAYERS,
	  AT(layers), 0, 0 },
	{ "fwd-us", "T", "forward of one layer and microbatch", V_US, AT(fwd_ns), 1, 1e7 },
	{ "bwd-ratio", "R", "backward over forward", V_REAL, AT(bwd_ratio), 0.1, 10 },
	{ "embed-us", "T", "", V_US, AT(embed_ns), 0, 1e7 },
	{ "loss-us", "T", "", V_US, AT(loss_ns), 0, 1e7 },
	{ "optimizer-us", "T", "", V_US, AT(optimizer_ns), 1, 1e7 },
	{ "launch-us", "T", "host time from one call to the next", V_US, AT(launch_ns), 0.1, 1e5 },
	{ "host-us", "T", "host time before each forward or backward", V_US, AT(host_ns), 0, 1e7 },
	{ "launch-delay-us", "T", "call to earliest start", V_US, AT(launch_delay_ns), 0, 1e5 },
	{ "launch-jitter", "X", "relative", V_REAL, AT(launch_jitter), 0, 10 },
	{ "kernel-sigma", "X", "relative spread of each kernel", V_REAL, AT(kernel_sigma), 0, 1 },
	{ "gpu-sigma", "X", "relative spread between GPUs", V_REAL, AT(gpu_sigma), 0, 1 },
	{ "seq-sigma", "X", "relative spread of attention between microbatches", V_REAL,
	  AT(seq_sigma), 0, 1 },
	{ "comm-sigma", "X", "relative spread of transfers", V_REAL, AT(comm_sigma), 0, 1 },
	{ "p2p-us", "T", "transfer between stages", V_US, AT(p2p_ns), 0, 1e7 },
	{ "tp-us", "T", "all-reduce of a layer", V_US, AT(tp_ns), 0, 1e7 },
	{ "grad-us", "T", "reduction of all gradients", V_US, AT(grad_ns), 0, 1e7 },
	{ "norm-us", "T", "all-reduce of the gradient norm", V_US, AT(norm_ns), 0, 1e7 },
	{ "act-bytes", "N", "message between stages", V_BYTES, AT(act_bytes), 2, 1e12 },
	{ "grad-bytes", "N", "gradients of a rank", V_BYTES, AT(grad_bytes), 4, 1e12 },
	{ "eager-bytes", "N", "what a sender may send before its receiver starts", V_BYTES,
	  AT(eager_bytes), 0, 1e12 },
	{ "buckets", "N", "reductions of the gradients", V_INT, AT(buckets), 1, 1024 },
	{ "grad-allreduce", NULL, "instead of reduce-scatter and all-gather", V_FLAG,
	  AT(grad_allreduce), 0, 0 },
	{ "no-nvtx", NULL, "no ranges", V_OFF, AT(nvtx), 0, 0 },
	{ "one-thread", NULL, "backwards from the main thread", V_FLAG, AT(one_thread), 0, 0 },
	{ "pair-comms", NULL, "a communicator for each pair of stages and direction", V_FLAG,
	  AT(pair_comms), 0, 0 },
	{ "batch-p2p", NULL, "one group for each send and the receive that follows it", V_FLAG,
	  AT(batch_p2p), 0, 0 },
	{ "no-copies", NULL, "", V_OFF, AT(copies), 0, 0 },
	{ "blocks", NULL, "truth.json lists every forward and backward", V_FLAG, AT(blocks), 0, 0 },
	{ "offset-ms", "X", "clock offsets of hosts, either sign", V_REAL, AT(offset_ms), 0, 1e6 },
	{ "drift-ppm", "X", "clock drifts of hosts, either sign", V_REAL, AT(drift_ppm), 0, 1e4 },
	{ "device-us", "T", "error of device times against the host's, stepping once", V_US,
	  AT(device_ns), 0, 1e6 },
	{ "gap-us", "T", "between the kernels of a stream", V_US, AT(gap_ns), 0, 1e4 },
	{ "ring-us", "T", "spread of the ends of one collective", V_US, AT(ring_ns), 0, 1e6 },
	{ "slow", "RANK:F[:FROM:TO]", "a slow GPU", V_FAULT, MKT_SLOW, 0, 0 },
	{ "slow-data", "DP:F[:FROM:TO]", "a replica with longer sequences", V_FAULT, MKT_SLOW_DATA,
	  0, 0 },
	{ "slow-link", "SRC:DST:F", "a slow link between two ranks", V_FAULT, MKT_SLOW_LINK, 0, 0 },
	{ "stall", "RANK:STEP:MS", "a host that stops once", V_FAULT, MKT_STALL, 0, 0 },
	{ "missing", "RANK", "no file of this rank", V_FAULT, MKT_MISSING, 0, 0 },
	{ "drop", "RANK:N", "one in N of its GPU records is lost", V_FAULT, MKT_DROP, 0, 0 },
};

#define N_DEFS ((int)(sizeof(defs) / sizeof(defs[0])))

static const char *const order_names[] = { "gpipe", "1f1b", "interleaved" };

static bool read_real(const char *text, double lo, double hi, double *out)
{
	char *end;
	errno = 0;
	*out = strtod(text, &end);
	return !errno && end != text && !*end && *out >= lo && *out <= hi;
}

static bool read_bytes(const char *text, double lo, double hi, int64_t *out)
{
	char *end;
	errno = 0;
	double v = strtod(text, &end);
	int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	v *= (double)(1 << shift);
	if (errno || end == text || end[shift != 0] || !(v >= lo && v <= hi))
		return false;
	*out = (int64_t)v;
	return true;
}

static bool read_layers(const char *text, int *layers)
{
	int n = 0;
	for (const char *p = text; n < MKT_PP_MAX; p++) {
		char *end;
		long v = strtol(p, &end, 10);
		if (end == p || v < 1 || v > 1000 || (*end && *end != ','))
			return false;
		layers[n++] = (int)v;
		p = end;
		if (!*p)
			break;
	}
	for (int i = n; i < MKT_PP_MAX; i++)
		layers[i] = n == 1 ? layers[0] : 0;
	return true;
}

static bool read_fault(const char *text, enum mkt_fault_kind kind, struct mkt_options *opt)
{
	double v[4];
	int n = 0;
	const char *p = text;
	while (n < 4) {
		char *end;
		v[n] = strtod(p, &end);
		if (end == p || (*end && *end != ':') || !(v[n] >= 0 && v[n] < 1e9))
			return false;
		n++;
		if (!*end)
			break;
		p = end + 1;
	}
	if (opt->n_faults == MKT_FAULTS_MAX)
		return false;
	struct mkt_fault *f = &opt->faults[opt->n_faults++];
	*f = (struct mkt_fault){ .kind = kind, .a = (int)v[0], .until = INT64_MAX, .factor = 1 };
	switch (kind) {
	case MKT_SLOW:
	case MKT_SLOW_DATA:
		f->factor = v[1];
		if (n == 4) {
			f->at = (int64_t)v[2];
			f->until = (int64_t)v[3];
		}
		return n == 2 || n == 4;
	case MKT_SLOW_LINK:
		f->b = (int)v[1];
		f->factor = v[2];
		return n == 3;
	case MKT_STALL:
		f->at = (int64_t)v[1];
		f->until = f->at + 1;
		f->ns = (int64_t)(v[2] * 1e6);
		return n == 3;
	case MKT_MISSING:
		return n == 1;
	case MKT_DROP:
		f->at = (int64_t)v[1];
		return n == 2 && f->at > 0;
	}
	return false;
}

static bool read_value(const struct option_def *def, const char *text, struct mkt_options *opt)
{
	char *base = (char *)opt;
	double v;
	switch (def->kind) {
	case V_INT:
		if (!read_real(text, def->lo, def->hi, &v) || v != (double)(int)v)
			return false;
		*(int *)(void *)(base + def->at) = (int)v;
		return true;
	case V_REAL:
		return read_real(text, def->lo, def->hi, (double *)(void *)(base + def->at));
	case V_US:
		if (!read_real(text, def->lo, def->hi, &v))
			return false;
		*(int64_t *)(void *)(base + def->at) = (int64_t)(v * 1e3 + 0.5);
		return true;
	case V_BYTES:
		return read_bytes(text, def->lo, def->hi, (int64_t *)(void *)(base + def->at));
	case V_FLAG:
	case V_OFF:
		*(bool *)(void *)(base + def->at) = def->kind == V_FLAG;
		return true;
	case V_SEED:
		opt->seed = strtoull(text, NULL, 10);
		return *text >= '0' && *text <= '9';
	case V_TEXT:
		opt->out = text;
		return *text != '\0';
	case V_ORDER:
		for (int i = 0; i < 3; i++) {
			if (!strcmp(text, order_names[i])) {
				opt->order = (enum mkt_order)i;
				return true;
			}
		}
		return false;
	case V_LAYERS:
		return read_layers(text, opt->layers);
	case V_FAULT:
		return read_fault(text, (enum mkt_fault_kind)def->at, opt);
	}
	return false;
}

static void print_usage(FILE *f)
{
	fprintf(f, "usage: mktrace --out DIR [options]\n");
	for (int i = 0; i < N_DEFS; i++) {
		char left[64];
		snprintf(left, sizeof(left), "--%s %s", defs[i].name,
			 defs[i].arg ? defs[i].arg : "");
		fprintf(f, "  %-34s %s\n", left, defs[i].help);
	}
}

static void set_defaults(struct mkt_options *opt)
{
	*opt = (struct mkt_options){
		.seed = 1,
		.pp = 4,
		.dp = 2,
		.tp = 1,
		.chunks = 1,
		.microbatches = 8,
		.steps = 10,
		.ranks_per_host = 2,
		.order = MKT_1F1B,
		.fwd_ns = 1000000,
		.bwd_ratio = 2,
		.embed_ns = 50000,
		.loss_ns = 100000,
		.optimizer_ns = 4000000,
		.launch_ns = 5000,
		.launch_delay_ns = 4000,
		.gap_ns = 600,
		.launch_jitter = 0.2,
		.kernel_sigma = 0.03,
		.gpu_sigma = 0.015,
		.comm_sigma = 0.05,
		.p2p_ns = 150000,
		.tp_ns = 60000,
		.grad_ns = 6000000,
		.norm_ns = 30000,
		.act_bytes = 16 << 20,
		.grad_bytes = 512 << 20,
		.eager_bytes = 4 << 20,
		.buckets = 4,
		.nvtx = true,
		.copies = true,
		.offset_ms = 40,
		.drift_ppm = 20,
		.device_ns = 10000,
		.ring_ns = 8000,
	};
	for (int i = 0; i < MKT_PP_MAX; i++)
		opt->layers[i] = 4;
}

static const char *check(const struct mkt_options *opt)
{
	if (!opt->out)
		return "--out is needed";
	if ((int64_t)opt->pp * opt->dp * opt->tp > MKT_RANKS_MAX)
		return "too many ranks";
	if (opt->chunks > 1 && opt->order != MKT_INTERLEAVED)
		return "--chunks goes with --schedule interleaved";
	if (opt->order == MKT_INTERLEAVED && opt->microbatches % opt->pp)
		return "interleaved: microbatches must divide by stages";
	if (opt->order == MKT_INTERLEAVED && opt->batch_p2p)
		return "--batch-p2p does not go with --schedule interleaved";
	for (int i = 0; i < opt->pp; i++) {
		if (opt->layers[i] % opt->chunks)
			return "layers of a stage must divide by chunks";
		if (!opt->layers[i])
			return "--layers names too few stages";
	}
	for (int i = 0; i < opt->n_faults; i++) {
		const struct mkt_fault *f = &opt->faults[i];
		int n = f->kind == MKT_SLOW_DATA ? opt->dp : mkt_n_ranks(opt);
		if (f->a >= n || f->b >= mkt_n_ranks(opt))
			return "a fault names a rank that does not exist";
	}
	return NULL;
}

int mkt_options_read(struct mkt_options *opt, int argc, char **argv)
{
	struct option longs[N_DEFS + 2];
	memset(longs, 0, sizeof(longs));
	for (int i = 0; i < N_DEFS; i++)
		longs[i] = (struct option){ defs[i].name, defs[i].arg != NULL, NULL, i + 1 };
	longs[N_DEFS] = (struct option){ "help", 0, NULL, N_DEFS + 1 };
	set_defaults(opt);
	optind = 0; /* read from the start: tests call this many times */
	int c;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == N_DEFS + 1) {
			print_usage(stdout);
			return 0;
		}
		if (c < 1 || c > N_DEFS)
			return 2;
		if (!read_value(&defs[c - 1], optarg, opt)) {
			fprintf(stderr, "mktrace: --%s does not take '%s'\n", defs[c - 1].name,
				optarg);
			return 2;
		}
	}
	const char *problem = optind < argc ? "arguments that are no options" : check(opt);
	if (problem) {
		fprintf(stderr, "mktrace: %s\n", problem);
		return 2;
	}
	return -1;
}
