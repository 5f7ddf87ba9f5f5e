/* SPDX-License-Identifier: Apache-2.0 */
/* The laboratory's communications. Rings are stepped through hop by hop, so that their ends are uneven
 * and depend on who came last. */
#include <math.h>

#include "tests/unit/align_lab.h"

enum {
	MAX_RING = 256
};

static bool lost(const struct lag_lab *lab, uint32_t device, double end)
{
	const struct lag_lab_opts *o = &lab->opts;
	uint32_t who = (uint32_t)(o->seed % (o->hosts * o->per_host));

	return device == who && (o->lose_rank || (o->cut_rank && end > (double)lab->length_ns / 2));
}

static bool thinned(struct lag_lab *lab)
{
	return lab->opts.thin > 1 && lab->made++ % (size_t)lab->opts.thin != 0;
}

static struct lag_align_member member(const struct lag_lab *lab, uint32_t device, double start,
				      double end)
{
	return (struct lag_align_member){ .host = lab->device_host[device],
					  .device = device,
					  .start_ns =
						  lag_lab_device_ns(lab, device, llround(start)),
					  .end_ns = lag_lab_device_ns(lab, device, llround(end)) };
}

/* Who takes part, when each starts, how long data take from one to the next. */
struct operation {
	uint32_t n, comm;
	int64_t bytes;
	double hop_ns;
	uint32_t device[MAX_RING];
	double start[MAX_RING], end[MAX_RING];
};

static double hop(const struct lag_lab *lab, const struct operation *op, uint32_t from, uint32_t to)
{
	uint32_t a = lab->device_host[op->device[from]];
	uint32_t b = lab->device_host[op->device[to]];

	return a == b ? op->hop_ns / 5 : op->hop_ns * (1 + 0.1 * (double)((a * 7 + b) % 3));
}

/* The data of a ring all-reduce makes 2 (n - 1) hops; rank r passes on what its predecessor passed on
 * one hop before. */
static void ring(struct lag_lab *lab, struct operation *op)
{
	double before[MAX_RING];

	for (uint32_t r = 0; r < op->n; r++)
		op->end[r] = op->start[r];
	for (uint32_t k = 0; k < 2 * (op->n - 1); k++) {
		for (uint32_t r = 0; r < op->n; r++)
			before[r] = op->end[r];
		for (uint32_t r = 0; r < op->n; r++) {
			uint32_t prev = (r + op->n - 1) % op->n;
			double came = before[prev] + hop(lab, op, prev, r) +
				      lag_lab_exponential(lab, 300);

			op->end[r] = fmax(before[r] + 200, came);
		}
	}
}

/* Up a binary tree to rank 0, and down again. */
static void tree(struct lag_lab *lab, struct operation *op)
{
	for (uint32_t r = 0; r < op->n; r++)
		op->end[r] = op->start[r];
	for (uint32_t r = op->n - 1; r > 0; r--) {
		uint32_t up = (r - 1) / 2;

		op->end[up] = fmax(op->end[up], op->end[r] + hop(lab, op, r, up) +
							lag_lab_exponential(lab, 300));
	}
	for (uint32_t r = 1; r < op->n; r++) {
		uint32_t up = (r - 1) / 2;

		op->end[r] = op->end[up] + hop(lab, op, up, r) + lag_lab_exponential(lab, 300);
	}
}

/* All get it at once, and leave one after the other. */
static void ordered(struct lag_lab *lab, struct operation *op)
{
	double last = 0;
	double each = op->hop_ns / 8 * (0.5 + (double)(lab->opts.seed % 5) / 4);

	for (uint32_t r = 0; r < op->n; r++)
		last = fmax(last, op->start[r]);
	for (uint32_t r = 0; r < op->n; r++)
		op->end[r] = last + op->n * op->hop_ns / 2 + r * each;
}

static void collective(struct lag_lab *lab, struct operation *op)
{
	struct lag_align_collective *c;
	uint32_t first = (uint32_t)lab->members.n;

	if (lab->opts.spread == LAG_LAB_TREE) {
		tree(lab, op);
	} else if (lab->opts.spread == LAG_LAB_ORDERED) {
		ordered(lab, op);
	} else {
		ring(lab, op);
	}
	for (uint32_t r = 0; r < op->n; r++)
		op->end[r] += lag_lab_exponential(lab, 500);
	if (thinned(lab))
		return;
	for (uint32_t r = 0; r < op->n; r++) {
		if (!lost(lab, op->device[r], op->end[r]))
			*(struct lag_align_member *)lag_lab_push(&lab->members) =
				member(lab, op->device[r], op->start[r], op->end[r]);
	}
	c = lag_lab_push(&lab->collectives);
	*c = (struct lag_align_collective){ .func = LAG_FUNC_ALL_REDUCE,
					    .bytes = op->bytes,
					    .comm = op->comm,
					    .first_member = first,
					    .n_members = (uint32_t)lab->members.n - first,
					    .complete = lab->members.n - first == op->n };
}

