/* SPDX-License-Identifier: Apache-2.0 */
/* Two recordings of one rank by different tools become one process: of each family of records (GPU work
 * with its host calls, annotations, communication calls, clock readings) the better source is used whole,
 * never both. Whether they are of one process and on one clock is checked, not believed. */
#include "merge/combine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/buf.h"
#include "schema/base/fmt.h"

/* Families, and the kinds of each: they carry ids that mean something only together. */
enum family {
	GPU,
	RANGES,
	CALLS,
	CLOCK,
	N_FAMILIES
};

static const char *const names[N_FAMILIES] = { "GPU work", "annotations", "communication calls",
					       "clock readings" };

static const struct member {
	enum lag_record_kind kind;
	enum family family;
} members[] = {
	{ LAG_REC_kernel, GPU },        { LAG_REC_memcpy, GPU },
	{ LAG_REC_memset, GPU },        { LAG_REC_api, GPU },
	{ LAG_REC_sync, GPU },          { LAG_REC_external, GPU },
	{ LAG_REC_overhead, GPU },      { LAG_REC_range, RANGES },
	{ LAG_REC_range_end, RANGES },  { LAG_REC_comm, CALLS },
	{ LAG_REC_comm_member, CALLS }, { LAG_REC_op, CALLS },
	{ LAG_REC_op_end, CALLS },      { LAG_REC_group, CALLS },
	{ LAG_REC_comm_event, CALLS },  { LAG_REC_comm_progress, CALLS },
	{ LAG_REC_op_seen, CALLS },     { LAG_REC_clock, CLOCK },
	{ LAG_REC_clock_step, CLOCK },  { LAG_REC_clock_state, CLOCK },
};

#define N_MEMBERS (sizeof(members) / sizeof(members[0]))

#define OUR_EXTERNAL_KIND 5
#define TELLING_GAP_NS    1000000 /* shorter times without GPU work tell nothing */

struct pair {
	struct lag_merge *m;
	struct lag_proc *base, *donor;
	struct lag_combine_clock clock;
	bool take[N_FAMILIES]; /* the donor's is used */
	size_t n_launches, n_tied, n_outside;
	struct lag_map tied; /* ids of the calls that kernels have found */
};

static int family_of(enum lag_record_kind kind)
{
	for (size_t i = 0; i < N_MEMBERS; i++) {
		if (members[i].kind == kind)
			return (int)members[i].family;
	}
	return -1;
}

static size_t count_gpu(const struct lag_part *part)
{
	return LAG_PART_COUNT(part, kernel) + LAG_PART_COUNT(part, memcpy) +
	       LAG_PART_COUNT(part, memset);
}

/* ---- are they of one process? ---- */

static bool known_and_differ(int64_t a, int64_t b)
{
	return a != LAG_NONE && b != LAG_NONE && a != b;
}

static bool may_be_one(const struct lag_merge *m, const struct lag_proc *a,
		       const struct lag_proc *b)
{
	const struct lag_rec_process *x = &a->part.process, *y = &b->part.process;

	return strcmp(a->part.format, b->part.format) != 0 && x->rank == y->rank &&
	       !known_and_differ(x->world_size, y->world_size) &&
	       !known_and_differ(x->pid, y->pid) && !lag_merge_hosts_differ(m, x, y) &&
	       a->first_ns != LAG_NONE && b->first_ns != LAG_NONE && a->first_ns <= b->last_ns &&
	       b->first_ns <= a->last_ns;
}

/* The one that tells clock and identity is what the other one is put into. */
static bool knows_more(const struct lag_part *a, const struct lag_part *b)
{
	bool x = LAG_PART_COUNT(a, clock) > 0, y = LAG_PART_COUNT(b, clock) > 0;

	if (x != y)
		return x;
	if ((a->process.boot_id != 0) != (b->process.boot_id != 0))
		return a->process.boot_id != 0;
	return a->n_records >= b->n_records;
}

/* ---- which source of each family ---- */

