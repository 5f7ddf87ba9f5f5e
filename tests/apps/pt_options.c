/* SPDX-License-Identifier: Apache-2.0 */
/* Command line and launcher environment of pipetrain, checked before any CUDA call. */
#include "tests/apps/pt_options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	EXIT_USAGE = 2
};

enum opt_id {
	O_PP = 1,
	O_DP,
	O_TP,
	O_SCHEDULE,
	O_CHUNKS,
	O_MICROBATCHES,
	O_LAYERS,
	O_STEPS,
	O_FWD_US,
	O_BWD_RATIO,
	O_OPTIMIZER_US,
	O_EMBED_US,
	O_LOSS_US,
	O_HOST_US,
	O_ACT_BYTES,
	O_GRAD_BYTES,
	O_BATCH_BYTES,
	O_COPIES,
	O_BUCKETS,
	O_JITTER,
	O_SEED,
	O_PP_COMM,
	O_BATCH_P2P,
	O_GRAD_ALLREDUCE,
	O_NO_NVTX,
	O_NVTX_DOMAIN,
	O_RDV,
	O_HELP
};

static const struct option long_options[] = {
	{ "pp", 1, NULL, O_PP },
	{ "dp", 1, NULL, O_DP },
	{ "tp", 1, NULL, O_TP },
	{ "schedule", 1, NULL, O_SCHEDULE },
	{ "chunks", 1, NULL, O_CHUNKS },
	{ "microbatches", 1, NULL, O_MICROBATCHES },
	{ "layers", 1, NULL, O_LAYERS },
	{ "steps", 1, NULL, O_STEPS },
	{ "fwd-us", 1, NULL, O_FWD_US },
	{ "bwd-ratio", 1, NULL, O_BWD_RATIO },
	{ "optimizer-us", 1, NULL, O_OPTIMIZER_US },
	{ "embed-us", 1, NULL, O_EMBED_US },
	{ "loss-us", 1, NULL, O_LOSS_US },
	{ "host-us", 1, NULL, O_HOST_US },
	{ "act-bytes", 1, NULL, O_ACT_BYTES },
	{ "grad-bytes", 1, NULL, O_GRAD_BYTES },
	{ "batch-bytes", 1, NULL, O_BATCH_BYTES },
	{ "copies", 1, NULL, O_COPIES },
	{ "buckets", 1, NULL, O_BUCKETS },
	{ "work-jitter", 1, NULL, O_JITTER },
	{ "seed", 1, NULL, O_SEED },
	{ "pp-comm", 1, NULL, O_PP_COMM },
	{ "batch-p2p", 0, NULL, O_BATCH_P2P },
	{ "grad-allreduce", 0, NULL, O_GRAD_ALLREDUCE },
	{ "no-nvtx", 0, NULL, O_NO_NVTX },
	{ "nvtx-domain", 1, NULL, O_NVTX_DOMAIN },
	{ "rdv", 1, NULL, O_RDV },
	{ "verbose", 0, NULL, 'v' },
	{ "help", 0, NULL, O_HELP },
	{ NULL, 0, NULL, 0 },
};

static const char usage[] =
	"usage: pipetrain [options]   one process a rank: RANK, WORLD_SIZE, LOCAL_RANK\n"
	"  --pp N --dp N --tp N        parallel degrees; their product is WORLD_SIZE\n"
	"  --schedule NAME             gpipe, 1f1b (default), interleaved\n"
	"  --chunks V                  model chunks of a stage (interleaved)\n"
	"  --microbatches M --steps N\n"
	"  --layers L[,L...]           layers of each stage; one number counts for all\n"
	"  --fwd-us T --bwd-ratio R    forward of one layer and microbatch; backward over forward\n"
	"  --optimizer-us T --embed-us T --loss-us T --host-us T\n"
	"  --act-bytes N               message between stages, and of a TP all-reduce\n"
	"  --grad-bytes N --buckets N  gradients of a rank; in how many reductions\n"
	"  --batch-bytes N --copies N  input of a microbatch; copies of it, 0 for none\n"
	"  --work-jitter X --seed N    relative spread of the work between microbatches\n"
	"  --pp-comm KIND              group, direction, pair (default: direction; pair if "
	"interleaved)\n"
	"  --batch-p2p                 one group for each send and the receive that follows it\n"
	"  --grad-allreduce            all-reduce of gradients, not reduce-scatter and all-gather\n"
	"  --no-nvtx --nvtx-domain D   ranges off; in a domain of their own\n"
	"  --rdv DIR                   where unique ids are exchanged (default $PIPETRAIN_RDV)\n"
	"  -v                          every rank prints its line\n";

static bool read_int(const char *text, long lo, long hi, long *out)
{
	char *end;
	errno = 0;
	long v = strtol(text, &end, 10);
	if (errno || end == text || *end || v < lo || v > hi)
		return false;
	*out = v;
	return true;
}