static void message(struct lag_lab *lab, uint32_t src, uint32_t dst, double send_start, double tf)
{
	const struct lag_lab_opts *o = &lab->opts;
	double t = o->transfer_us * 1e3 * (1 + lag_lab_normal(lab, 0.03)) +
		   lag_lab_exponential(lab, 1000);
	/* No link is exactly as fast both ways. */
	t *= 1 + 0.03 * sin((double)(src * 7 + dst * 13 + o->seed));
	if (o->slow_way > 0 && lab->device_host[src] == 1 && lab->device_host[dst] == 2)
		t *= o->slow_way;
	bool late = lag_lab_uniform(lab, 0, 1) < (o->late_receivers ? 0.9 : 0.2);
	double recv_start =
		send_start +
		(late ? lag_lab_uniform(lab, 0, 0.3) : lag_lab_uniform(lab, -1.5, 0)) * tf;
	double recv_end = fmax(send_start, recv_start) + t;
	double send_end = send_start + 0.4 * t;
	if ((o->one_way && src > dst) || lost(lab, src, send_end) || lost(lab, dst, recv_end) ||
	    thinned(lab))
		return;
	struct lag_align_message *m = lag_lab_push(&lab->messages);
	*m = (struct lag_align_message){ .send = member(lab, src, send_start, send_end),
					 .recv = member(lab, dst, recv_start, recv_end),
					 .bytes = 1 << 20 };
}

/* The pipeline's next stage of a host; its own number where there is none. With tensor parallel hosts
 * the second half of them is the second stage. */
static uint32_t next_stage(const struct lag_lab_opts *o, uint32_t host)
{
	uint32_t half = o->hosts / 2;

	if (o->shape == LAG_LAB_DP_ACROSS)
		return host < half ? host + half : host;
	if (host + 1 == o->hosts || (o->shape == LAG_LAB_HALVES && host + 1 == half))
		return host;
	return host + 1;
}

static void pipeline(struct lag_lab *lab, double t0, double tf)
{
	const struct lag_lab_opts *o = &lab->opts;
	for (int mb = 0; mb < o->microbatches; mb++) {
		for (uint32_t s = 0; s < o->hosts; s++) {
			uint32_t to = next_stage(o, s);
			for (uint32_t i = 0; i < o->per_host && to != s; i++) {
				uint32_t up = s * o->per_host + i;
				double f = t0 + (mb + (double)s + 1) * tf +
					   lag_lab_exponential(lab, tf / 50);
				double b = t0 + (o->microbatches + (double)o->hosts) * tf +
					   2 * (mb + (double)(o->hosts - 1 - s)) * tf +
					   lag_lab_exponential(lab, tf / 50);
				message(lab, up, to * o->per_host + i, f, tf);
				message(lab, to * o->per_host + i, up, b, tf);
			}
		}
	}
}

/* A reduction of these hosts' ranks (all of them, or only the local-th): arrivals within 1.5 ms, stage 0
 * or the straggler last. */
static void reduce(struct lag_lab *lab, double end, uint32_t from, uint32_t until, int local,
		   uint32_t comm)
{
	const struct lag_lab_opts *o = &lab->opts;
	struct operation op = { .comm = comm, .bytes = 4, .hop_ns = o->hop_us * 1e3 };
	for (uint32_t h = from; h < until; h++) {
		for (uint32_t i = 0; i < o->per_host; i++) {
			uint32_t r = h * o->per_host + i;
			double start = end + lag_lab_uniform(lab, 0, 1.5e6);
			if (local >= 0 && (uint32_t)local != i)
				continue;
			if (o->straggler && r == o->seed % (o->hosts * o->per_host)) {
				start = end + 2e6 + lag_lab_uniform(lab, 0, 1e6);
			} else if (o->first_last && h == from) {
				start += 5e5;
			}
			op.device[op.n] = r;
			op.start[op.n++] = start;
		}
	}
	collective(lab, &op);
}

static void across_hosts(struct lag_lab *lab, double end)
{
	const struct lag_lab_opts *o = &lab->opts;
	uint32_t half = o->hosts / 2;
	uint32_t comm = 1 + o->hosts;
	switch (o->shape) {
	case LAG_LAB_WORLD:
		reduce(lab, end, 0, o->hosts, -1, 0);
		break;
	case LAG_LAB_HALVES:
		reduce(lab, end, 0, half, -1, comm);
		reduce(lab, end, half, o->hosts, -1, comm + 1);
		break;
	case LAG_LAB_NEIGHBOURS:
		for (uint32_t h = 0; h + 1 < o->hosts; h++)
			reduce(lab, end + h * 4e6, h, h + 2, -1, comm + h);
		break;
	case LAG_LAB_DP_ACROSS:
		for (uint32_t i = 0; i < o->per_host; i++) {
			reduce(lab, end, 0, half, (int)i, comm + 2 * i);
			reduce(lab, end, half, o->hosts, (int)i, comm + 2 * i + 1);
		}
		break;
	}
}

void lag_lab_step(struct lag_lab *lab, int k)
{
	const struct lag_lab_opts *o = &lab->opts;
	double t0 = k * o->step_ms * 1e6;
	/* Forward one unit, backward two, m + p - 1 of each: nine tenths of the step. */
	double tf = 0.9 * o->step_ms * 1e6 / (3.0 * (o->microbatches + (int)o->hosts));
	double end = t0 + 0.92 * o->step_ms * 1e6;
	if (!o->no_messages)
		pipeline(lab, t0, tf);
	for (uint32_t h = 0; h < o->hosts && o->dp && o->per_host > 1; h++) {
		struct operation op = { .comm = 1 + h, .bytes = 8 << 20, .hop_ns = 1e6 };
		for (; op.n < o->per_host; op.n++) {
			op.device[op.n] = h * o->per_host + op.n;
			op.start[op.n] = end - 4e6 + lag_lab_uniform(lab, 0, 3e5);
		}
		collective(lab, &op);
	}
	if (o->world_every && k % o->world_every == 0)
		across_hosts(lab, end);
}