static int64_t gpu_span(const struct lag_part *part, int64_t *first, int64_t *last)
{
	static const enum lag_record_kind kinds[] = { LAG_REC_kernel, LAG_REC_memcpy,
						      LAG_REC_memset, LAG_REC_api };

	*first = INT64_MAX;
	*last = INT64_MIN;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		for (size_t i = 0; i < part->records[kinds[k]].n; i++) {
			struct lag_times at = lag_part_times(part, kinds[k], i);

			*first = at.start_ns < *first ? at.start_ns : *first;
			*last = at.start_ns > *last ? at.start_ns : *last;
			if (at.end_ns != LAG_NONE && at.end_ns > *last)
				*last = at.end_ns;
		}
	}
	return *first > *last ? 0 : *last - *first;
}

/* GPU work: the source that has it for a longer time; of two that are equal to a hundredth, the one with
 * more events. */
static bool better_gpu(const struct lag_part *a, const struct lag_part *b)
{
	int64_t from, until, x, y;

	if (!count_gpu(a) || !count_gpu(b))
		return count_gpu(a) > 0;
	x = gpu_span(a, &from, &until);
	y = gpu_span(b, &from, &until);
	if (x - y > x / 100 || y - x > y / 100)
		return x > y;
	return count_gpu(a) > count_gpu(b);
}

/* True numbers are worth more than many operations. */
static bool has_numbers(const struct lag_part *part)
{
	const int64_t true_ones = LAG_OP_FROM_CALL | LAG_OP_FROM_NVTX | LAG_OP_FROM_PLUGIN;

	for (size_t i = 0; i < LAG_PART_COUNT(part, op); i++) {
		const struct lag_rec_op *op = &LAG_PART_AT(part, op, i);

		if (op->sources != LAG_NONE && (op->sources & true_ones) && op->seq != LAG_NONE)
			return true;
	}
	return false;
}

static bool better_calls(const struct lag_part *a, const struct lag_part *b)
{
	bool x = has_numbers(a), y = has_numbers(b);

	return x != y ? x : LAG_PART_COUNT(a, op) > LAG_PART_COUNT(b, op);
}

static void choose(struct pair *p)
{
	const struct lag_part *base = &p->base->part, *donor = &p->donor->part;

	p->take[GPU] = better_gpu(donor, base);
	p->take[RANGES] = LAG_PART_COUNT(donor, range) > LAG_PART_COUNT(base, range);
	p->take[CALLS] = better_calls(donor, base);
	p->take[CLOCK] = !LAG_PART_COUNT(base, clock) && LAG_PART_COUNT(donor, clock);
}

/* ---- kernels of one source, operations of the other ---- */

/* The call that a launch was made in; NULL: none. */
static const struct lag_mark *call_around(const struct pair *p, const struct lag_vec *calls,
					  const struct lag_mark *launch)
{
	const struct lag_mark *call =
		lag_combine_nearest(calls, 0, launch->from_ns, launch->until_ns);
	int64_t slack = p->clock.uncertainty_ns;

	return call && launch->from_ns >= call->from_ns - slack &&
			       launch->until_ns <= call->until_ns + slack
		       ? call
		       : NULL;
}

static enum lag_status forget_ids(struct lag_part *part)
{
	enum lag_status st = LAG_OK;
	size_t kept = 0;

	for (size_t i = 0; i < LAG_PART_COUNT(part, kernel) && st == LAG_OK; i++) {
		struct lag_record rec = lag_part_get(part, LAG_REC_kernel, i);

		if (rec.kernel.op_id == LAG_NONE)
			continue;
		rec.kernel.op_id = LAG_NONE;
		st = lag_part_set(part, i, &rec);
	}
	for (size_t i = 0; i < LAG_PART_COUNT(part, memcpy) && st == LAG_OK; i++) {
		struct lag_record rec = lag_part_get(part, LAG_REC_memcpy, i);

		if (rec.memcpy.op_id == LAG_NONE)
			continue;
		rec.memcpy.op_id = LAG_NONE;
		st = lag_part_set(part, i, &rec);
	}
	for (size_t i = 0; i < LAG_PART_COUNT(part, external); i++) {
		if (LAG_PART_AT(part, external, i).kind != OUR_EXTERNAL_KIND)
			LAG_PART_AT(part, external, kept++) = LAG_PART_AT(part, external, i);
	}
	LAG_PART_VEC(part, external)->n = kept;
	return st;
}

