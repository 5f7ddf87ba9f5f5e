/* SPDX-License-Identifier: Apache-2.0 */
/* Renderers turn any table into text. One renderer = one file = one line in renderers.def. */
#ifndef VIZ_RENDER_RENDER_H
#define VIZ_RENDER_RENDER_H

#include "viz/model/table.h"
#include "viz/model/trace.h"

#define LAG_JSON_SCHEMA_VERSION 1

struct lag_render_opts {
	bool utf8; /* glyphs beyond ASCII may be used */
	int width; /* columns of the terminal; 0 = as wide as it gets */
};

struct lag_renderer {
	const char *name; /* as typed after --format */
	/* Appends to out; running out of memory shows as out->failed. */
	void (*render)(const struct lag_table *table, const struct lag_trace *trace,
		       const struct lag_render_opts *opts, struct lag_buf *out);
};

#define LAG_RENDERER(name) extern const struct lag_renderer lag_renderer_##name;
#include "viz/render/renderers.def"

extern const struct lag_renderer *const lag_renderers[]; /* NULL-terminated */

const struct lag_renderer *lag_renderer_find(const char *name); /* NULL = none */

/* "ns", "share", ... as JSON says it. */
const char *lag_unit_name(enum lag_unit unit);

/* A table whose first column is "section" is a page: blocks of lines instead of a grid. */
bool lag_render_is_page(const struct lag_table *table);
void lag_render_page(const struct lag_table *table, const struct lag_trace *trace,
		     const struct lag_render_opts *opts, struct lag_buf *out);

/* Appends text, cut or padded with blanks to `width` columns; right = aligned to the right. */
void lag_render_pad(struct lag_buf *out, const char *text, size_t width, bool right, bool utf8);

/* Appends text that begins at column `indent`, and a newline; where a terminal of `width` columns ends
 * (0 = nowhere), it goes on in that column of the next line. */
void lag_render_wrap(struct lag_buf *out, const char *text, int width, int indent);

/* Renders for people: units are spelt as their terminal can show them. */
void lag_render_people(void (*render)(const struct lag_table *table, const struct lag_trace *trace,
				      const struct lag_render_opts *opts, struct lag_buf *out),
		       const struct lag_table *table, const struct lag_trace *trace,
		       const struct lag_render_opts *opts, struct lag_buf *out);

#endif
