/* SPDX-License-Identifier: Apache-2.0 */
/* What many events repeat - names, the arguments of a stream, a launch configuration, a communicator - is
 * made once and copied from then on. It takes as much memory as the trace's own strings. */
#include <stdlib.h>
#include <string.h>

#include "viz/export/chrome.h"

static size_t count(const struct lag_trace *t, enum lag_chrome_text_kind kind)
{
	switch (kind) {
	case LAG_CX_STRING:
		return t->n_strings;
	case LAG_CX_LANE:
		return t->n_lanes;
	case LAG_CX_CONFIG:
		return t->n_configs;
	case LAG_CX_COMM:
	case LAG_CX_CALL:
		return t->n_comms;
	case LAG_CX_LIMIT:
		break;
	}
	return 0;
}

enum lag_status lag_chrome_init_texts(struct lag_chrome *c)
{
	for (int kind = 0; kind < LAG_CX_LIMIT; kind++) {
		struct lag_chrome_texts *texts = &c->texts[kind];

		texts->n = count(c->trace, (enum lag_chrome_text_kind)kind);
		texts->of = lag_calloc(texts->n, sizeof(*texts->of));
		if (!texts->of)
			return LAG_ERR_SYSTEM;
	}
	return LAG_OK;
}

void lag_chrome_release_texts(struct lag_chrome *c)
{
	for (int kind = 0; kind < LAG_CX_LIMIT; kind++) {
		lag_buf_release(&c->texts[kind].text);
		free(c->texts[kind].of);
	}
}

static void make(struct lag_chrome *c, enum lag_chrome_text_kind kind, size_t i)
{
	static void (*const args[])(struct lag_chrome *, size_t) = {
		[LAG_CX_LANE] = lag_chrome_lane_args,
		[LAG_CX_CONFIG] = lag_chrome_config_args,
		[LAG_CX_COMM] = lag_chrome_comm_args,
		[LAG_CX_CALL] = lag_chrome_call_args,
	};
	const char *text;

	if (kind == LAG_CX_STRING) {
		text = lag_trace_text(c->trace, (uint32_t)i);
		lag_json_quote(c->json.out, text, strlen(text));
	} else {
		args[kind](c, i);
	}
}

const char *lag_chrome_make_text(struct lag_chrome *c, enum lag_chrome_text_kind kind, size_t i,
				 size_t *n)
{
	struct lag_chrome_texts *texts = &c->texts[kind];
	struct lag_json json = c->json;
	size_t at = texts->text.n;

	*n = 0;
	if (i >= texts->n)
		return "";
	c->json.out = &texts->text;
	c->json.comma = false;
	make(c, kind, i);
	c->json = json;
	if (!lag_buf_reserve(&texts->text, 1)) {
		lag_chrome_fail(c, lag_err_set(c->err, LAG_ERR_SYSTEM, "out of memory"));
		return "";
	}
	*n = texts->text.n - at;
	texts->of[i] = (struct lag_chrome_text){ at, *n, true };
	return texts->text.text + at;
}
