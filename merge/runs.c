/* SPDX-License-Identifier: Apache-2.0 */
/* Which recordings are of one run. Where no run id says so, two are of different runs when they contradict
 * each other: another number of ranks, one rank on two hosts at once, one rank at another time in another
 * process. The run of most ranks is used; the rest is set aside, with the reason. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "merge/state.h"
#include "schema/base/fmt.h"

#define RUN_APART_NS  INT64_C(60000000000) /* processes of one run overlap, give or take this */
#define WALL_CLOCK_NS INT64_C(1000000000000000000) /* 2001: smaller times are of no wall clock */
#define DAY_NS        INT64_C(86400000000000)

struct run {
	int64_t world_size;        /* LAG_NONE unknown */
	int64_t least_world;       /* it has this many at least */
	int64_t first_ns, last_ns; /* first > last: nothing by the wall clock */
	size_t n_procs, n_unranked, n_timed;
	int64_t run_id; /* that most of its processes name; 0: none does */
	uint64_t n_named;
	struct lag_map ranks;    /* rank -> the last process that was found to be it */
	struct lag_map told;     /* the same of processes that name a run */
	struct lag_map ids;      /* run id -> number of processes that name it */
	struct lag_map restarts; /* of processes that name a run */
};

struct sorting {
	struct lag_merge *m;
	struct lag_vec runs; /* struct run */
	struct lag_vec of; /* size_t by process: 1 + index of its run; 0: no recording of a rank */
	bool strict;       /* what is of another time is of another run, whatever its rank */
};

#define RUN_AT(s, i) (&LAG_VEC_AT(&(s)->runs, struct run, i))
#define RUN_OF(s, i) LAG_VEC_AT(&(s)->of, size_t, i)

static bool has_wall_clock(const struct lag_proc *p)
{
	return p->first_ns != LAG_NONE && p->first_ns >= WALL_CLOCK_NS;
}

static bool overlap(const struct lag_proc *a, const struct lag_proc *b)
{
	return a->first_ns != LAG_NONE && b->first_ns != LAG_NONE && a->first_ns <= b->last_ns &&
	       b->first_ns <= a->last_ns;
}

/* Time between the recording and the run, negative where it is earlier; 0: none, or not known. */
static int64_t gap_between(const struct run *r, const struct lag_proc *p)
{
	if (!has_wall_clock(p) || r->first_ns > r->last_ns)
		return 0;
	if (p->first_ns > r->last_ns)
		return p->first_ns - r->last_ns;
	return p->last_ns < r->first_ns ? p->last_ns - r->first_ns : 0;
}

static bool is_apart(int64_t gap_ns)
{
	return gap_ns > RUN_APART_NS || gap_ns < -RUN_APART_NS;
}

/* A later window of the process: numbers of processes come again in time. */
static bool same_process(const struct lag_merge *m, const struct lag_proc *a,
			 const struct lag_proc *b)
{
	const struct lag_rec_process *x = &a->part.process, *y = &b->part.process;

	return x->pid != LAG_NONE && x->pid == y->pid && !lag_merge_hosts_differ(m, x, y) &&
	       a->first_ns != LAG_NONE && b->first_ns != LAG_NONE &&
	       a->first_ns - b->last_ns < DAY_NS && b->first_ns - a->last_ns < DAY_NS;
}

/* ---- what speaks against it; each writes the reason ---- */

struct reason {
	char text[200];
};

