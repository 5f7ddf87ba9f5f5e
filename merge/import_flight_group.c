/* SPDX-License-Identifier: Apache-2.0 */
/* Process groups of a Flight Recorder dump: pg_config names them and their ranks, pg_status tells how far
 * each had come, under the process's own number; entries name both. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/flight.h"
#include "merge/kineto.h"
#include "schema/base/buf.h"
#include "schema/base/fmt.h"
#include "schema/base/parse.h"

#define RANKS_MAX  (INT64_C(1) << 20)
#define LIST_MARKS "[](), \t\n"

/* The number that text begins with, stepped over; -1 where it begins with none. */
static int64_t read_number(const char **text)
{
	const char *start = *text;
	char *end;
	int64_t v = strtoll(start, &end, 10);

	*text = end;
	return end == start ? -1 : v;
}

/* A list of ranks, as list or as text, to members and to the text that other sources use, too. One that
 * cannot be a rank would give its successors its place: then nobody's place is known. */
static enum lag_status read_ranks(struct lag_flight *f, struct lag_flight_group *group,
				  const struct lag_datum *ranks, struct lag_err *err)
{
	const char *text = lag_datum_text(ranks);
	struct lag_buf out = { 0 };
	enum lag_status st = LAG_OK;
	size_t n = lag_datum_count(ranks);

	/* Long lists may be cut short with "...". */
	if (strstr(text, ".."))
		return LAG_OK;
	for (size_t i = 0; i < n || *text;) {
		int64_t rank, *slot;

		if (n) {
			rank = lag_datum_int(ranks->items[i++]);
		} else if (strchr(LIST_MARKS, *text)) {
			text++;
			continue;
		} else {
			rank = read_number(&text);
		}
		if (rank < 0 || rank >= RANKS_MAX || !lag_flight_spend(f, 1)) {
			group->members.n = 0;
			f->n_bad_groups++;
			break;
		}
		slot = lag_vec_push(&group->members);
		if (!slot) {
			lag_buf_release(&out);
			return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more members");
		}
		*slot = rank;
		lag_buf_printf(&out, "%s%lld", out.n ? ", " : "[", (long long)rank);
	}
	if (group->members.n) {
		lag_buf_puts(&out, "]");
		st = out.failed ? lag_err_set(err, LAG_ERR_SYSTEM, "out of memory")
				: lag_flight_string(f, out.text, out.n, &group->ranks, err);
	}
	lag_buf_release(&out);
	return st;
}

static uint64_t key_of(const char *name)
{
	return lag_hash_bytes(name, strlen(name));
}

static enum lag_status add_group(struct lag_flight *f, const char *name, const char *description,
				 const struct lag_datum *ranks, struct lag_err *err)
{
	struct lag_flight_group *group = lag_vec_push(&f->groups);
	enum lag_status st;

	if (!group || lag_failed(lag_map_set(&f->of_name, key_of(name), f->groups.n - 1)))
		return lag_err_set(err, LAG_ERR_LIMIT, "too many process groups");
	*group = (struct lag_flight_group){ .pg_id = LAG_NONE, .members = LAG_VEC_INIT(int64_t) };
	group->members.max = (size_t)RANKS_MAX;
	if (!lag_parse_i64(name, &group->number))
		group->number = LAG_NONE;
	st = lag_flight_string(f, name, strlen(name), &group->name, err);
	if (!lag_failed(st)) {
		st = lag_flight_string(f, description, strlen(description), &group->description,
				       err);
	}
	if (!lag_failed(st) && ranks)
		st = read_ranks(f, group, ranks, err);
	return st;
}

enum lag_status lag_flight_read_groups(struct lag_flight *f, struct lag_err *err)
{
	const struct lag_datum *config = lag_datum_get(f->root, "pg_config");
	enum lag_status st = LAG_OK;

	for (uint32_t i = 0; config && config->kind == LAG_DATUM_DICT && i + 1 < config->n;
	     i += 2) {
		const struct lag_datum *name = config->items[i], *at = config->items[i + 1];
		uint64_t known;

		if (!lag_datum_is_text(name) || !lag_flight_spend(f, 8) ||
		    lag_map_find(&f->of_name, key_of(name->text), &known))
			continue;
		st = add_group(f, name->text, lag_datum_text(lag_datum_get(at, "desc")),
			       lag_datum_get(at, "ranks"), err);
		if (lag_failed(st))
			return st;
	}
	return st;
}