/* Kernels carry the id of the call that launched them. Counts only, where `set` is false. */
static enum lag_status tie(struct pair *p, struct lag_part *gpu, const struct lag_part *calls,
			   bool set)
{
	struct lag_vec around = LAG_VEC_SPILLED(struct lag_mark, p->m->spill);
	struct lag_vec launches = LAG_VEC_SPILLED(struct lag_mark, p->m->spill);
	enum lag_status st = lag_combine_calls(calls, &around);

	if (st == LAG_OK)
		st = lag_combine_launches(p->m, gpu, &launches);
	p->n_launches = launches.n;
	p->n_tied = 0;
	for (size_t i = 0; i < launches.n && st == LAG_OK; i++) {
		const struct lag_mark *launch = &LAG_VEC_AT(&launches, struct lag_mark, i);
		const struct lag_mark *call = call_around(p, &around, launch);
		struct lag_record rec;

		if (!call)
			continue;
		p->n_tied++;
		if (!set)
			continue;
		rec = lag_part_get(gpu, LAG_REC_kernel, (size_t)launch->id);
		rec.kernel.op_id = call->id;
		st = lag_part_set(gpu, (size_t)launch->id, &rec);
		if (st == LAG_OK)
			st = lag_map_set(&p->tied, (uint64_t)call->id, 1);
	}
	lag_vec_release(&around);
	lag_vec_release(&launches);
	return st;
}

/* Of calls made while no GPU work was recorded nothing is known but that they were made: they would look
 * as if they had never started. */
static void leave_out_calls(struct pair *p, struct lag_part *part, int64_t from, int64_t until)
{
	size_t kept = 0;

	for (size_t i = 0; i < LAG_PART_COUNT(part, op); i++) {
		const struct lag_rec_op *op = &LAG_PART_AT(part, op, i);

		int64_t id = op->group_id != LAG_NONE ? op->group_id : op->op_id;
		uint64_t tied;

		if ((op->enter_ns >= from && op->enter_ns <= until) ||
		    lag_map_find(&p->tied, (uint64_t)id, &tied))
			LAG_PART_AT(part, op, kept++) = *op;
	}
	p->n_outside = LAG_PART_COUNT(part, op) - kept;
	LAG_PART_VEC(part, op)->n = kept;
}

/* Fewer than half of the kernels find their call: the calls are not these kernels'. */
static enum lag_status check_ties(struct pair *p)
{
	struct lag_part *base = &p->base->part, *donor = &p->donor->part;
	struct lag_part *gpu = p->take[GPU] ? donor : base;
	struct lag_part *calls = p->take[CALLS] ? donor : base;
	enum lag_status st;

	if (p->take[GPU] == p->take[CALLS])
		return LAG_OK;
	st = tie(p, gpu, calls, false);
	if (st == LAG_OK && p->n_tied * 2 < p->n_launches && LAG_PART_COUNT(gpu, op))
		p->take[CALLS] = p->take[GPU];
	return st;
}

/* ---- one of two ---- */

static void swap_kind(struct pair *p, enum lag_record_kind kind)
{
	struct lag_part *a = &p->base->part, *b = &p->donor->part;
	struct lag_vec records = a->records[kind];
	struct lag_shapes shapes = a->shapes[kind];
	uint64_t lost = a->lost[kind];

	a->records[kind] = b->records[kind];
	a->shapes[kind] = b->shapes[kind];
	a->lost[kind] = b->lost[kind];
	b->records[kind] = records;
	b->shapes[kind] = shapes;
	b->lost[kind] = lost;
}

static bool of_family_taken(const struct pair *p, int64_t kind)
{
	int family = kind > 0 && kind < LAG_REC_LIMIT ? family_of((enum lag_record_kind)kind) : -1;

	return family >= 0 && p->take[family];
}

