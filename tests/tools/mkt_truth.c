/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers the true times of each step and prints them. */
#include "tests/tools/mkt_truth.h"

#include <inttypes.h>
#include <string.h>

#include "tests/tools/mkt_emit.h"

void mkt_truth_init(struct mkt_truth *t)
{
	memset(t, 0, sizeof(*t));
	t->ends.item_size = sizeof(int64_t);
	t->rows.item_size = sizeof(struct mkt_truth_row);
	t->blocks.item_size = sizeof(struct mkt_truth_block);
	t->messages.item_size = sizeof(struct mkt_truth_message);
}

void mkt_truth_release(struct mkt_truth *t)
{
	lag_vec_release(&t->ends);
	lag_vec_release(&t->rows);
	lag_vec_release(&t->blocks);
	lag_vec_release(&t->messages);
}

static enum lag_status add_block(struct mkt_truth *t, const struct mkt_run *run, int rank,
				 const struct mkt_item *it, size_t from)
{
	struct mkt_truth_block *b = NULL;
	if (t->blocks.n > from) {
		b = &LAG_VEC_AT(&t->blocks, struct mkt_truth_block, t->blocks.n - 1);
		if (b->mb != it->mb || b->chunk != it->chunk || b->backward != it->backward)
			b = NULL;
	}
	if (!b) {
		b = lag_vec_push(&t->blocks);
		if (!b)
			return LAG_ERR_SYSTEM;
		*b = (struct mkt_truth_block){ .rank = rank,
					       .step = run->step,
					       .chunk = it->chunk,
					       .mb = it->mb,
					       .backward = it->backward,
					       .start_ns = it->start_ns,
					       .ready_ns =
						       it->call_ns + run->opt->launch_delay_ns };
	}
	b->end_ns = it->end_ns;
	b->busy_ns += it->end_ns - it->start_ns;
	return LAG_OK;
}

static enum lag_status add_message(struct mkt_truth *t, const struct mkt_run *run,
				   const struct mkt_item *it)
{
	const struct mkt_conn *conn = &run->conns[it->conn[0]];
	size_t k = (size_t)(it->seq[0] - conn->sent);
	const struct mkt_item *recv =
		mkt_item_at(&run->ranks[conn->dst], LAG_VEC_AT(&conn->recvs, int32_t, k));
	struct mkt_truth_message *m = lag_vec_push(&t->messages);

	if (!m)
		return LAG_ERR_SYSTEM;
	*m = (struct mkt_truth_message){ .src = conn->src,
					 .dst = conn->dst,
					 .step = run->step,
					 .chunk = it->chunk,
					 .mb = it->mb,
					 .backward = it->backward,
					 .send_start_ns = it->start_ns,
					 .send_end_ns = it->end_ns,
					 .recv_start_ns = recv->start_ns,
					 .recv_end_ns = recv->end_ns };
	return LAG_OK;
}

/* from: the first block of this rank and step. */
static enum lag_status add_item(struct mkt_truth *t, const struct mkt_run *run, int rank,
				const struct mkt_item *it, size_t from)
{
	struct mkt_truth_row *row = &LAG_VEC_AT(&t->rows, struct mkt_truth_row, t->rows.n - 1);
	bool blocks = run->opt->blocks;
	if (it->kind == MKT_I_P2P && it->conn[0] >= 0 && blocks && !run->opt->batch_p2p)
		return add_message(t, run, it);
	if (it->kind != MKT_I_KERNEL || it->mb < 0)
		return LAG_OK;
	*(it->backward ? &row->bwd_ns : &row->fwd_ns) += it->end_ns - it->start_ns;
	if (!it->backward && it->start_ns < row->first_fwd_ns)
		row->first_fwd_ns = it->start_ns;
	if (it->backward && it->end_ns > row->last_bwd_ns)
		row->last_bwd_ns = it->end_ns;
	return blocks ? add_block(t, run, rank, it, from) : LAG_OK;
}

enum lag_status mkt_truth_add(struct mkt_truth *t, const struct mkt_run *run)
{
	int64_t last = 0, *end;
	for (int r = 0; r < run->n_ranks; r++) {
		const struct mkt_rank *rank = &run->ranks[r];
		struct mkt_truth_row *row = lag_vec_push(&t->rows);
		size_t from = t->blocks.n;
		if (!row)
			return LAG_ERR_SYSTEM;
		row->first_fwd_ns = INT64_MAX;
		for (size_t i = 0; i < rank->items.n; i++) {
			if (add_item(t, run, r, mkt_item_at(rank, (int32_t)i), from))
				return LAG_ERR_SYSTEM;
		}
		last = rank->host_ns > last ? rank->host_ns : last;
	}
	end = lag_vec_push(&t->ends);
	if (!end)
		return LAG_ERR_SYSTEM;
	*end = last;
	return LAG_OK;
}

static void put_steps(FILE *f, const char *name, const struct mkt_truth *t)
{
	int64_t before = 0;
	fprintf(f, " \"%s\": [", name);
	for (size_t i = 0; i < t->ends.n; i++) {
		int64_t end = LAG_VEC_AT(&t->ends, int64_t, i);
		fprintf(f, "%s%" PRId64, i ? ", " : "", end - before);
		before = end;
	}
	fprintf(f, "],\n");
}

