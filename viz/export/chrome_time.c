/* SPDX-License-Identifier: Apache-2.0 */
/* What laggard adds to a rank: its steps, where its time was lost (the ledger), and the waiting inside
 * each communication kernel, on tracks of their own. */
#include <stdio.h>
#include <string.h>

#include "schema/base/decimal.h"
#include "viz/export/chrome.h"

static void write_steps(struct lag_chrome *c, uint32_t r)
{
	char name[48];

	for (size_t s = 0; s < c->steps->n_steps; s++) {
		const struct lag_step_span *span = lag_steps_span(c->steps, s, r);
		int64_t number = c->steps->steps[s].number;
		uint32_t tid;

		if (span->start_ns == LAG_NONE || span->end_ns == LAG_NONE || !c->chosen[s] ||
		    !lag_chrome_in_time(c, span->start_ns, span->end_ns))
			continue;
		(void)snprintf(name, sizeof(name), "step %lld", (long long)number);
		tid = lag_chrome_place(c, r, LAG_CT_STEPS, 0, span->start_ns, span->end_ns);
		if (lag_chrome_begin(c, "step", name, r, tid, span->start_ns, span->end_ns, 0))
			lag_chrome_end_event(c);
	}
}

/* Classes that the streams do not show by themselves. */
static bool is_lost(uint8_t class)
{
	return class == LAG_TIME_BUBBLE || class == LAG_TIME_EXPOSED_WAIT || class == LAG_TIME_HOST;
}

static void write_ledger(struct lag_chrome *c, uint32_t r)
{
	const struct lag_ledger *ledger = c->ledger;

	for (size_t i = ledger->first[r]; i < ledger->first[r + 1] && !lag_failed(c->status); i++) {
		const struct lag_time_slice *s = &ledger->slices[i];
		const struct lag_wait *w;
		uint32_t tid;

		if (!is_lost(s->class) || !lag_chrome_in_time(c, s->start_ns, s->end_ns) ||
		    !lag_chrome_in_steps(c, s->start_ns, s->end_ns))
			continue;
		tid = lag_chrome_place(c, r, LAG_CT_TIME, 0, s->start_ns, s->end_ns);
		if (!lag_chrome_begin(c, "lost_time",
				      lag_time_class_title((enum lag_time_class)s->class), r, tid,
				      s->start_ns, s->end_ns, 14))
			continue;
		w = s->launch >= 0 ? &c->waits->launch[s->launch] : NULL;
		if (w && w->last >= 0)
			lag_chrome_arg_int(c, "last rank", c->trace->ranks[w->last].rank);
		lag_chrome_end_event(c);
	}
}

static void write_wait(struct lag_chrome *c, size_t launch)
{
	const struct lag_launch *l = &c->trace->launches[launch];
	const struct lag_wait *w = &c->waits->launch[launch];
	int64_t end;
	char name[64] = "wait";
	uint32_t tid;

	if (l->start_ns == LAG_NONE || w->wait_ns == LAG_NONE || w->wait_ns <= 0)
		return;
	end = l->start_ns + w->wait_ns;
	if (!lag_chrome_in_time(c, l->start_ns, end) || !lag_chrome_in_steps(c, l->start_ns, end))
		return;
	if (w->last >= 0) {
		static const char before[] = "wait for rank ";

		memcpy(name, before, sizeof(before) - 1);
		*lag_decimal_put(name + sizeof(before) - 1, c->trace->ranks[w->last].rank) = '\0';
	}
	tid = lag_chrome_place(c, l->r, LAG_CT_WAITS, 0, l->start_ns, end);
	if (!lag_chrome_begin(c, "wait", name, l->r, tid, l->start_ns, end, 30))
		return;
	lag_chrome_arg_us(c, "clock error (us)", (int64_t)w->uncertainty_ns);
	if (w->lower_bound)
		lag_chrome_arg_text(c, "wait is", "at least: members are not on record");
	lag_chrome_end_event(c);
}

/* In the order of the rank's GPU events, which is that of time. */
static void write_waits(struct lag_chrome *c, uint32_t r)
{
	const struct lag_rank *rank = &c->trace->ranks[r];

	for (size_t i = rank->gpu_begin; i < rank->gpu_end && !lag_failed(c->status); i++) {
		int32_t launch = c->trace->gpu[i].launch;

		if (launch >= 0 && c->trace->launches[launch].gpu == (int32_t)i)
			write_wait(c, (size_t)launch);
	}
}

void lag_chrome_time(struct lag_chrome *c, uint32_t r)
{
	if (lag_chrome_wants(c, LAG_EXPORT_STEPS))
		write_steps(c, r);
	if (lag_chrome_wants(c, LAG_EXPORT_TIME))
		write_ledger(c, r);
	if (lag_chrome_wants(c, LAG_EXPORT_WAITS))
		write_waits(c, r);
}
