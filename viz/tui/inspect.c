/* SPDX-License-Identifier: Apache-2.0 */
/* Event, operation, who came last, who waited: one place in time told in two lines. */
#include "viz/tui/inspect.h"

#include <stdio.h>
#include <string.h>

#include "viz/model/comm_text.h"
#include "viz/tui/text.h"

static void set_event(const struct lag_scene *scene, struct lag_spot *out, size_t gpu)
{
	const struct lag_gpu_event *event = &scene->data->trace->gpu[gpu];

	out->gpu = (int64_t)gpu;
	out->launch = event->launch;
	out->t0 = event->start_ns;
	out->t1 = event->end_ns == LAG_NONE ? scene->limits.t1 : event->end_ns;
}

#define ANY_CLASS (-2) /* there is no ledger to say which */

static bool wanted(const struct lag_gpu_event *event, int32_t lane, int class)
{
	if (lane >= 0)
		return event->lane == (uint32_t)lane;
	if (class == ANY_CLASS)
		return true;
	switch (class) {
	case LAG_TIME_COMPUTE:
		return event->class == LAG_CLASS_COMPUTE;
	case LAG_TIME_COPY:
		return event->class == LAG_CLASS_COPY;
	default:
		return event->class == LAG_CLASS_COMM;
	}
}

void lag_inspect_at(struct lag_scene *scene, int32_t r, int32_t lane, int64_t t,
		    struct lag_spot *out)
{
	const struct lag_trace *trace = scene->data->trace;
	const struct lag_lod *lod = lag_scene_lod(scene, (size_t)r);
	int32_t launch = -1;
	size_t at;

	*out = (struct lag_spot){ .gpu = -1, .launch = -1, .class = -1, .t0 = t, .t1 = t };
	at = lod ? lag_lod_find(lod, t) : 0;
	if (lod && at < lod->n && lod->slices[at].start_ns <= t) {
		out->class = lod->slices[at].class;
		out->t0 = lod->slices[at].start_ns;
		out->t1 = lod->slices[at].end_ns;
		launch = lod->slices[at].launch;
	}
	if (lane < 0 && launch >= 0 && (size_t)launch < trace->n_launches &&
	    out->class != LAG_TIME_COMPUTE && out->class != LAG_TIME_COPY) {
		out->launch = launch;
		if (trace->launches[launch].gpu >= 0)
			set_event(scene, out, (size_t)trace->launches[launch].gpu);
		return;
	}
	for (size_t i = lag_trace_find_gpu(trace, (size_t)r, t);
	     i < trace->ranks[r].gpu_end && trace->gpu[i].start_ns <= t; i++) {
		const struct lag_gpu_event *event = &trace->gpu[i];

		if ((event->end_ns == LAG_NONE || event->end_ns > t) &&
		    wanted(event, lane, scene->data->detail ? ANY_CLASS : out->class))
			set_event(scene, out, i);
	}
}

/* Job rank number of a communicator's member, LAG_NONE unknown. */
static int64_t member_rank(const struct lag_trace *trace, uint32_t comm, int32_t member)
{
	const struct lag_comm *c = &trace->comms[comm];

	if (!trace->members || member < 0 || (uint32_t)member >= c->n_members)
		return LAG_NONE;
	int32_t r = trace->members[c->first_member + (uint32_t)member].r;
	return r < 0 ? LAG_NONE : trace->ranks[r].rank;
}

/* "recv ← rank 7"; the peer only where it is known. */
static int put_func(const struct lag_trace *trace, const struct lag_op *op, char *out, size_t size)
{
	const struct lag_instance *instance =
		op->instance >= 0 ? &trace->instances[op->instance] : NULL;
	int64_t peer = member_rank(trace, op->comm, op->peer);

	if (peer == LAG_NONE && instance && instance->src >= 0 && instance->dst >= 0) {
		peer = trace->ranks[instance->src == (int32_t)op->r ? instance->dst : instance->src]
			       .rank;
	}
	if (peer == LAG_NONE || (op->func != LAG_FUNC_SEND && op->func != LAG_FUNC_RECV))
		return snprintf(out, size, "%s", lag_func_name(op->func));
	return snprintf(out, size, "%s %s rank %lld", lag_func_name(op->func),
			op->func == LAG_FUNC_RECV ? "←" : "→", (long long)peer);
}