enum lag_status lag_flight_group_of(struct lag_flight *f, const struct lag_datum *entry,
				    size_t *group, struct lag_err *err)
{
	const struct lag_datum *names = lag_datum_get(entry, "process_group");
	int64_t pg_id = lag_datum_int(lag_datum_get(entry, "pg_id"));
	const char *name = lag_datum_count(names) ? lag_datum_text(names->items[0]) : "";
	const char *text = lag_datum_count(names) > 1 ? lag_datum_text(names->items[1]) : "";
	enum lag_status st = LAG_OK;
	char number[32];
	uint64_t at = 0;

	if (!lag_datum_count(names)) {
		if (pg_id == LAG_NONE)
			return LAG_END;
		/* Early dumps give the number alone. */
		(void)snprintf(number, sizeof(number), "%lld", (long long)pg_id);
		name = number;
	}
	if (!lag_map_find(&f->of_name, key_of(name), &at)) {
		at = f->groups.n;
		st = add_group(f, name, text, NULL, err);
	}
	*group = (size_t)at;
	if (lag_failed(st) || pg_id == LAG_NONE)
		return st;
	if (lag_map_find(&f->of_pg_id, (uint64_t)pg_id, &at))
		f->n_contradictions += at != *group;
	LAG_FLIGHT_GROUP(f, *group)->pg_id = pg_id;
	return lag_failed(lag_map_set(&f->of_pg_id, (uint64_t)pg_id, *group))
		       ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more process groups")
		       : LAG_OK;
}

static bool has_member(const struct lag_flight_group *group, int64_t rank)
{
	for (size_t i = 0; i < group->members.n; i++) {
		if (LAG_VEC_AT(&group->members, int64_t, i) == rank)
			return true;
	}
	return false;
}

/* The one rank that is in every group, if there is just one. */
static int64_t common_member(struct lag_flight *f)
{
	const struct lag_flight_group *least = NULL;
	int64_t common = LAG_NONE;

	for (size_t i = 0; i < f->groups.n; i++) {
		const struct lag_flight_group *group = LAG_FLIGHT_GROUP(f, i);

		if (group->members.n && (!least || group->members.n < least->members.n))
			least = group;
	}
	for (size_t i = 0; least && i < least->members.n; i++) {
		int64_t rank = LAG_VEC_AT(&least->members, int64_t, i);
		bool everywhere = true;

		for (size_t k = 0; k < f->groups.n && everywhere; k++) {
			const struct lag_flight_group *group = LAG_FLIGHT_GROUP(f, k);

			everywhere = !group->members.n || has_member(group, rank);
			if (!lag_flight_spend(f, group->members.n))
				return LAG_NONE;
		}
		if (everywhere && common != LAG_NONE)
			return LAG_NONE;
		common = everywhere ? rank : common;
	}
	return common;
}

/* A send or receive says which member of its group the process is. */
static int64_t member_of_messages(struct lag_flight *f)
{
	const struct lag_datum *entries = lag_datum_get(f->root, "entries");
	int64_t rank = LAG_NONE;

	for (size_t i = 0; i < lag_datum_count(entries); i++) {
		const struct lag_datum *names = lag_datum_get(entries->items[i], "process_group");
		const char *what =
			lag_datum_text(lag_datum_get(entries->items[i], "profiling_name"));
		const struct lag_vec *members;
		int64_t own, peer, here;
		uint64_t at;

		if (!lag_flight_spend(f, 64))
			return LAG_NONE;
		if (!lag_flight_message(what, &own, &peer) || !lag_datum_count(names) ||
		    !lag_map_find(&f->of_name, key_of(lag_datum_text(names->items[0])), &at))
			continue;
		members = &LAG_FLIGHT_GROUP(f, at)->members;
		if (own < 0 || (uint64_t)own >= members->n)
			continue;
		here = LAG_VEC_AT(members, int64_t, own);
		if (rank != LAG_NONE && rank != here)
			return LAG_NONE;
		rank = here;
	}
	return rank;
}

int64_t lag_flight_own_rank(struct lag_flight *f)
{
	int64_t rank = common_member(f);

	return rank != LAG_NONE ? rank : member_of_messages(f);
}

struct numbered {
	int64_t number;
	size_t group;
};

static int by_number(const void *a, const void *b)
{
	int64_t x = ((const struct numbered *)a)->number, y = ((const struct numbered *)b)->number;

	return x < y ? -1 : x > y;
}

/* Names and pg_ids both count up as groups are made. Where there are as many of the one as of the
 * other, the k-th is the k-th, provided that no entry says otherwise. */
static enum lag_status map_by_order(struct lag_flight *f, const struct lag_datum *status,
				    struct lag_err *err)
{
	struct lag_vec names = LAG_VEC_INIT(struct numbered), ids = LAG_VEC_INIT(struct numbered);
	bool good = status && status->kind == LAG_DATUM_DICT && status->n / 2 == f->groups.n &&
		    f->groups.n > 0;
	enum lag_status st = LAG_OK;