static void count_reasons(const struct lag_part *part, uint64_t *out, bool add)
{
	for (size_t i = 0; i < LAG_PART_COUNT(part, loss); i++) {
		const struct lag_rec_loss *l = &LAG_PART_AT(part, loss, i);
		uint64_t n = l->count > 0 ? (uint64_t)l->count : 0;
		size_t reason =
			l->reason >= 0 && l->reason < LAG_LOSS_LIMIT ? (size_t)l->reason : 0;

		if (add) {
			out[reason] += n;
		} else {
			out[reason] -= n < out[reason] ? n : out[reason];
		}
	}
}

/* A loss goes with the family that it is of. */
static enum lag_status take_losses(struct pair *p)
{
	struct lag_part *base = &p->base->part, *donor = &p->donor->part;
	size_t kept = 0;

	count_reasons(base, base->lost_reason, false);
	for (size_t i = 0; i < LAG_PART_COUNT(base, loss); i++) {
		if (!of_family_taken(p, LAG_PART_AT(base, loss, i).kind))
			LAG_PART_AT(base, loss, kept++) = LAG_PART_AT(base, loss, i);
	}
	LAG_PART_VEC(base, loss)->n = kept;
	for (size_t i = 0; i < LAG_PART_COUNT(donor, loss); i++) {
		const struct lag_rec_loss *l = &LAG_PART_AT(donor, loss, i);
		struct lag_rec_loss *slot;

		if (!of_family_taken(p, l->kind))
			continue;
		slot = lag_vec_push(LAG_PART_VEC(base, loss));
		if (!slot)
			return LAG_ERR_SYSTEM;
		*slot = *l;
	}
	count_reasons(base, base->lost_reason, true);
	return LAG_OK;
}

static enum lag_status add_gap(struct pair *p, int64_t from, int64_t until)
{
	struct lag_rec_gap *gap;
	uint32_t what = lag_strtab_add(&p->m->pool.strings, "CUPTI", 5);
	uint32_t why = lag_strtab_add(&p->m->pool.strings, "the other source covers less", 28);

	if (until - from < TELLING_GAP_NS)
		return LAG_OK;
	gap = lag_vec_push(LAG_PART_VEC(&p->base->part, gap));
	if (!gap || what == LAG_STR_NONE || why == LAG_STR_NONE)
		return LAG_ERR_SYSTEM;
	*gap = (struct lag_rec_gap){ from, until, what, why };
	return LAG_OK;
}

/* What one source did not record of the GPU the other one did, for a time. */
static enum lag_status mend_gaps(struct pair *p)
{
	struct lag_part *part = &p->base->part;
	size_t kept = 0;
	int64_t from, until;
	enum lag_status st;

	for (size_t i = 0; i < LAG_PART_COUNT(part, gap) && p->take[GPU]; i++) {
		const struct lag_rec_gap *g = &LAG_PART_AT(part, gap, i);

		if (strcmp(lag_merge_text(p->m, g->what), "CUPTI") != 0)
			LAG_PART_AT(part, gap, kept++) = *g;
	}
	if (p->take[GPU])
		LAG_PART_VEC(part, gap)->n = kept;
	(void)gpu_span(part, &from, &until);
	st = add_gap(p, p->base->first_ns, from);
	return st == LAG_OK ? add_gap(p, until, p->base->last_ns) : st;
}

static void take_identity(struct pair *p)
{
	struct lag_rec_process all = p->donor->part.process;

	lag_part_know(&all, &p->base->part.process);
	p->base->part.process = all;
}

/* Facts are added up; of a device that both know, what one lacks. */
static enum lag_status take_facts(struct pair *p)
{
	static const enum lag_record_kind kinds[] = { LAG_REC_meta, LAG_REC_thread,
						      LAG_REC_device };
	struct lag_part *base = &p->base->part, *donor = &p->donor->part;
	enum lag_status st = LAG_OK;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		size_t known = base->records[kinds[k]].n;

		for (size_t i = 0; i < donor->records[kinds[k]].n && st == LAG_OK; i++) {
			struct lag_record rec = lag_part_get(donor, kinds[k], i);
			bool have = false;

			for (size_t j = 0; j < known && kinds[k] == LAG_REC_device; j++) {
				have = have ||
				       LAG_PART_AT(base, device, j).device == rec.device.device;
			}
			if (!have)
				st = lag_part_add(base, &rec, NULL);
		}
	}
	return st;
}

