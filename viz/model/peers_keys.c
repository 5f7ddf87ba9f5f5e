/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels are the same, and which of them can be compared. */
#include <stdlib.h>

#include "schema/base/map.h"
#include "viz/model/interval.h"
#include "viz/model/peers_internal.h"

/* Communication of a rank that really moves data or takes multiprocessors beside compute: all but the
 * pipeline's own, which mostly spins on a few. */
static enum lag_status other_communication(const struct lag_peers_keys *w, size_t r,
					   struct lag_intervals *set)
{
	const struct lag_rank *rank = &w->trace->ranks[r];

	for (size_t i = rank->gpu_begin; i < rank->gpu_end; i++) {
		const struct lag_gpu_event *g = &w->trace->gpu[i];
		enum lag_status status;

		if (g->class != LAG_CLASS_COMM || g->end_ns == LAG_NONE)
			continue;
		if (g->launch >= 0 &&
		    w->roles->comm_role[w->trace->launches[g->launch].comm] == LAG_ROLE_PIPELINE)
			continue;
		status = lag_intervals_add(set, g->start_ns, g->end_ns);
		if (lag_failed(status))
			return status;
	}
	lag_intervals_normalize(set);
	return LAG_OK;
}

/* Numbers the kernels: equal name and launch configuration. */
static enum lag_status find_keys(struct lag_peers_keys *w)
{
	struct lag_map keys = { 0 };
	enum lag_status status = LAG_OK;

	for (size_t i = 0; i < w->trace->n_gpu && !lag_failed(status); i++) {
		const struct lag_gpu_event *g = &w->trace->gpu[i];
		uint64_t id, key;

		w->peers->key[i] = -1;
		if (g->class != LAG_CLASS_COMPUTE || g->end_ns == LAG_NONE ||
		    w->steps->of_gpu[i] < 0)
			continue;
		key = lag_hash_pair(g->full, (uint64_t)((int64_t)g->config + 1));
		if (!lag_map_find(&keys, key, &id)) {
			id = w->peers->n_keys++;
			status = lag_map_set(&keys, key, id);
		}
		w->peers->key[i] = (int32_t)id;
	}
	lag_map_release(&keys);
	return status;
}

/* The n-th kernel of a name in a step, over all ranks and steps. */
struct place {
	uint32_t n, n_beside;
};

/* Which turn of its name a kernel has in its step; events of one rank come in order of time. */
struct turns {
	uint32_t *next;
	int32_t *step;
};

static uint64_t place_key(struct turns *t, int32_t key, int32_t step)
{
	if (t->step[key] != step) {
		t->step[key] = step;
		t->next[key] = 0;
	}
	return ((uint64_t)(uint32_t)key << 32) | t->next[key]++;
}

static void restart(struct turns *t, size_t n_keys)
{
	for (size_t k = 0; k < n_keys; k++)
		t->step[k] = -1;
}

static enum lag_status count_places(struct lag_peers_keys *w, struct turns *t,
				    struct lag_map *index, struct lag_vec *places)
{
	enum lag_status status = LAG_OK;

	for (size_t r = 0; r < w->trace->n_ranks && !lag_failed(status); r++) {
		const struct lag_rank *rank = &w->trace->ranks[r];
		struct lag_intervals comm = { 0 };

		restart(t, w->peers->n_keys);
		status = other_communication(w, r, &comm);
		for (size_t i = rank->gpu_begin; i < rank->gpu_end && !lag_failed(status); i++) {
			const struct lag_gpu_event *g = &w->trace->gpu[i];
			uint64_t at, key;
			struct place *place;

			if (w->peers->key[i] < 0)
				continue;
			key = place_key(t, w->peers->key[i], w->steps->of_gpu[i]);
			if (!lag_map_find(index, key, &at)) {
				at = places->n;
				status = lag_vec_push(places) ? lag_map_set(index, key, at)
							      : LAG_ERR_SYSTEM;
				if (lag_failed(status))
					break;
			}
			place = &LAG_VEC_AT(places, struct place, at);
			place->n++;
			place->n_beside +=
				2 * lag_intervals_length_in(&comm, g->start_ns, g->end_ns) >
				g->end_ns - g->start_ns;
		}
		lag_intervals_release(&comm);
	}
	return status;
}

/* Leaves out kernels that run beside communication. The same places are left out on all ranks: kernels of
 * one name may take unequal times, and their mix must stay the same. A name that would have nothing
 * left is compared as it is. */
static enum lag_status leave_out(struct lag_peers_keys *w)
{
	size_t n_keys = w->peers->n_keys;
	struct turns t = { lag_calloc(n_keys, sizeof(*t.next)),
			   lag_calloc(n_keys, sizeof(*t.step)) };
	uint32_t *kept = lag_calloc(n_keys, sizeof(*kept));
	struct lag_vec places = LAG_VEC_INIT(struct place);
	struct lag_map index = { 0 };
	enum lag_status status = t.next && t.step && kept ? LAG_OK : LAG_ERR_SYSTEM;

	if (!lag_failed(status))
		status = count_places(w, &t, &index, &places);
	for (size_t r = 0; r < w->trace->n_ranks && !lag_failed(status); r++) {
		const struct lag_rank *rank = &w->trace->ranks[r];

		restart(&t, n_keys);
		for (size_t i = rank->gpu_begin; i < rank->gpu_end; i++) {
			const struct place *place;
			uint64_t at = 0;

			if (w->peers->key[i] < 0)
				continue;
			(void)lag_map_find(
				&index, place_key(&t, w->peers->key[i], w->steps->of_gpu[i]), &at);
			place = &LAG_VEC_AT(&places, struct place, at);
			w->left_out[i] = 4 * place->n_beside > place->n;
			kept[w->peers->key[i]] += !w->left_out[i];
		}
	}
	for (size_t i = 0; i < w->trace->n_gpu && !lag_failed(status); i++) {
		if (w->peers->key[i] >= 0 && kept[w->peers->key[i]] == 0)
			w->left_out[i] = 0;
	}
	free(t.next);
	free(t.step);
	free(kept);
	lag_vec_release(&places);
	lag_map_release(&index);
	return status;
}

enum lag_status lag_peers_find_keys(struct lag_peers_keys *w)
{
	enum lag_status status = find_keys(w);

	return lag_failed(status) ? status : leave_out(w);
}
