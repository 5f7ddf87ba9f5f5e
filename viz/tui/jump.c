/* SPDX-License-Identifier: Apache-2.0 */
/* Searches along the time axis. The waits decide what a late arrival is, the ledger what a bubble is. */
#include "viz/tui/jump.h"

#include <stdlib.h>

#include "schema/base/mem.h"
#include "viz/tui/inspect.h"
#include "viz/tui/text.h"

static int64_t step_share(const struct lag_scene *scene, int64_t per_mille_tenths)
{
	int64_t step = scene->facts.step_median_ns;

	return step == LAG_NONE ? 1000 : step / 10000 * per_mille_tenths;
}

static void go_late(struct lag_scene *scene, const struct lag_instance *instance, int32_t who,
		    int64_t ns)
{
	const struct lag_trace *trace = scene->data->trace;
	char number[LAG_NUM_MAX];

	scene->r = instance->last;
	lag_scene_set_time(scene, instance->last_start_ns);
	lag_axis_reveal(&scene->axis, scene->time_ns, &scene->limits);
	lag_scene_say(scene, "rank %lld came last: rank %lld waited %s (%s)",
		      (long long)trace->ranks[instance->last].rank,
		      (long long)trace->ranks[who].rank, lag_num_ns(number, ns),
		      lag_func_name(instance->func));
}

/* Within a pipeline somebody always comes last: waiting there is bubble, and `lag_jump_bubble` finds
 * it. Only where nothing else communicates are pipeline transfers looked at. */
static bool has_others(const struct lag_scene *scene)
{
	const struct lag_trace *trace = scene->data->trace;

	for (size_t i = 0; i < trace->n_instances; i++) {
		if (scene->data->roles->comm_role[trace->instances[i].comm] != LAG_ROLE_PIPELINE)
			return true;
	}
	return false;
}

bool lag_jump_late(struct lag_scene *scene, bool forward)
{
	const struct lag_trace *trace = scene->data->trace;
	const enum lag_comm_role *roles = scene->data->roles->comm_role;
	bool others = has_others(scene);
	int64_t least = step_share(scene, 20);
	size_t low = 0, high = trace->n_instances;

	/* The first instance that begins after the cursor (or, backwards, not before it). */
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int64_t at = trace->instances[mid].last_start_ns;

		if (forward ? at <= scene->time_ns : at < scene->time_ns) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	while (forward ? low < trace->n_instances : low > 0) {
		const struct lag_instance *instance = &trace->instances[forward ? low : low - 1];
		int32_t who = -1;
		bool wanted = instance->last >= 0 &&
			      !(others && roles[instance->comm] == LAG_ROLE_PIPELINE);
		int64_t ns = wanted ? lag_inspect_longest_wait(scene, instance, &who) : 0;

		if (who >= 0 && ns >= least) {
			go_late(scene, instance, who, ns);
			return true;
		}
		low = forward ? low + 1 : low - 1;
	}
	lag_scene_say(scene, "no %s late arrival that others waited for",
		      forward ? "later" : "earlier");
	return false;
}

bool lag_jump_bubble(struct lag_scene *scene, bool forward)
{
	const struct lag_lod *lod = lag_scene_lod(scene, (size_t)scene->r);
	int64_t least = step_share(scene, 10);
	char number[LAG_NUM_MAX];
	size_t at;

	if (!lod)
		return false;
	at = lag_lod_find(lod, scene->time_ns);
	while (forward ? at < lod->n : at > 0) {
		const struct lag_time_slice *slice = &lod->slices[forward ? at : at - 1];
		int64_t ns = slice->end_ns - slice->start_ns;
		bool past = forward ? slice->start_ns > scene->time_ns
				    : slice->start_ns < scene->time_ns;

		if (past && slice->class == LAG_TIME_BUBBLE && ns >= least) {
			lag_scene_set_time(scene, slice->start_ns);
			lag_axis_reveal(&scene->axis, scene->time_ns, &scene->limits);
			lag_scene_say(scene, "bubble of %s on rank %lld", lag_num_ns(number, ns),
				      (long long)scene->data->trace->ranks[scene->r].rank);
			return true;
		}
		at = forward ? at + 1 : at - 1;
	}
	lag_scene_say(scene, "no %s bubble on this rank", forward ? "later" : "earlier");
	return false;
}

/* First event of a rank after t with a wanted name; gpu_end if there is none. */
static size_t next_named(const struct lag_trace *trace, const bool *hit, size_t r, int64_t t)
{
	size_t i = lag_trace_find_gpu(trace, r, t);

	for (; i < trace->ranks[r].gpu_end; i++) {
		if (trace->gpu[i].start_ns > t && hit[trace->gpu[i].name])
			break;
	}
	return i;
}

bool lag_jump_name(struct lag_scene *scene)
{
	const struct lag_trace *trace = scene->data->trace;
	bool *hit = lag_calloc(trace->n_strings, sizeof(*hit));
	size_t best;

	if (!hit) {
		lag_scene_say(scene, "no memory to search");
		return false;
	}
	for (size_t i = 0; i < trace->n_strings; i++)
		hit[i] = lag_text_has(trace->strings[i], scene->find);
	best = next_named(trace, hit, (size_t)scene->r, scene->time_ns);
	if (best == trace->ranks[scene->r].gpu_end) {
		best = trace->n_gpu;
		for (size_t r = 0; r < trace->n_ranks; r++) {
			size_t i = next_named(trace, hit, r, scene->time_ns);

			if (i < trace->ranks[r].gpu_end &&
			    (best == trace->n_gpu ||
			     trace->gpu[i].start_ns < trace->gpu[best].start_ns))
				best = i;
		}
	}
	free(hit);
	if (best >= trace->n_gpu)
		return false;
	scene->r = (int32_t)trace->gpu[best].r;
	lag_scene_set_time(scene, trace->gpu[best].start_ns);
	lag_axis_reveal(&scene->axis, scene->time_ns, &scene->limits);
	return true;
}

bool lag_jump_worst_wait(struct lag_scene *scene, int32_t comm, int func)
{
	const struct lag_trace *trace = scene->data->trace;
	const struct lag_instance *worst = NULL;
	int32_t worst_who = -1;
	int64_t most = 0;

	for (size_t i = 0; i < trace->n_instances; i++) {
		const struct lag_instance *instance = &trace->instances[i];
		int32_t who = -1;
		int64_t ns;

		if ((comm >= 0 && instance->comm != (uint32_t)comm) ||
		    (func >= 0 && instance->func != func) || instance->last < 0)
			continue;
		ns = lag_inspect_longest_wait(scene, instance, &who);
		if (who >= 0 && ns > most) {
			most = ns;
			worst = instance;
			worst_who = who;
		}
	}
	if (!worst)
		return false;
	lag_scene_set_time(scene, worst->last_start_ns);
	lag_scene_show_step(scene);
	go_late(scene, worst, worst_who, most);
	return true;
}
