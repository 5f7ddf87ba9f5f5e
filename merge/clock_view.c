/* SPDX-License-Identifier: Apache-2.0 */
/* Brackets to breaks and device offsets; then a repaired copy of every time. */
#include "merge/clock_view.h"

#include <math.h>
#include <stdlib.h>

#include "merge/clock_fit.h"

/* A wall clock that moves by more than this against the monotonic one has been set. */
#define STEP_NS 100000
/* Device brackets that are averaged, and the change that is worth a row of its own. */
#define OWN_BRACKETS 5
#define OWN_CHANGE   2000.0
/* From 1897 to 2116 differences and sums of times cannot overflow; nor can what is added to them. */
#define TIME_FLOOR  (-(INT64_MAX / 4))
#define TIME_LIMIT  (INT64_MAX / 2)
#define STEP_LIMIT  (INT64_MAX / 64)
#define MIN_SPAN_NS 1e6
/* The tracer looks each second whether the clock was set. */
#define SEEN_LATE_NS 1000000000

bool lag_clock_pick(uint64_t i, size_t stride)
{
	uint64_t h = (i + 1) * 0x9e3779b97f4a7c15ULL;
	return (h ^ (h >> 32)) % stride == 0;
}

bool lag_clock_usable(enum lag_func func, int64_t bytes)
{
	switch (func) {
	case LAG_FUNC_ALL_REDUCE:
	case LAG_FUNC_ALL_GATHER:
	case LAG_FUNC_REDUCE_SCATTER:
	case LAG_FUNC_ALL_TO_ALL:
		return bytes != 0;
	case LAG_FUNC_BARRIER:
		return true;
	default:
		return false;
	}
}

bool lag_clock_used(const struct lag_clock_view *view, const struct lag_align_collective *c)
{
	return lag_clock_usable(c->func, c->bytes) ||
	       (view->exchanges && c->func == LAG_FUNC_SEND_RECV && c->n_members == 2);
}

static bool need_exchanges(const struct lag_align_input *in)
{
	size_t n = 0;
	for (size_t i = 0; i < in->n_collectives && n < LAG_CLOCK_OFTEN; i++) {
		const struct lag_align_collective *c = &in->collectives[i];
		n += lag_clock_usable(c->func, c->bytes) && c->n_members > 1;
	}
	return n < LAG_CLOCK_OFTEN;
}

bool lag_clock_known(const struct lag_align_member *m)
{
	return m->start_ns > TIME_FLOOR && m->end_ns >= m->start_ns && m->end_ns < TIME_LIMIT;
}

double lag_clock_x(const struct lag_clock_view *view, uint32_t host, int64_t repaired_ns)
{
	return (double)(repaired_ns - view->origin_ns[host]) / view->span_ns;
}

static int by_host_mono(const void *pa, const void *pb)
{
	const struct lag_align_bracket *a = pa;
	const struct lag_align_bracket *b = pb;
	if (a->host != b->host)
		return a->host < b->host ? -1 : 1;
	return (a->monotonic_ns > b->monotonic_ns) - (a->monotonic_ns < b->monotonic_ns);
}

static int by_device_time(const void *pa, const void *pb)
{
	const struct lag_align_bracket *a = pa;
	const struct lag_align_bracket *b = pb;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (a->cupti_ns > b->cupti_ns) - (a->cupti_ns < b->cupti_ns);
}

static bool plausible(int64_t t)
{
	return t > 0 && t < TIME_LIMIT;
}