/* "multi_tensor_apply_kernel" of "at::native::multi_tensor_apply_kernel". */
static const char *last_name(const char *name)
{
	const char *at = name;

	while ((at = strstr(at, "::"))) {
		at += 2;
		name = at;
	}
	return name;
}

void lag_inspect_brief(const struct lag_trace *trace, size_t gpu, char out[LAG_INSPECT_MAX])
{
	const struct lag_gpu_event *event = &trace->gpu[gpu];
	const struct lag_launch *launch =
		event->launch >= 0 ? &trace->launches[event->launch] : NULL;

	if (launch && launch->n_ops > 0) {
		put_func(trace, &trace->ops[launch->first_op], out, LAG_INSPECT_MAX);
	} else {
		snprintf(out, LAG_INSPECT_MAX, "%s", last_name(lag_trace_text(trace, event->name)));
	}
}

static int put_op(const struct lag_scene *scene, int32_t launch, char *out, size_t size)
{
	const struct lag_trace *trace = scene->data->trace;
	const struct lag_launch *item = &trace->launches[launch];
	const struct lag_op *op = &trace->ops[item->first_op];
	char number[LAG_NUM_MAX], text[96] = "";
	struct lag_buf comm = { 0 };
	int n = put_func(trace, op, text, sizeof(text));

	if (item->n_ops > 1 && n > 0 && (size_t)n < sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, " +%u more", item->n_ops - 1);
	lag_comm_label(trace, op->comm, &comm);
	/* Of an identity the first digits tell it apart, as in git. */
	if (!trace->comms[op->comm].name[0] && comm.n > 8)
		comm.text[comm.n = 8] = '\0';
	n = snprintf(out, size, "%s, %s, %s %s seq %lld", text,
		     lag_num_bytes(number, op->bytes > 0 ? op->bytes : 0),
		     lag_comm_role_name(scene->data->roles->comm_role[op->comm]),
		     lag_buf_text(&comm), (long long)op->seq);
	lag_buf_release(&comm);
	return n;
}

void lag_inspect_what(const struct lag_scene *scene, int32_t r, const struct lag_spot *spot,
		      char out[LAG_INSPECT_MAX])
{
	const struct lag_trace *trace = scene->data->trace;
	const char *title = spot->class >= 0
				    ? lag_time_class_title((enum lag_time_class)spot->class)
				    : "nothing recorded";
	const struct lag_gpu_event *event = spot->gpu >= 0 ? &trace->gpu[spot->gpu] : NULL;
	int n;

	if (spot->launch >= 0 && (size_t)spot->launch < trace->n_launches) {
		n = put_op(scene, spot->launch, out, LAG_INSPECT_MAX);
	} else if (event) {
		n = snprintf(out, LAG_INSPECT_MAX, "%s", lag_trace_text(trace, event->name));
	} else {
		snprintf(out, LAG_INSPECT_MAX, "%s on rank %lld", title,
			 (long long)trace->ranks[r].rank);
		return;
	}
	if (n < 0 || n >= LAG_INSPECT_MAX - 1)
		return;
	if (event && event->lane < trace->n_lanes) {
		snprintf(out + n, LAG_INSPECT_MAX - (size_t)n, " · rank %lld stream %lld",
			 (long long)trace->ranks[r].rank,
			 (long long)trace->lanes[event->lane].stream);
	}
}

int64_t lag_inspect_longest_wait(const struct lag_scene *scene, const struct lag_instance *instance,
				 int32_t *who)
{
	const struct lag_trace *trace = scene->data->trace;
	int64_t longest = 0;

	for (uint32_t i = 0; i < instance->n; i++) {
		const struct lag_op *op = &trace->ops[trace->instance_ops[instance->first + i]];
		const struct lag_wait *wait;

		if (op->launch < 0 || (size_t)op->launch >= scene->data->waits->n)
			continue;
		wait = &scene->data->waits->launch[op->launch];
		if (wait->wait_ns != LAG_NONE && wait->wait_ns > longest &&
		    wait->wait_ns > (int64_t)wait->uncertainty_ns) {
			longest = wait->wait_ns;
			*who = (int32_t)op->r;
		}
	}
	return longest;
}

