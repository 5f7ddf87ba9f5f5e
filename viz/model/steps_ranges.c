/* SPDX-License-Identifier: Apache-2.0 */
/* Steps from annotations: "ProfilerStep#12", "step 12", "iteration_3", or the name the user gave. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "viz/model/steps_internal.h"

/* Known beginnings, tried in this order over the whole trace: the first that occurs is used, so that
 * nested annotations of two kinds are not mixed. */
static const char *const beginnings[] = { "ProfilerStep#", "step", "train_step", "training_step",
					  "iteration",     "iter", "train_iter", "global_step" };

/* The number behind `name`'s beginning, after at most one separator; -1 when there is none. */
static int64_t number_after(const char *text)
{
	char *end;
	long long v;

	if (*text == ' ' || *text == '_' || *text == '#' || *text == ':' || *text == '=' ||
	    *text == '-')
		text++;
	if (!isdigit((unsigned char)*text))
		return -1;
	v = strtoll(text, &end, 10);
	return *end ? -1 : v;
}

static bool is_host_range(const struct lag_range *range)
{
	return range->kind == LAG_RANGE_PUSH || range->kind == LAG_RANGE_START ||
	       range->kind == LAG_RANGE_CPU_OP;
}

/* -2: not such a range; -1: it is one, without a number. */
static int64_t match(const char *name, const char *beginning, bool given)
{
	size_t n = strlen(beginning);
	int64_t number;

	if (given ? strncmp(name, beginning, n) != 0 : strncasecmp(name, beginning, n) != 0)
		return -2;
	number = number_after(name + n);
	if (number >= 0)
		return number;
	return given && (name[n] == '\0' || !isalnum((unsigned char)name[n])) ? -1 : -2;
}

static enum lag_status collect(const struct lag_trace *trace, const char *beginning, bool given,
			       struct lag_vec *marks)
{
	for (size_t r = 0; r < trace->n_ranks; r++) {
		const struct lag_rank *rank = &trace->ranks[r];
		int64_t counter = 0, last_end = INT64_MIN;

		for (size_t i = rank->range_begin; i < rank->range_end; i++) {
			const struct lag_range *range = &trace->ranges[i];
			int64_t number;
			struct lag_step_mark *mark;

			if (!is_host_range(range) || range->end_ns == LAG_NONE ||
			    range->end_ns <= last_end)
				continue;
			number = match(lag_trace_text(trace, range->name), beginning, given);
			if (number == -2)
				continue;
			/* One that begins before the last has ended (a loop that fetches ahead) ends it:
			 * work belongs to one step. */
			if (range->start_ns < last_end) {
				LAG_VEC_AT(marks, struct lag_step_mark, marks->n - 1).until_ns =
					range->start_ns;
			}
			mark = lag_vec_push(marks);
			if (!mark)
				return LAG_ERR_SYSTEM;
			*mark = (struct lag_step_mark){ number >= 0 ? number : counter,
							range->start_ns, range->end_ns,
							(uint32_t)r };
			counter++;
			last_end = range->end_ns;
		}
	}
	return LAG_OK;
}

enum lag_status lag_steps_from_ranges(const struct lag_trace *trace, const char *step_by,
				      struct lag_vec *marks, char *label, size_t room)
{
	size_t n = step_by ? 1 : sizeof(beginnings) / sizeof(beginnings[0]);

	for (size_t i = 0; i < n && marks->n == 0; i++) {
		const char *beginning = step_by ? step_by : beginnings[i];

		if (lag_failed(collect(trace, beginning, step_by != NULL, marks)))
			return LAG_ERR_SYSTEM;
		if (marks->n)
			(void)snprintf(label, room, "annotations \"%.100s\"", beginning);
	}
	return LAG_OK;
}