static bool read_count(const char *text, int lo, int hi, int *out)
{
	long v;
	if (!read_int(text, lo, hi, &v))
		return false;
	*out = (int)v;
	return true;
}

static bool read_real(const char *text, double lo, double hi, double *out)
{
	char *end;
	errno = 0;
	double v = strtod(text, &end);
	if (errno || end == text || *end || !(v >= lo && v <= hi))
		return false;
	*out = v;
	return true;
}

static bool read_us(const char *text, int64_t *ns)
{
	double us;
	if (!read_real(text, 0, 1e8, &us))
		return false;
	*ns = (int64_t)(us * 1e3 + 0.5);
	return true;
}

/* Bytes with an optional K, M or G (powers of 1024), rounded up to 256 so that every datatype fits. */
static bool read_size(const char *text, size_t *out)
{
	char *end;
	errno = 0;
	unsigned long long v = strtoull(text, &end, 10);
	if (errno || end == text || v > (1ULL << 40))
		return false;
	int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	if (end[shift != 0] || v > (1ULL << 40) >> shift)
		return false;
	*out = (size_t)(((v << shift) + 255) & ~255ULL);
	return *out > 0;
}

static bool read_choice(const char *text, const char *const *names, int *out)
{
	for (int i = 0; names[i]; i++) {
		if (!strcmp(text, names[i])) {
			*out = i;
			return true;
		}
	}
	return false;
}

static bool read_layers(const char *text, struct pt_options *opt, int *n)
{
	*n = 0;
	for (const char *p = text; *n < PT_MAX_STAGES; p++) {
		char *end;
		long v = strtol(p, &end, 10);
		if (end == p || v < 1 || v > 1000)
			return false;
		opt->layers[(*n)++] = (int)v;
		if (*end == '\0')
			return true;
		if (*end != ',')
			return false;
		p = end;
	}
	return false;
}

/* Options that describe the shape of the job. */
static bool apply_shape(struct pt_options *opt, int id, const char *arg, int *n_layers)
{
	static const char *const orders[] = { "gpipe", "1f1b", "interleaved", NULL };
	static const char *const comms[] = { "group", "direction", "pair", NULL };
	int choice = 0;
	bool ok = true;
	switch (id) {
	case O_PP:
		return read_count(arg, 1, PT_MAX_STAGES, &opt->pp);
	case O_DP:
		return read_count(arg, 1, 4096, &opt->dp);
	case O_TP:
		return read_count(arg, 1, 64, &opt->tp);
	case O_CHUNKS:
		return read_count(arg, 1, 16, &opt->chunks);
	case O_MICROBATCHES:
		return read_count(arg, 1, 1024, &opt->microbatches);
	case O_STEPS:
		return read_count(arg, 1, 1000000, &opt->steps);
	case O_COPIES:
		return read_count(arg, 0, 64, &opt->copies);
	case O_BUCKETS:
		return read_count(arg, 1, 64, &opt->buckets);
	case O_LAYERS:
		return read_layers(arg, opt, n_layers);
	case O_SCHEDULE:
		ok = read_choice(arg, orders, &choice);
		opt->order = (enum pt_order)choice;
		return ok;
	case O_PP_COMM:
		ok = read_choice(arg, comms, &choice);
		opt->pp_comm = (enum pt_pp_comm)choice;
		return ok;
	default:
		return false;
	}
}

/* Options that say how long or how much, and switches. */
static bool apply_amount(struct pt_options *opt, int id, const char *arg)
{
	long v = 0;
	switch (id) {
	case O_FWD_US:
		return read_us(arg, &opt->fwd_ns);
	case O_OPTIMIZER_US:
		return read_us(arg, &opt->optimizer_ns);
	case O_EMBED_US:
		return read_us(arg, &opt->embed_ns);
	case O_LOSS_US:
		return read_us(arg, &opt->loss_ns);
	case O_HOST_US:
		return read_us(arg, &opt->host_ns);
	case O_BWD_RATIO:
		return read_real(arg, 0.01, 100, &opt->bwd_ratio);
	case O_JITTER:
		return read_real(arg, 0, 0.9, &opt->work_jitter);
	case O_ACT_BYTES:
		return read_size(arg, &opt->act_bytes);
	case O_GRAD_BYTES:
		return read_size(arg, &opt->grad_bytes);
	case O_BATCH_BYTES:
		return read_size(arg, &opt->batch_bytes);
	case O_SEED:
		if (!read_int(arg, 0, LONG_MAX, &v))
			return false;
		opt->seed = (uint64_t)v;
		return true;
	case O_BATCH_P2P:
		return opt->batch_p2p = true;
	case O_GRAD_ALLREDUCE:
		return opt->grad_allreduce = true;
	case O_NO_NVTX:
		opt->nvtx = false;
		return true;
	case O_NVTX_DOMAIN:
		opt->nvtx_domain = arg;
		return true;
	case O_RDV:
		opt->rdv_dir = arg;
		return true;
	case 'v':
		return opt->verbose = true;
	default:
		return false;
	}
}