static void put_shape(FILE *f, const struct mkt_run *run)
{
	static const char *const orders[] = { "gpipe", "1f1b", "interleaved" };
	const struct mkt_options *o = run->opt;
	fprintf(f,
		" \"shape\": {\"pp\": %d, \"dp\": %d, \"tp\": %d, \"chunks\": %d, "
		"\"microbatches\": %d, "
		"\"steps\": %d, \"schedule\": \"%s\", \"seed\": %" PRIu64 ", \"fwd_ns\": %" PRId64
		", \"bwd_ratio\": %g, \"p2p_ns\": %" PRId64 ", \"layers\": [",
		o->pp, o->dp, o->tp, o->chunks, o->microbatches, o->steps, orders[o->order],
		o->seed, o->fwd_ns, o->bwd_ratio, o->p2p_ns);
	for (int i = 0; i < o->pp; i++)
		fprintf(f, "%s%d", i ? ", " : "", o->layers[i]);
	fprintf(f, "]},\n");
}

static void put_clocks(FILE *f, const struct mkt_run *run)
{
	const struct mkt_options *o = run->opt;
	fprintf(f, " \"epoch_ns\": %" PRId64 ",\n \"hosts\": [", MKT_EPOCH_NS);
	for (int h = 0; h < run->n_hosts; h++) {
		struct mkt_clock c = mkt_clock_of(o, h * o->ranks_per_host);
		fprintf(f, "%s\n  {\"name\": \"node%d\", \"offset_ns\": %.3f, \"drift_ppm\": %.9f}",
			h ? "," : "", h, c.offset_ns, c.drift * 1e6);
	}
	fprintf(f, "],\n \"ranks\": [");
	for (int r = 0; r < run->n_ranks; r++) {
		struct mkt_clock c = mkt_clock_of(o, r);
		const struct mkt_rank *k = &run->ranks[r];
		fprintf(f,
			"%s\n  {\"rank\": %d, \"host\": \"node%d\", \"stage\": %d, \"dp\": %d, "
			"\"tp\": "
			"%d, \"gpu_factor\": %.6f, \"device_error_ns\": [%" PRId64 ", %" PRId64
			"], \"device_step_ns\": %" PRId64 "}",
			r ? "," : "", r, k->host, k->at.stage, k->at.dp, k->at.tp, k->gpu_factor,
			c.device_ns[0], c.device_ns[1], c.device_step_ns);
	}
	fprintf(f, "],\n");
}

static void put_faults(FILE *f, const struct mkt_options *o)
{
	static const char *const kinds[] = { "slow",  "slow-data", "slow-link",
					     "stall", "missing",   "drop" };
	fprintf(f, " \"faults\": [");
	for (int i = 0; i < o->n_faults; i++) {
		const struct mkt_fault *x = &o->faults[i];
		fprintf(f,
			"%s\n  {\"kind\": \"%s\", \"a\": %d, \"b\": %d, \"factor\": %g, \"from\": "
			"%" PRId64 ", \"until\": %" PRId64 ", \"ns\": %" PRId64 "}",
			i ? "," : "", kinds[x->kind], x->a, x->b, x->factor, x->at,
			x->until == INT64_MAX ? (int64_t)o->steps : x->until, x->ns);
	}
	fprintf(f, "],\n");
}

static void put_rows(FILE *f, const struct mkt_truth *t, int n_ranks)
{
	/* One list a step: per rank [forward, backward, first forward's start, last backward's end]. */
	fprintf(f, " \"work\": [");
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct mkt_truth_row *r = &LAG_VEC_AT(&t->rows, struct mkt_truth_row, i);
		bool first = i % (size_t)n_ranks == 0;
		fprintf(f, "%s[%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "]",
			first ? (i ? "],\n  [" : "\n  [") : ", ", r->fwd_ns, r->bwd_ns,
			r->first_fwd_ns, r->last_bwd_ns);
	}
	fprintf(f, "]],\n \"blocks\": [");
	for (size_t i = 0; i < t->blocks.n; i++) {
		const struct mkt_truth_block *b =
			&LAG_VEC_AT(&t->blocks, struct mkt_truth_block, i);
		fprintf(f,
			"%s\n  [%d, %d, %d, %d, \"%s\", %" PRId64 ", %" PRId64 ", %" PRId64
			", %" PRId64 "]",
			i ? "," : "", b->rank, b->step, b->chunk, b->mb, b->backward ? "B" : "F",
			b->start_ns, b->end_ns, b->busy_ns, b->ready_ns);
	}
	fprintf(f, "],\n \"messages\": [");
	for (size_t i = 0; i < t->messages.n; i++) {
		const struct mkt_truth_message *m =
			&LAG_VEC_AT(&t->messages, struct mkt_truth_message, i);
		fprintf(f,
			"%s\n  [%d, %d, %d, %d, %d, \"%s\", %" PRId64 ", %" PRId64 ", %" PRId64
			", %" PRId64 "]",
			i ? "," : "", m->src, m->dst, m->step, m->chunk, m->mb,
			m->backward ? "B" : "F", m->send_start_ns, m->send_end_ns, m->recv_start_ns,
			m->recv_end_ns);
	}
	fprintf(f, "]\n");
}

enum lag_status mkt_truth_write(const struct mkt_truth *t, const struct mkt_truth *clean,
				const struct mkt_run *run, struct lag_err *err)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/truth.json", run->opt->out);
	FILE *f = fopen(path, "w");
	if (!f)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", path);
	fprintf(f, "{\n");
	put_shape(f, run);
	put_clocks(f, run);
	put_faults(f, run->opt);
	put_steps(f, "step_ns", t);
	put_steps(f, "clean_step_ns", clean);
	put_rows(f, t, run->n_ranks);
	fprintf(f, "}\n");
	if (fclose(f))
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", path);
	return LAG_OK;
}
