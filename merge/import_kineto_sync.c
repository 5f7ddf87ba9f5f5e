/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronisation in a Kineto trace. The file has the waits only; where a wait says which recording of
 * the event it waits for, the recording is added, so that the edge between the streams is whole. */
#include <string.h>

#include "merge/kineto.h"

enum lag_status lag_kineto_emit_sync(struct lag_kineto *k, struct lag_err *err)
{
	static const struct {
		struct lag_span name;
		enum lag_sync_kind kind;
	} kinds[] = { { LAG_SPAN_INIT("Stream Wait Event"), LAG_SYNC_STREAM_WAIT },
		      { LAG_SPAN_INIT("Event Sync"), LAG_SYNC_EVENT },
		      { LAG_SPAN_INIT("Stream Sync"), LAG_SYNC_STREAM },
		      { LAG_SPAN_INIT("Context Sync"), LAG_SYNC_CONTEXT } };
	const struct lag_kineto_event *e = &k->scan.event;
	struct lag_span name =
		e->text[e->text[LAG_KT_SYNC_KIND].n ? LAG_KT_SYNC_KIND : LAG_KT_NAME];
	struct lag_record rec;

	lag_record_init(&rec, LAG_REC_sync);
	rec.sync.start_ns = e->ts_ns;
	rec.sync.end_ns = e->dur_ns == LAG_NONE ? LAG_NONE : e->ts_ns + e->dur_ns;
	rec.sync.context = lag_or(e->i[LAG_KI_CONTEXT], 0);
	rec.sync.stream = lag_kineto_not_negative(e->i[LAG_KI_STREAM]);
	rec.sync.event_id = lag_kineto_not_negative(e->i[LAG_KI_WAIT_EVENT]);
	rec.sync.correlation = lag_or(e->i[LAG_KI_CORRELATION], 0);
	rec.sync.record_correlation = lag_kineto_not_negative(e->i[LAG_KI_WAIT_CORRELATION]);
	rec.sync.sync_id = lag_kineto_not_negative(e->i[LAG_KI_SYNC_ID]);
	if (e->cat == LAG_KC_EVENT)
		rec.sync.kind = LAG_SYNC_EVENT_RECORD;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && e->cat == LAG_KC_SYNC; i++) {
		if (lag_span_is(kinds[i].name, name))
			rec.sync.kind = kinds[i].kind;
	}
	if (rec.sync.kind == LAG_NONE) {
		k->p->part.n_unknown++;
		return LAG_OK;
	}
	if (rec.sync.record_correlation != LAG_NONE && e->i[LAG_KI_WAIT_STREAM] >= 0) {
		struct lag_kineto_recording *r = lag_vec_push(&k->p->recordings);

		if (!r)
			return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for more events");
		*r = (struct lag_kineto_recording){ .correlation = rec.sync.record_correlation,
						    .stream = e->i[LAG_KI_WAIT_STREAM],
						    .event_id = rec.sync.event_id,
						    .context = rec.sync.context };
	}
	return lag_part_add(&k->p->part, &rec, err);
}

/* Correlations of the recordings that are waited for and not in the file themselves. */
static enum lag_status find_wanted(struct lag_kineto *k, struct lag_map *wanted)
{
	enum lag_status st = LAG_OK;

	for (size_t i = 0; i < k->p->recordings.n && !lag_failed(st); i++) {
		const struct lag_kineto_recording *r =
			&LAG_VEC_AT(&k->p->recordings, struct lag_kineto_recording, i);

		st = lag_map_set(wanted, (uint64_t)r->correlation, i + 1);
	}
	for (size_t i = 0; i < LAG_PART_COUNT(&k->p->part, sync) && !lag_failed(st); i++) {
		struct lag_rec_sync s = LAG_PART_GET(&k->p->part, sync, i);

		if (s.kind == LAG_SYNC_EVENT_RECORD)
			st = lag_map_set(wanted, (uint64_t)s.correlation, 0);
	}
	return st;
}

enum lag_status lag_kineto_add_recordings(struct lag_kineto *k, struct lag_err *err)
{
	struct lag_map wanted = { 0 };
	enum lag_status st = find_wanted(k, &wanted);

	if (lag_failed(st))
		(void)lag_err_set(err, st, "no memory for more events");
	for (size_t i = 0; i < LAG_PART_COUNT(&k->p->part, api) && wanted.n && !lag_failed(st);
	     i++) {
		struct lag_rec_api api = LAG_PART_GET(&k->p->part, api, i);
		const struct lag_kineto_recording *r;
		struct lag_record rec;
		uint64_t at = 0;

		if (!lag_map_find(&wanted, (uint64_t)api.correlation, &at) || !at)
			continue;
		r = &LAG_VEC_AT(&k->p->recordings, struct lag_kineto_recording, at - 1);
		lag_record_init(&rec, LAG_REC_sync);
		rec.sync.start_ns = api.start_ns;
		rec.sync.end_ns = api.end_ns;
		rec.sync.kind = LAG_SYNC_EVENT_RECORD;
		rec.sync.context = r->context;
		rec.sync.stream = r->stream;
		rec.sync.event_id = r->event_id;
		rec.sync.correlation = r->correlation;
		st = lag_part_add(&k->p->part, &rec, err);
		if (!lag_failed(st))
			st = lag_map_set(&wanted, (uint64_t)r->correlation, 0);
	}
	lag_map_release(&wanted);
	return st;
}