static int by_host_from(const void *pa, const void *pb)
{
	const struct lag_clock_break *a = pa;
	const struct lag_clock_break *b = pb;
	if (a->host != b->host)
		return a->host < b->host ? -1 : 1;
	return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

static enum lag_status push_break(struct lag_clock_view *view, struct lag_clock_set set)
{
	struct lag_clock_break *b = lag_vec_push(&view->breaks);
	if (!b)
		return LAG_ERR_SYSTEM;
	*b = (struct lag_clock_break){ .host = set.host,
				       .from_ns = set.from_ns,
				       .step_ns = set.step_ns,
				       .margin_ns = set.margin_ns };
	return LAG_OK;
}

static enum lag_status bracket_breaks(struct lag_clock_view *view, struct lag_align_bracket *br,
				      size_t n)
{
	enum lag_status st = LAG_OK;
	qsort(br, n, sizeof(*br), by_host_mono);
	for (size_t i = 1; i < n && st == LAG_OK; i++) {
		const struct lag_align_bracket *a = &br[i - 1];
		const struct lag_align_bracket *b = &br[i];
		if (a->host != b->host)
			continue;
		int64_t gap = b->monotonic_ns - a->monotonic_ns;
		int64_t step = b->realtime_ns - a->realtime_ns - gap;
		if (gap > STEP_LIMIT || llabs(step) > STEP_LIMIT ||
		    llabs(step) <= STEP_NS + a->bracket_ns + b->bracket_ns)
			continue;
		/* It happened somewhere between the two readings: the middle, on either side of it. */
		st = push_break(view, (struct lag_clock_set){ b->host,
							      a->realtime_ns + gap / 2 + step / 2,
							      step, gap / 2 + llabs(step) / 2 });
	}
	return st;
}

/* Brackets that show this jump too say better when it was. */
static bool shown(const struct lag_clock_view *view, const struct lag_align_step *s)
{
	for (size_t i = 0; i < view->breaks.n; i++) {
		const struct lag_clock_break *b =
			&LAG_VEC_AT(&view->breaks, struct lag_clock_break, i);
		if (b->host == s->host &&
		    llabs(b->from_ns - s->at_ns) < SEEN_LATE_NS + b->margin_ns + llabs(b->step_ns))
			return true;
	}
	return false;
}

static enum lag_status named_breaks(struct lag_clock_view *view)
{
	const struct lag_align_input *in = view->in;
	enum lag_status st = LAG_OK;
	for (size_t i = 0; i < in->n_steps && st == LAG_OK; i++) {
		const struct lag_align_step *s = &in->steps[i];
		if (s->host >= in->n_hosts || !plausible(s->at_ns) || s->step_ns > STEP_LIMIT ||
		    s->step_ns < -STEP_LIMIT || shown(view, s))
			continue;
		st = push_break(view,
				(struct lag_clock_set){
					s->host, s->at_ns - SEEN_LATE_NS / 2 - s->step_ns / 2,
					s->step_ns, SEEN_LATE_NS / 2 + llabs(s->step_ns) / 2 });
	}
	return st;
}

/* In order of time, each with the sum of those before. */
static void add_up(struct lag_clock_view *view)
{
	struct lag_clock_break *b = view->breaks.items;
	size_t n = 0;
	int64_t shift = 0;
	if (view->breaks.n)
		qsort(b, view->breaks.n, sizeof(*b), by_host_from);
	for (size_t i = 0; i < view->breaks.n; i++) {
		if (n == 0 || b[n - 1].host != b[i].host)
			shift = 0;
		if (llabs(shift + b[i].step_ns) > STEP_LIMIT)
			continue;
		shift += b[i].step_ns;
		b[n] = b[i];
		b[n++].shift_ns = shift;
	}
	view->breaks.n = n;
}

static double own_offset(const struct lag_align_bracket *b)
{
	return (double)(b->realtime_ns - b->cupti_ns);
}

static bool agrees(const struct lag_align_bracket *b, double offset)
{
	return fabs(own_offset(b) - offset) <= OWN_CHANGE + (double)b->bracket_ns / 2;
}

/* The median of the few brackets from the first on that agree with it. */
static struct lag_clock_own own_row(const struct lag_align_bracket *br, size_t n)
{
	double v[OWN_BRACKETS];
	size_t n_alike = 0;
	for (size_t i = 0; i < n && n_alike < OWN_BRACKETS && br[i].device == br[0].device &&
			   agrees(&br[i], own_offset(&br[0]));
	     i++)
		v[n_alike++] = own_offset(&br[i]);
	return (struct lag_clock_own){ br[0].device, br[0].cupti_ns, lag_fit_median(v, n_alike),
				       (double)br[0].bracket_ns / 2, br[0].own };
}

static bool push_own(struct lag_clock_view *view, struct lag_clock_own row)
{
	struct lag_clock_own *out = lag_vec_push(&view->own);
	if (out)
		*out = row;
	return out != NULL;
}

/* A row holds while brackets agree with it. Between the last that does and the first that does not, the
 * device may be on either side. */
static enum lag_status find_own(struct lag_clock_view *view, struct lag_align_bracket *br, size_t n)
{
	if (n)
		qsort(br, n, sizeof(*br), by_device_time);
	for (size_t i = 0; i < n && br[i].device < view->in->n_devices; i++) {
		struct lag_clock_own *last =
			view->own.n ? &LAG_VEC_AT(&view->own, struct lag_clock_own, view->own.n - 1)
				    : NULL;
		double half = (double)br[i].bracket_ns / 2;
		if (last && last->device == br[i].device) {
			double by = own_offset(&br[i]) - last->offset_ns;
			if (agrees(&br[i], last->offset_ns)) {
				last->spread_ns = fmax(last->spread_ns, fabs(by) + half);
				continue;
			}
			struct lag_clock_own between = *last;
			between.from_ns = br[i - 1].cupti_ns + 1;
			between.offset_ns += by / 2;
			between.spread_ns = fabs(by) / 2 + half;
			if (!push_own(view, between))
				return LAG_ERR_SYSTEM;
		}
		if (!push_own(view, own_row(br + i, n - i)))
			return LAG_ERR_SYSTEM;
	}
	return LAG_OK;
}

/* Row of `device` in force at t; before its first row, that one. NULL without rows. */
static const struct lag_clock_own *own_at(const struct lag_clock_view *view, uint32_t device,
					  int64_t t)
{
	const struct lag_clock_own *rows = view->own.items;
	size_t lo = 0;
	size_t hi = view->own.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (rows[mid].device < device ||
		    (rows[mid].device == device && rows[mid].from_ns <= t)) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	if (lo > 0 && rows[lo - 1].device == device)
		return &rows[lo - 1];
	return lo < view->own.n && rows[lo].device == device ? &rows[lo] : NULL;
}

double lag_clock_own_offset(const struct lag_clock_view *view, uint32_t device, int64_t raw_ns)
{
	const struct lag_clock_own *own = own_at(view, device, raw_ns);
	return own ? own->offset_ns : 0;
}

bool lag_clock_own_known(const struct lag_clock_view *view, uint32_t device)
{
	const struct lag_clock_own *own = own_at(view, device, 0);
	return own && own->own;
}

double lag_clock_own_spread(const struct lag_clock_view *view, uint32_t device, int64_t raw_ns)
{
	const struct lag_clock_own *own = own_at(view, device, raw_ns);
	return own ? own->spread_ns : 0;
}

int64_t lag_clock_repair(const struct lag_clock_view *view, uint32_t host, uint32_t device,
			 int64_t raw_ns)
{
	int64_t shift = 0;
	int64_t t = raw_ns + llround(lag_clock_own_offset(view, device, raw_ns));
	for (size_t i = 0; i < view->breaks.n; i++) {
		const struct lag_clock_break *b =
			&LAG_VEC_AT(&view->breaks, struct lag_clock_break, i);
		if (b->host == host && b->from_ns <= t)
			shift = b->shift_ns;
	}
	return t - shift;
}

int64_t lag_clock_shift(const struct lag_clock_view *view, uint32_t host, int64_t repaired_ns)
{
	int64_t shift = 0;
	for (size_t i = 0; i < view->breaks.n; i++) {
		const struct lag_clock_break *b =
			&LAG_VEC_AT(&view->breaks, struct lag_clock_break, i);
		if (b->host == host && b->from_ns - b->shift_ns <= repaired_ns)
			shift = b->shift_ns;
	}
	return shift;
}

static bool near_break(const struct lag_clock_view *view, const struct lag_align_member *m)
{
	for (size_t i = 0; i < view->breaks.n; i++) {
		const struct lag_clock_break *b =
			&LAG_VEC_AT(&view->breaks, struct lag_clock_break, i);
		if (b->host == m->host && m->end_ns > b->from_ns - b->margin_ns &&
		    m->start_ns < b->from_ns + b->margin_ns)
			return true;
	}
	return false;
}

static void repair(struct lag_clock_view *view, struct lag_align_member *m)
{
	if (near_break(view, m))
		m->start_ns = INT64_MIN;
	if (!lag_clock_known(m))
		return;
	if (view->own.n || view->breaks.n) {
		m->start_ns = lag_clock_repair(view, m->host, m->device, m->start_ns);
		m->end_ns = lag_clock_repair(view, m->host, m->device, m->end_ns);
	}
	if (m->start_ns < view->first_ns[m->host])
		view->first_ns[m->host] = m->start_ns;
	if (m->end_ns > view->last_ns[m->host])
		view->last_ns[m->host] = m->end_ns;
}

static void measure(struct lag_clock_view *view)
{
	view->span_ns = MIN_SPAN_NS;
	for (uint32_t h = 0; h < view->in->n_hosts; h++) {
		if (view->first_ns[h] > view->last_ns[h])
			continue;
		int64_t length = view->last_ns[h] - view->first_ns[h];
		view->origin_ns[h] = view->first_ns[h] + length / 2;
		view->span_ns = fmax(view->span_ns, (double)length / 2);
	}
}

static enum lag_status read_brackets(struct lag_clock_view *view)
{
	const struct lag_align_input *in = view->in;
	struct lag_align_bracket *br = lag_calloc(in->n_brackets, sizeof(*br));
	enum lag_status st = LAG_ERR_SYSTEM;
	if (!br)
		return st;
	size_t n = 0;
	for (size_t i = 0; i < in->n_brackets; i++) {
		const struct lag_align_bracket *b = &in->brackets[i];
		if (b->host >= in->n_hosts || !plausible(b->realtime_ns) ||
		    !plausible(b->monotonic_ns) || b->bracket_ns < 0 || b->bracket_ns > STEP_NS)
			continue;
		br[n] = *b;
		if (!plausible(b->cupti_ns) || llabs(b->realtime_ns - b->cupti_ns) > STEP_LIMIT)
			br[n].device = UINT32_MAX;
		n++;
	}
	st = bracket_breaks(view, br, n);
	if (st == LAG_OK)
		st = find_own(view, br, n);
	free(br);
	return st;
}

static enum lag_status find_breaks(struct lag_clock_view *view, const struct lag_clock_set *sets,
				   size_t n_sets)
{
	enum lag_status st = read_brackets(view);
	if (st == LAG_OK)
		st = named_breaks(view);
	for (size_t i = 0; i < n_sets && st == LAG_OK; i++)
		st = push_break(view, sets[i]);
	add_up(view);
	return st;
}

enum lag_status lag_clock_view_init(struct lag_clock_view *view, const struct lag_align_input *in,
				    const struct lag_clock_set *sets, size_t n_sets,
				    struct lag_err *err)
{
	*view = (struct lag_clock_view){ .in = in,
					 .breaks = LAG_VEC_INIT(struct lag_clock_break),
					 .own = LAG_VEC_INIT(struct lag_clock_own) };
	view->members = lag_calloc(in->n_members, sizeof(*view->members));
	view->messages = lag_calloc(in->n_messages, sizeof(*view->messages));
	view->origin_ns = lag_calloc(in->n_hosts, sizeof(int64_t));
	view->first_ns = lag_calloc(in->n_hosts, sizeof(int64_t));
	view->last_ns = lag_calloc(in->n_hosts, sizeof(int64_t));
	if (!view->members || !view->messages || !view->origin_ns || !view->first_ns ||
	    !view->last_ns || find_breaks(view, sets, n_sets) != LAG_OK) {
		lag_clock_view_release(view);
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory for clock alignment");
	}
	for (uint32_t h = 0; h < in->n_hosts; h++) {
		view->first_ns[h] = INT64_MAX;
		view->last_ns[h] = INT64_MIN;
	}
	for (size_t i = 0; i < in->n_members; i++) {
		view->members[i] = in->members[i];
		repair(view, &view->members[i]);
	}
	for (size_t i = 0; i < in->n_messages; i++) {
		view->messages[i] = in->messages[i];
		repair(view, &view->messages[i].send);
		repair(view, &view->messages[i].recv);
	}
	measure(view);
	view->exchanges = need_exchanges(in);
	/* A host that takes part in nothing has no time of its own to add to. */
	for (uint32_t h = 0; h < in->n_hosts; h++) {
		if (view->first_ns[h] > view->last_ns[h])
			view->first_ns[h] = view->last_ns[h] = 0;
	}
	return LAG_OK;
}

void lag_clock_view_release(struct lag_clock_view *view)
{
	free(view->members);
	free(view->messages);
	free(view->origin_ns);
	free(view->first_ns);
	free(view->last_ns);
	lag_vec_release(&view->breaks);
	lag_vec_release(&view->own);
	*view = (struct lag_clock_view){ 0 };
}