static bool other_size(const struct run *r, const struct lag_proc *p, struct reason *why)
{
	int64_t world = p->part.process.world_size, rank = p->part.process.rank;

	if (r->world_size != LAG_NONE && world > 0 &&
	    lag_merge_other_world(&p->part, r->world_size)) {
		(void)snprintf(why->text, sizeof(why->text),
			       "its job has %" PRId64 " %s, that of the others %" PRId64, world,
			       LAG_PLURAL(world, "rank", "ranks"), r->world_size);
		return true;
	}
	if (r->world_size != LAG_NONE && rank >= r->world_size) {
		(void)snprintf(why->text, sizeof(why->text),
			       "rank %" PRId64 ", and the job of the others has %" PRId64 " %s",
			       rank, r->world_size, LAG_PLURAL(r->world_size, "rank", "ranks"));
		return true;
	}
	if (world > 0 && !p->part.world_is_least && r->least_world > world) {
		(void)snprintf(why->text, sizeof(why->text),
			       "its job has %" PRId64 " ranks, that of the others %" PRId64
			       " at least",
			       world, r->least_world);
		return true;
	}
	return false;
}

static void say_gap(struct reason *why, int64_t gap_ns)
{
	static const struct {
		int64_t s;
		const char *name;
	} units[] = { { 86400, "days" }, { 3600, "hours" }, { 60, "minutes" } };

	int64_t s = (gap_ns < 0 ? -gap_ns : gap_ns) / 1000000000;
	size_t u = 0;

	while (u < 2 && s < 2 * units[u].s)
		u++;
	(void)snprintf(why->text, sizeof(why->text), "recorded %" PRId64 " %s %s than the others",
		       (s + units[u].s / 2) / units[u].s, units[u].name,
		       gap_ns < 0 ? "earlier" : "later");
}

static bool other_time(const struct sorting *s, const struct run *r, const struct lag_proc *p,
		       struct reason *why)
{
	int64_t rank = p->part.process.rank, gap = gap_between(r, p);
	bool by_wall = r->first_ns <= r->last_ns;
	uint64_t at;

	if (p->first_ns != LAG_NONE && r->n_timed && by_wall != has_wall_clock(p)) {
		(void)snprintf(why->text, sizeof(why->text),
			       by_wall ? "its times have no date, those of the others have"
				       : "its times have a date, those of the others have none");
		return true;
	}
	if (!is_apart(gap))
		return false;
	if (rank < 0) {
		if (r->n_unranked == r->n_procs && !s->strict)
			return false;
	} else if (lag_map_find(&r->ranks, (uint64_t)rank, &at)) {
		if (same_process(s->m, LAG_PROC_AT(s->m, at), p))
			return false;
	} else if (r->n_unranked < r->n_procs && !s->strict) {
		/* Profiles of some ranks may well be of another time. */
		return false;
	}
	say_gap(why, gap);
	return true;
}

static bool other_place(const struct lag_merge *m, const struct run *r, const struct lag_proc *p,
			struct reason *why)
{
	const struct lag_rec_process *id = &p->part.process;
	const struct lag_proc *q;
	uint64_t at;

	if (id->rank < 0 || !lag_map_find(&r->ranks, (uint64_t)id->rank, &at))
		return false;
	q = LAG_PROC_AT(m, at);
	if (!overlap(p, q) || !lag_merge_hosts_differ(m, id, &q->part.process))
		return false;
	(void)snprintf(why->text, sizeof(why->text),
		       "rank %" PRId64 " ran on %.60s while that of the others ran on %.60s",
		       id->rank, lag_merge_text(m, id->host),
		       lag_merge_text(m, q->part.process.host));
	return true;
}

/* Launchers that start one `record` a task give every task a run id of its own: such a process belongs
 * to the run when it fills a free rank of it at the same time. */
static bool other_id(const struct lag_merge *m, const struct run *r, const struct lag_proc *p,
		     struct reason *why)
{
	const struct lag_rec_process *id = &p->part.process;
	uint64_t at;

	if (!id->run_id || !r->ids.n)
		return false;
	if (id->rank != LAG_NONE && id->world_size == r->world_size &&
	    !lag_map_find(&r->told, (uint64_t)id->rank, &at) &&
	    lag_map_find(&r->restarts, (uint64_t)id->restart, &at) && p->first_ns != LAG_NONE &&
	    !is_apart(gap_between(r, p)))
		return false;
	(void)snprintf(why->text, sizeof(why->text), "it is of run %.70s, the others of %.70s",
		       lag_merge_text(m, id->run_id), lag_merge_text(m, r->run_id));
	return true;
}