static int from_env(const char *name, int fallback)
{
	const char *text = getenv(name);
	int v = fallback;
	if (text && !read_count(text, 0, 1 << 20, &v))
		return -1;
	return v;
}

static int complain(const struct pt_options *opt, const char *what)
{
	if (opt->rank <= 0)
		fprintf(stderr, "pipetrain: %s\n", what);
	return EXIT_USAGE;
}

static int check(struct pt_options *opt, int n_layers)
{
	if (opt->rank < 0 || opt->local_rank < 0 || opt->world < 1 || opt->rank >= opt->world)
		return complain(opt, "RANK, LOCAL_RANK or WORLD_SIZE is not usable");
	if ((int64_t)opt->pp * opt->dp * opt->tp != opt->world)
		return complain(opt, "--pp x --dp x --tp is not WORLD_SIZE");
	if (n_layers != 1 && n_layers != opt->pp)
		return complain(opt, "--layers needs one number, or one for each stage");
	for (int s = n_layers; s < opt->pp; s++)
		opt->layers[s] = opt->layers[0];
	if (opt->order != PT_INTERLEAVED && opt->chunks != 1)
		return complain(opt, "--chunks belongs to --schedule interleaved");
	if (opt->order == PT_INTERLEAVED && opt->microbatches % opt->pp)
		return complain(opt, "interleaved needs microbatches that --pp divides");
	for (int s = 0; s < opt->pp; s++) {
		if (opt->layers[s] % opt->chunks)
			return complain(opt, "--chunks does not divide the layers of a stage");
	}
	if (opt->microbatches * opt->chunks > PT_MAX_SLOTS)
		return complain(opt, "too many microbatches x chunks");
	/* With two stages both directions of an interleaved ring share (source, destination), and
	 * a communicator matches messages by their order alone. */
	if (opt->order == PT_INTERLEAVED && (opt->pp_comm != PT_PP_PAIR || opt->batch_p2p))
		return complain(opt, "interleaved needs --pp-comm pair without --batch-p2p");
	if (opt->world > 1 && !opt->rdv_dir)
		return complain(opt, "give --rdv DIR or set PIPETRAIN_RDV");
	return 0;
}

int pt_options_parse(struct pt_options *opt, int argc, char **argv)
{
	const int unset = -1;
	*opt = (struct pt_options){ .pp = 1,
				    .dp = 1,
				    .tp = 1,
				    .order = PT_1F1B,
				    .chunks = 1,
				    .microbatches = 4,
				    .steps = 5,
				    .layers = { 2 },
				    .fwd_ns = 1000000,
				    .bwd_ratio = 2.0,
				    .optimizer_ns = 500000,
				    .embed_ns = 20000,
				    .loss_ns = 20000,
				    .act_bytes = 1 << 20,
				    .grad_bytes = 8 << 20,
				    .batch_bytes = 256 << 10,
				    .copies = 1,
				    .buckets = 1,
				    .nvtx = true,
				    .pp_comm = (enum pt_pp_comm)unset,
				    .rdv_dir = getenv("PIPETRAIN_RDV") };
	opt->rank = from_env("RANK", 0);
	opt->world = from_env("WORLD_SIZE", 1);
	opt->local_rank = from_env("LOCAL_RANK", opt->rank < 0 ? 0 : opt->rank);
	int n_layers = 1;
	int id;
	while ((id = getopt_long(argc, argv, "v", long_options, NULL)) != -1) {
		if (id == O_HELP) {
			fputs(usage, stdout);
			exit(0);
		}
		if (id == '?')
			return EXIT_USAGE;
		if (!apply_shape(opt, id, optarg, &n_layers) && !apply_amount(opt, id, optarg))
			return complain(opt, "an option has a value that is out of range");
	}
	if (optind < argc)
		return complain(opt, "arguments without an option are not understood");
	if ((int)opt->pp_comm == unset)
		opt->pp_comm = opt->order == PT_INTERLEAVED ? PT_PP_PAIR
			       : opt->batch_p2p             ? PT_PP_GROUP
							    : PT_PP_DIRECTION;
	return check(opt, n_layers);
}

struct pt_place pt_place_of(const struct pt_options *opt, int rank)
{
	return (struct pt_place){ .tp = rank % opt->tp,
				  .dp = rank / opt->tp % opt->dp,
				  .stage = rank / (opt->tp * opt->dp) };
}

int pt_rank_at(const struct pt_options *opt, struct pt_place place)
{
	return place.tp + opt->tp * (place.dp + opt->dp * place.stage);
}