	for (size_t i = 0; good && i < f->groups.n; i++) {
		struct numbered *name = lag_vec_push(&names), *id = lag_vec_push(&ids);

		if (!name || !id) {
			st = lag_err_set(err, LAG_ERR_SYSTEM, "no memory for process groups");
			break;
		}
		*name = (struct numbered){ LAG_FLIGHT_GROUP(f, i)->number, i };
		*id = (struct numbered){ lag_datum_int(status->items[2 * i]), 0 };
		good = name->number != LAG_NONE && id->number != LAG_NONE;
	}
	if (good && !lag_failed(st)) {
		qsort(names.items, names.n, names.item_size, by_number);
		qsort(ids.items, ids.n, ids.item_size, by_number);
	}
	for (size_t i = 0; good && i < names.n; i++) {
		int64_t told =
			LAG_FLIGHT_GROUP(f, LAG_VEC_AT(&names, struct numbered, i).group)->pg_id;

		good = told == LAG_NONE || told == LAG_VEC_AT(&ids, struct numbered, i).number;
	}
	for (size_t i = 0; good && !lag_failed(st) && i < names.n; i++) {
		LAG_FLIGHT_GROUP(f, LAG_VEC_AT(&names, struct numbered, i).group)->pg_id =
			LAG_VEC_AT(&ids, struct numbered, i).number;
	}
	lag_vec_release(&names);
	lag_vec_release(&ids);
	return st;
}

/* Counts start at -1, "none yet". */
static int64_t count_at(const struct lag_datum *status, const char *key)
{
	int64_t v = lag_datum_int(lag_datum_get(status, key));

	return v < 0 ? LAG_NONE : v;
}

static enum lag_status emit_progress(struct lag_flight *f, const struct lag_datum *status,
				     struct lag_err *err)
{
	struct lag_map of_id = { 0 };
	enum lag_status st = LAG_OK;
	uint64_t at;

	for (size_t i = 0; i < f->groups.n && st == LAG_OK; i++) {
		if (LAG_FLIGHT_GROUP(f, i)->pg_id != LAG_NONE)
			st = lag_map_set(&of_id, (uint64_t)LAG_FLIGHT_GROUP(f, i)->pg_id, i);
	}
	if (lag_failed(st))
		(void)lag_err_set(err, st, "no memory for process groups");
	for (uint32_t i = 0;
	     !lag_failed(st) && status && status->kind == LAG_DATUM_DICT && i + 1 < status->n;
	     i += 2) {
		const struct lag_datum *here = status->items[i + 1];
		int64_t id = lag_datum_int(status->items[i]);
		struct lag_record rec;

		if (id == LAG_NONE || !lag_map_find(&of_id, (uint64_t)id, &at) ||
		    !lag_flight_spend(f, 8))
			continue;
		lag_record_init(&rec, LAG_REC_comm_progress);
		rec.comm_progress.comm_id = (int64_t)at + 1;
		rec.comm_progress.last_enqueued = count_at(here, "last_enqueued_collective");
		rec.comm_progress.last_started = count_at(here, "last_started_collective");
		rec.comm_progress.last_completed = count_at(here, "last_completed_collective");
		st = lag_part_add(&f->part, &rec, err);
	}
	lag_map_release(&of_id);
	return st;
}

static enum lag_status emit_group(struct lag_flight *f, size_t i, struct lag_err *err)
{
	const struct lag_flight_group *group = LAG_FLIGHT_GROUP(f, i);
	struct lag_record rec;
	enum lag_status st;

	lag_record_init(&rec, LAG_REC_comm);
	rec.comm.comm_id = (int64_t)i + 1;
	rec.comm.hash = lag_group_hash(lag_strtab_get(&f->pool->strings, group->name),
				       lag_strtab_get(&f->pool->strings, group->ranks), 0);
	rec.comm.name = group->name;
	rec.comm.description = group->description;
	if (group->members.n)
		rec.comm.n_ranks = (int64_t)group->members.n;
	for (size_t m = 0; m < group->members.n; m++) {
		if (LAG_VEC_AT(&group->members, int64_t, m) == f->rank)
			rec.comm.comm_rank = (int64_t)m;
	}
	st = lag_part_add(&f->part, &rec, err);
	for (size_t m = 0; m < group->members.n && !lag_failed(st); m++) {
		lag_record_init(&rec, LAG_REC_comm_member);
		rec.comm_member.comm_id = (int64_t)i + 1;
		rec.comm_member.comm_rank = (int64_t)m;
		rec.comm_member.rank = LAG_VEC_AT(&group->members, int64_t, m);
		st = lag_part_add(&f->part, &rec, err);
	}
	return st;
}

enum lag_status lag_flight_emit_groups(struct lag_flight *f, struct lag_err *err)
{
	const struct lag_datum *status = lag_datum_get(f->root, "pg_status");
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < f->groups.n && !lag_failed(st); i++)
		st = emit_group(f, i, err);
	if (!lag_failed(st))
		st = map_by_order(f, status, err);
	if (!lag_failed(st))
		st = emit_progress(f, status, err);
	if (f->n_contradictions) {
		lag_part_note(&f->part, "%llu %s one pg_id to several process groups",
			      (unsigned long long)f->n_contradictions,
			      LAG_PLURAL(f->n_contradictions, "entry gives", "entries give"));
	}
	return st;
}