static bool contradicts(const struct sorting *s, const struct run *r, const struct lag_proc *p,
			struct reason *why)
{
	const struct lag_merge *m = s->m;
	uint64_t n;

	if (p->part.process.run_id && lag_map_find(&r->ids, (uint64_t)p->part.process.run_id, &n))
		return false;
	return other_id(m, r, p, why) || other_size(r, p, why) || other_time(s, r, p, why) ||
	       other_place(m, r, p, why);
}

/* ---- runs ---- */

static enum lag_status count_in(struct lag_map *map, uint64_t key, uint64_t *n)
{
	*n = 0;
	(void)lag_map_find(map, key, n);
	return lag_map_set(map, key, ++*n);
}

static enum lag_status join_named(struct run *r, const struct lag_rec_process *id, size_t proc)
{
	uint64_t n = 0;
	enum lag_status st = count_in(&r->ids, (uint64_t)id->run_id, &n);

	if (n > r->n_named) {
		r->n_named = n;
		r->run_id = id->run_id;
	}
	if (st == LAG_OK)
		st = lag_map_set(&r->restarts, (uint64_t)id->restart, 1);
	if (st == LAG_OK && id->rank >= 0)
		st = lag_map_set(&r->told, (uint64_t)id->rank, proc);
	return st;
}

static enum lag_status join(struct sorting *s, size_t run, size_t proc)
{
	struct run *r = RUN_AT(s, run);
	const struct lag_proc *p = LAG_PROC_AT(s->m, proc);
	const struct lag_rec_process *id = &p->part.process;
	int64_t least = id->world_size > id->rank ? id->world_size : id->rank + 1;
	enum lag_status st = LAG_OK;

	RUN_OF(s, proc) = run + 1;
	r->n_procs++;
	r->n_unranked += id->rank < 0;
	r->n_timed += p->first_ns != LAG_NONE;
	if (id->world_size > 0 && !p->part.world_is_least)
		r->world_size = id->world_size;
	/* LAG_NONE is below every number. */
	if (least > r->least_world)
		r->least_world = least;
	if (s->strict && has_wall_clock(p)) {
		r->first_ns = p->first_ns < r->first_ns ? p->first_ns : r->first_ns;
		r->last_ns = p->last_ns > r->last_ns ? p->last_ns : r->last_ns;
	}
	if (id->rank >= 0)
		st = lag_map_set(&r->ranks, (uint64_t)id->rank, proc);
	return st == LAG_OK && id->run_id ? join_named(r, id, proc) : st;
}

static enum lag_status sort_proc(struct sorting *s, size_t proc)
{
	struct reason why;
	struct run *r;

	for (size_t i = 0; i < s->runs.n; i++) {
		if (!contradicts(s, RUN_AT(s, i), LAG_PROC_AT(s->m, proc), &why))
			return join(s, i, proc);
	}
	r = lag_vec_push(&s->runs);
	if (!r)
		return LAG_ERR_SYSTEM;
	r->world_size = LAG_NONE;
	r->first_ns = INT64_MAX;
	r->last_ns = INT64_MIN;
	return join(s, s->runs.n - 1, proc);
}

/* Most ranks, then most recordings; of equals the later one, as the last restart of a rank is used. */
static size_t main_run(const struct sorting *s)
{
	size_t best = 0;

	for (size_t i = 1; i < s->runs.n && !s->m->old.is; i++) {
		const struct run *a = RUN_AT(s, i), *b = RUN_AT(s, best);

		if (a->ranks.n != b->ranks.n ? a->ranks.n > b->ranks.n
		    : a->n_procs != b->n_procs
			    ? a->n_procs > b->n_procs
			    : a->first_ns <= a->last_ns && a->first_ns > b->first_ns)
			best = i;
	}
	return best;
}