/* Who waited for this one, when it waited for nobody itself. */
static int put_last(const struct lag_scene *scene, const struct lag_op *op, char *out)
{
	const struct lag_trace *trace = scene->data->trace;
	const struct lag_instance *instance =
		op->instance >= 0 ? &trace->instances[op->instance] : NULL;
	char number[LAG_NUM_MAX];
	int32_t who = -1;
	int64_t ns = instance ? lag_inspect_longest_wait(scene, instance, &who) : 0;

	if (who < 0 || instance->last != (int32_t)op->r)
		return snprintf(out, LAG_INSPECT_MAX, "waited for nobody");
	return snprintf(out, LAG_INSPECT_MAX, "came last: rank %lld waited %s for it",
			(long long)trace->ranks[who].rank, lag_num_ns(number, ns));
}

static int put_waited(const struct lag_scene *scene, const struct lag_wait *wait,
		      const struct lag_op *op, char *out)
{
	const struct lag_trace *trace = scene->data->trace;
	char number[LAG_NUM_MAX];

	if (wait->wait_ns == LAG_NONE && wait->lower_bound) {
		return snprintf(out, LAG_INSPECT_MAX,
				"not all members are on record: who was last is not known");
	}
	if (wait->wait_ns == LAG_NONE) {
		return snprintf(out, LAG_INSPECT_MAX,
				"arrivals differ by less than the clock error (±%s)",
				lag_num_error(number, wait->uncertainty_ns));
	}
	if (wait->wait_ns == 0)
		return put_last(scene, op, out);
	if (wait->last < 0) {
		return snprintf(out, LAG_INSPECT_MAX, "waited %s%s", wait->lower_bound ? "≥ " : "",
				lag_num_ns(number, wait->wait_ns));
	}
	return snprintf(out, LAG_INSPECT_MAX, "waited %s%s for rank %lld",
			wait->lower_bound ? "≥ " : "", lag_num_ns(number, wait->wait_ns),
			(long long)trace->ranks[wait->last].rank);
}

void lag_inspect_why(const struct lag_scene *scene, const struct lag_spot *spot,
		     char out[LAG_INSPECT_MAX])
{
	const struct lag_trace *trace = scene->data->trace;
	const struct lag_gpu_event *event = spot->gpu >= 0 ? &trace->gpu[spot->gpu] : NULL;
	char number[LAG_NUM_MAX];
	int n;

	out[0] = '\0';
	if (spot->launch >= 0 && (size_t)spot->launch < scene->data->waits->n) {
		const struct lag_wait *wait = &scene->data->waits->launch[spot->launch];
		const struct lag_op *op = &trace->ops[trace->launches[spot->launch].first_op];

		n = put_waited(scene, wait, op, out);
		if (n < 0 || n >= LAG_INSPECT_MAX - 1 || wait->transfer_ns == LAG_NONE)
			return;
		n += snprintf(out + n, LAG_INSPECT_MAX - (size_t)n, " · transfer %s",
			      lag_num_ns(number, wait->transfer_ns));
		/* What a rate means for a collective depends on its algorithm. */
		if (wait->transfer_ns > 0 && op->bytes > 0 && n < LAG_INSPECT_MAX &&
		    (op->func == LAG_FUNC_SEND || op->func == LAG_FUNC_RECV)) {
			snprintf(out + n, LAG_INSPECT_MAX - (size_t)n, " (%.1f GB/s)",
				 (double)op->bytes / (double)wait->transfer_ns);
		}
		return;
	}
	if (event && event->kind != LAG_GPU_KERNEL && event->bytes > 0) {
		snprintf(out, LAG_INSPECT_MAX, "%s", lag_num_bytes(number, event->bytes));
	} else if (event && event->launch_end_ns != LAG_NONE &&
		   event->start_ns >= event->launch_end_ns) {
		snprintf(out, LAG_INSPECT_MAX, "launched %s before it began",
			 lag_num_ns(number, event->start_ns - event->launch_end_ns));
	}
}

int64_t lag_inspect_origin(const struct lag_scene *scene, int64_t t)
{
	int32_t step = lag_scene_step_at(scene, t);

	return step < 0 ? scene->limits.t0 : scene->data->steps->steps[step].start_ns;
}
