/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges that come as two events, begin and end. An end closes the last open begin of its thread, and
 * the two become one complete event. */
#include "merge/kineto.h"

/* Ranges nest, and few deep: more open ones than this are damage. */
#define OPEN_MAX 4096

/* Makes the event the complete one that was begun as `open`. */
static void complete(struct lag_kineto *k, const struct lag_kineto_open *open, int64_t dur_ns)
{
	struct lag_kineto_event *e = &k->scan.event;
	const char *name = lag_strtab_get(&k->pool->strings, open->name);

	e->phase = 'X';
	e->cat = open->cat;
	e->ts_ns = open->ts_ns;
	e->dur_ns = dur_ns;
	e->pid = open->pid;
	e->tid = open->tid;
	e->text[LAG_KT_NAME] = (struct lag_span){ name, strlen(name) };
}

static enum lag_status begin_range(struct lag_kineto *k, struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->scan.event;
	struct lag_kineto_open *open;
	uint32_t name = 0;
	enum lag_status st = lag_kineto_string(k, e->text[LAG_KT_NAME], &name, err);

	if (lag_failed(st))
		return st;
	k->p->open.max = OPEN_MAX;
	open = lag_vec_push(&k->p->open);
	if (!open) {
		k->p->part.n_bad++;
		return LAG_OK;
	}
	*open = (struct lag_kineto_open){ e->pid, e->tid, e->ts_ns, e->cat, name };
	return LAG_OK;
}

static enum lag_status end_range(struct lag_kineto *k, struct lag_err *err)
{
	const struct lag_kineto_event *e = &k->scan.event;
	struct lag_vec *all = &k->p->open;

	for (size_t i = all->n; i-- > 0;) {
		struct lag_kineto_open open = LAG_VEC_AT(all, struct lag_kineto_open, i);

		if (open.tid != e->tid || open.pid != e->pid)
			continue;
		for (size_t j = i + 1; j < all->n; j++) {
			LAG_VEC_AT(all, struct lag_kineto_open, j - 1) =
				LAG_VEC_AT(all, struct lag_kineto_open, j);
		}
		all->n--;
		complete(k, &open, e->ts_ns - open.ts_ns);
		return lag_kineto_emit_complete(k, err);
	}
	k->p->part.n_unknown++; /* begun before the trace was */
	return LAG_OK;
}

enum lag_status lag_kineto_emit_half(struct lag_kineto *k, struct lag_err *err)
{
	return k->scan.event.phase == 'B' ? begin_range(k, err) : end_range(k, err);
}

enum lag_status lag_kineto_add_open(struct lag_kineto *k, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < k->p->open.n && !lag_failed(st); i++) {
		lag_kineto_event_reset(&k->scan);
		complete(k, &LAG_VEC_AT(&k->p->open, struct lag_kineto_open, i), LAG_NONE);
		st = lag_kineto_emit_complete(k, err);
	}
	return st;
}