/* Clock readings of the tool that did not record the GPU say nothing of how the other one converted the
 * GPU's times. */
static void forget_gpu_clock(struct lag_part *part)
{
	size_t kept = 0;

	for (size_t i = 0; i < LAG_PART_COUNT(part, clock); i++) {
		struct lag_rec_clock *c = &LAG_PART_AT(part, clock, i);

		if (c->device != LAG_NONE)
			continue;
		c->cupti_ns = LAG_NONE;
		LAG_PART_AT(part, clock, kept++) = *c;
	}
	LAG_PART_VEC(part, clock)->n = kept;
}

static enum lag_status take_families(struct pair *p)
{
	struct lag_vec links;
	struct lag_part *part = &p->base->part;
	int64_t from, until;
	enum lag_status st = LAG_OK;

	p->donor->first_ns += p->clock.offset_ns;
	p->donor->last_ns += p->clock.offset_ns;
	for (size_t i = 0; i < N_MEMBERS; i++) {
		if (p->take[members[i].family])
			swap_kind(p, members[i].kind);
	}
	if (p->take[RANGES]) {
		links = p->base->range_links;
		p->base->range_links = p->donor->range_links;
		p->donor->range_links = links;
	}
	take_identity(p);
	if (p->donor->first_ns < p->base->first_ns)
		p->base->first_ns = p->donor->first_ns;
	if (p->donor->last_ns > p->base->last_ns)
		p->base->last_ns = p->donor->last_ns;
	st = take_losses(p);
	if (st == LAG_OK)
		st = take_facts(p);
	if (st == LAG_OK && p->take[GPU] != p->take[CALLS]) {
		(void)gpu_span(part, &from, &until);
		st = forget_ids(part);
		if (st == LAG_OK)
			st = tie(p, part, part, true);
		/* Without any GPU work no call was made outside of its time. */
		if (st == LAG_OK && count_gpu(part))
			leave_out_calls(p, part, from, until);
	}
	if (st == LAG_OK && count_gpu(part))
		st = mend_gaps(p);
	if (p->take[GPU] != p->take[CLOCK])
		forget_gpu_clock(part);
	return st;
}

/* ---- what is said of it ---- */

static void say_note(struct lag_merge *m, uint32_t source, const char *with)
{
	struct lag_source_row *row = &LAG_VEC_AT(&m->sources, struct lag_source_row, source);
	const char *slash = strrchr(with, '/');

	if (!row->note[0]) {
		(void)snprintf(row->note, sizeof(row->note), "one process with %.200s",
			       slash ? slash + 1 : with);
	}
}

static void list_taken(const struct pair *p, bool taken, struct lag_buf *out)
{
	const struct lag_part *part = &p->base->part;
	size_t n[N_FAMILIES] = { count_gpu(part), LAG_PART_COUNT(part, range),
				 LAG_PART_COUNT(part, op), LAG_PART_COUNT(part, clock) };
	bool any = false;

	for (int f = 0; f < N_FAMILIES; f++) {
		if (p->take[f] != taken || !n[f])
			continue;
		lag_buf_printf(out, "%s%s", any ? ", " : "", names[f]);
		any = true;
	}
	if (!any)
		lag_buf_puts(out, "nothing more");
}

static void say_combined(const struct pair *p)
{
	struct lag_buf text = { 0 };
	const char *a = p->base->part.path, *b = p->donor->part.path;

	lag_buf_printf(&text, "rank %" PRId64 ": one process of %.120s (",
		       p->base->part.process.rank, a);
	list_taken(p, false, &text);
	lag_buf_printf(&text, ") and %.120s (", b);
	list_taken(p, true, &text);
	lag_buf_puts(&text, "); their clocks ");
	if (p->clock.offset_ns) {
		lag_buf_puts(&text, "differ by ");
		lag_fmt_ns(&text, p->clock.offset_ns);
		lag_buf_puts(&text, ", which is taken off, known to ");
	} else {
		lag_buf_puts(&text, "agree within ");
	}
	lag_fmt_ns(&text, p->clock.uncertainty_ns);
	lag_buf_printf(&text, ", from %zu %s", p->clock.n_agree, p->clock.by);
	if (p->take[GPU] != p->take[CALLS]) {
		lag_buf_printf(&text, "; %zu of %zu communication kernels found their call",
			       p->n_tied, p->n_launches);
	}
	if (p->n_outside) {
		lag_buf_printf(&text, "; %zu %s made while no GPU work was recorded left out",
			       p->n_outside, LAG_PLURAL(p->n_outside, "call", "calls"));
	}
	lag_merge_find(p->m, 0, "combined", LAG_ABOUT(p->base->part.process.rank, LAG_NONE, 2),
		       "%s", lag_buf_text(&text));
	lag_buf_release(&text);
}

