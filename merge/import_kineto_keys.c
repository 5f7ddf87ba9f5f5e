/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a Kineto trace as they stand in this file, learnt while it is read. A text that was valid
 * once is valid wherever it stands between two values. */
#include "merge/kineto_event.h"

#include "schema/base/map.h"

/* Places below these are no keys: the beginnings of an event and of its arguments. The last one holds
 * what is too long to be learnt, or comes when all places are taken. */
#define FIRST_KEY 2
#define OTHER_KEY (LAG_KINETO_KEYS - 1)

static void set_steps(struct lag_kineto_key *key, bool end)
{
	static const uint8_t steps[] = {
		[LAG_KM_OTHER] = LAG_KS_SKIP,      [LAG_KM_PHASE] = LAG_KS_PHASE,
		[LAG_KM_CAT] = LAG_KS_CAT,         [LAG_KM_NAME] = LAG_KS_NAME,
		[LAG_KM_PID] = LAG_KS_PID,         [LAG_KM_TID] = LAG_KS_TID,
		[LAG_KM_TS] = LAG_KS_TS,           [LAG_KM_DUR] = LAG_KS_DUR,
		[LAG_KM_ARGS] = LAG_KS_ENTER_ARGS,
	};

	if (end) {
		key->step[LAG_KP_EVENT] = LAG_KS_FINISH;
		key->step[LAG_KP_ARGS] = key->step[LAG_KP_IDLE_ARGS] = LAG_KS_LEAVE_ARGS;
		return;
	}
	key->step[LAG_KP_EVENT] = steps[key->member];
	key->step[LAG_KP_IDLE_ARGS] = LAG_KS_SKIP;
	key->step[LAG_KP_ARGS] = !key->arg                      ? LAG_KS_SKIP
				 : key->arg->type == LAG_KA_INT ? LAG_KS_INT_ARG
								: LAG_KS_OTHER_ARG;
}

static void set_beyond(struct lag_kineto_key *key)
{
	for (size_t i = key->n; i < sizeof(key->beyond); i++)
		key->beyond[i] = (char)0xff;
	for (size_t i = key->n; i < sizeof(key->text); i++)
		key->beyond_high |= i < 32 ? 0 : (uint32_t)1 << (i - 32);
}

/* From p over the key to the value, or over the object's end. */
static const char *read_key(struct lag_kineto_scan *s, const char *p, const char *limit, bool first,
			    struct lag_kineto_key *key)
{
	const char *text, *end;
	bool escaped = false;

	*key = (struct lag_kineto_key){ 0 };
	p = lag_json_scan_space(p, limit);
	if (first) {
		if (*p != '{')
			return NULL;
		p = lag_json_scan_space(p + 1, limit);
	}
	if (*p == '}') {
		set_steps(key, true);
		return p + 1;
	}
	if (!first) {
		if (*p != ',')
			return NULL;
		p = lag_json_scan_space(p + 1, limit);
	}
	text = p + 1;
	end = *p == '"' ? lag_json_scan_string(text, limit, &escaped) : NULL;
	if (!end || escaped)
		return NULL;
	key->member = (uint8_t)lag_kineto_member(text, (size_t)(end - text));
	key->arg = lag_kineto_arg(s, text, (size_t)(end - text));
	key->slot = key->arg ? key->arg->slot : 0;
	set_steps(key, false);
	p = lag_json_scan_space(end + 1, limit);
	return *p == ':' ? lag_json_scan_space(p + 1, limit) : NULL;
}

unsigned lag_kineto_learn(struct lag_kineto_scan *s, const char *p, const char *limit, bool first,
			  uint8_t next[2])
{
	struct lag_kineto_keys *keys = &s->keys;
	struct lag_kineto_key key;
	const char *end = read_key(s, p, limit, first, &key);
	unsigned slot, at;

	/* The value must be at hand too: of white space that goes on behind the window a part would be
	 * learnt, and would seem to stand wherever the whole does. */
	if (!end || end > limit || (key.step[LAG_KP_EVENT] != LAG_KS_FINISH && end == limit))
		return 0;
	key.n = (size_t)(end - p);
	if (key.n <= sizeof(key.text)) {
		memcpy(key.text, p, key.n);
		slot = (unsigned)lag_hash_bytes(p, key.n) % (2 * LAG_KINETO_KEYS);
		for (; (at = keys->by_hash[slot]); slot = (slot + 1) % (2 * LAG_KINETO_KEYS)) {
			if (keys->keys[at].n == key.n &&
			    memcmp(keys->keys[at].text, p, key.n) == 0) {
				next[1] = next[0];
				next[0] = (uint8_t)at;
				return at;
			}
		}
		keys->n = keys->n < FIRST_KEY ? FIRST_KEY : keys->n;
		if (keys->n < OTHER_KEY) {
			set_beyond(&key);
			next[1] = next[0];
			next[0] = keys->by_hash[slot] = (uint8_t)keys->n;
			keys->keys[keys->n] = key;
			return keys->n++;
		}
	}
	keys->keys[OTHER_KEY] = key;
	return OTHER_KEY;
}