static enum lag_status leave_out(struct sorting *s, size_t proc, const struct reason *why,
				 struct lag_err *err)
{
	struct lag_merge *m = s->m;
	struct lag_proc *p = LAG_PROC_AT(m, proc);

	if (m->old.is) {
		return lag_err_set(err, LAG_ERR_INPUT, "%s: of another run than %s: %s",
				   p->part.path, m->opts->append, why->text);
	}
	m->n_other_runs++;
	lag_merge_set_aside(m, p, LAG_SOURCE_OK, "of another run, not used");
	lag_merge_find(m, 1, "mixed_runs", LAG_ABOUT(p->part.process.rank, LAG_NONE, 1),
		       "%s: of another run, not used: %s", p->part.path, why->text);
	return LAG_OK;
}

static void say_apart(struct lag_merge *m, const struct run *r, const struct lag_proc *p)
{
	int64_t gap = gap_between(r, p);
	struct reason why;

	if (!is_apart(gap))
		return;
	say_gap(&why, gap);
	lag_merge_find(m, 1, "apart", LAG_ABOUT(p->part.process.rank, LAG_NONE, 1),
		       "%s: %s, with which it has no time in common: of another run, unless its "
		       "host's clock is wrong",
		       p->part.path, why.text);
}

/* Runs have grown since: who is out is asked once more. */
static enum lag_status leave_others(struct sorting *s, size_t run, struct lag_err *err)
{
	struct lag_merge *m = s->m;
	enum lag_status st = LAG_OK;
	size_t n_joined = 0;

	for (size_t i = 0; i < m->procs.n && st == LAG_OK; i++) {
		const struct lag_proc *p = LAG_PROC_AT(m, i);
		struct reason why;

		if (!RUN_OF(s, i))
			continue;
		if (RUN_OF(s, i) != run + 1 && contradicts(s, RUN_AT(s, run), p, &why)) {
			st = leave_out(s, i, &why, err);
			continue;
		}
		if (RUN_OF(s, i) != run + 1) {
			st = join(s, run, i);
			say_apart(m, RUN_AT(s, run), p);
		}
		n_joined += p->part.process.run_id && p->part.process.run_id != m->run_id;
	}
	if (n_joined) {
		lag_merge_find(m, 0, "mixed_runs", LAG_ABOUT(LAG_NONE, LAG_NONE, n_joined),
			       "%zu %s free ranks at the same time: taken as one run", n_joined,
			       LAG_PLURAL(n_joined, "process with another run id fills",
					  "processes with other run ids fill"));
	}
	return st;
}

static void release(struct sorting *s)
{
	for (size_t i = 0; i < s->runs.n; i++) {
		lag_map_release(&RUN_AT(s, i)->ranks);
		lag_map_release(&RUN_AT(s, i)->told);
		lag_map_release(&RUN_AT(s, i)->ids);
		lag_map_release(&RUN_AT(s, i)->restarts);
	}
	lag_vec_release(&s->runs);
	lag_vec_release(&s->of);
}

enum lag_status lag_merge_one_run(struct lag_merge *m, struct lag_err *err)
{
	struct sorting s = { m, LAG_VEC_INIT(struct run), LAG_VEC_INIT(size_t), true };
	enum lag_status st = lag_vec_resize(&s.of, m->procs.n);

	for (size_t i = 0; i < m->procs.n && st == LAG_OK; i++) {
		const struct lag_proc *p = LAG_PROC_AT(m, i);

		if (p->unused || (!p->old && !lag_merge_may_be_rank(&p->part)))
			continue;
		st = p->old && s.runs.n ? join(&s, 0, i) : sort_proc(&s, i);
	}
	if (st == LAG_OK && s.runs.n) {
		size_t run = main_run(&s);

		s.strict = false;

		if (!m->old.is || !m->run_id)
			m->run_id = RUN_AT(&s, run)->run_id;
		st = leave_others(&s, run, err);
	}
	release(&s);
	return st;
}