/* What of the unused one was put aside is told of the process that its records are in. */
static void move_quarantine(const struct pair *p)
{
	uint32_t base = (uint32_t)(p->base - LAG_PROC_AT(p->m, 0));
	uint32_t donor = (uint32_t)(p->donor - LAG_PROC_AT(p->m, 0));

	for (size_t i = 0; i < p->m->quarantine.n; i++) {
		struct lag_quarantine_row *row =
			&LAG_VEC_AT(&p->m->quarantine, struct lag_quarantine_row, i);
		bool taken = false;

		for (size_t k = 0; k < N_MEMBERS; k++) {
			taken = taken || (p->take[members[k].family] &&
					  strcmp(lag_record_info_get(members[k].kind)->name,
						 row->record) == 0);
		}
		if (taken && (row->proc == donor || row->proc == base))
			row->proc = row->proc == donor ? base : donor;
	}
}

static enum lag_status combine(struct pair *p)
{
	enum lag_status st = lag_combine_clocks(p->m, &p->base->part, &p->donor->part, &p->clock);

	if (st != LAG_OK)
		return st;
	if (!p->clock.told) {
		lag_merge_find(
			p->m, 1, "not_combined", LAG_ABOUT(p->base->part.process.rank, LAG_NONE, 2),
			"%.150s and %.150s may be of one process and are not combined: %s",
			p->base->part.path, p->donor->part.path,
			p->clock.n ? "what both saw does not agree on one clock"
				   : "nothing that both saw tells whether their clocks agree");
		return LAG_OK;
	}
	choose(p);
	/* From here on one clock. */
	lag_part_shift(&p->donor->part, p->clock.offset_ns);
	st = check_ties(p);
	if (st == LAG_OK)
		st = take_families(p);
	if (st != LAG_OK)
		return st;
	move_quarantine(p);
	say_combined(p);
	say_note(p->m, p->base->source, p->donor->part.path);
	say_note(p->m, p->donor->source, p->base->part.path);
	p->donor->unused = true;
	p->donor->part_of_ref = (uint32_t)(p->base - LAG_PROC_AT(p->m, 0)) + 1;
	p->base->combined = true;
	return LAG_OK;
}

enum lag_status lag_merge_combine(struct lag_merge *m)
{
	struct lag_map of_rank = { 0 };
	enum lag_status st = LAG_OK;

	for (size_t i = m->old.n_procs; i < m->procs.n && st == LAG_OK; i++) {
		struct lag_proc *p = LAG_PROC_AT(m, i), *other;
		struct pair pair;
		uint64_t at = 0;

		if (p->unused || p->part.process.rank < 0)
			continue;
		if (!lag_map_find(&of_rank, (uint64_t)p->part.process.rank, &at)) {
			st = lag_map_set(&of_rank, (uint64_t)p->part.process.rank, i);
			continue;
		}
		other = LAG_PROC_AT(m, at);
		if (!may_be_one(m, p, other))
			continue;
		pair = (struct pair){ .m = m, .base = other, .donor = p };
		if (knows_more(&p->part, &other->part)) {
			pair.base = p;
			pair.donor = other;
		}
		st = combine(&pair);
		lag_map_release(&pair.tied);
		if (st == LAG_OK && pair.donor->unused) {
			st = lag_map_set(&of_rank, (uint64_t)p->part.process.rank,
					 (uint64_t)(pair.base - LAG_PROC_AT(m, 0)));
		}
	}
	lag_map_release(&of_rank);
	return st;
}
