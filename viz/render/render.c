/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of renderers, and what they share. */
#include "viz/render/render.h"

#include <string.h>

#include "schema/base/fmt.h"

const struct lag_renderer *const lag_renderers[] = {
#define LAG_RENDERER(name) &lag_renderer_##name,
#include "viz/render/renderers.def"
	NULL,
};

const struct lag_renderer *lag_renderer_find(const char *name)
{
	for (size_t i = 0; lag_renderers[i]; i++) {
		if (!strcmp(lag_renderers[i]->name, name))
			return lag_renderers[i];
	}
	return NULL;
}

const char *lag_unit_name(enum lag_unit unit)
{
	static const char *const names[] = {
		[LAG_UNIT_TEXT] = "text",     [LAG_UNIT_PROSE] = "text",
		[LAG_UNIT_ID] = "id",         [LAG_UNIT_COUNT] = "count",
		[LAG_UNIT_NS] = "ns",         [LAG_UNIT_BYTES] = "bytes",
		[LAG_UNIT_SHARE] = "share",   [LAG_UNIT_RATIO] = "ratio",
		[LAG_UNIT_GBPS] = "GB/s",     [LAG_UNIT_PPM] = "ppm",
		[LAG_UNIT_NUMBER] = "number",
	};

	return (size_t)unit < sizeof(names) / sizeof(names[0]) ? names[unit] : "";
}

bool lag_render_is_page(const struct lag_table *table)
{
	return table->n_columns && !strcmp(table->columns[0].name, "section");
}

static size_t prefix_width(const char *text, size_t n)
{
	struct lag_buf head = { 0 };
	size_t width;

	lag_buf_add(&head, text, n);
	width = lag_fmt_width(lag_buf_text(&head));
	lag_buf_release(&head);
	return width;
}

void lag_render_pad(struct lag_buf *out, const char *text, size_t width, bool right, bool utf8)
{
	size_t have = lag_fmt_width(text), n;

	if (have > width && width >= 4) {
		n = lag_fmt_prefix(text, utf8 ? width - 1 : width - 2);
		lag_buf_add(out, text, n);
		lag_buf_puts(out, utf8 ? "\xe2\x80\xa6" : "..");
		have = prefix_width(text, n) + (utf8 ? 1 : 2);
	} else if (have > width) {
		n = lag_fmt_prefix(text, width);
		lag_buf_add(out, text, n);
		have = prefix_width(text, n);
	} else {
		for (; right && have < width; have++)
			lag_buf_putc(out, ' ');
		lag_buf_puts(out, text);
	}
	for (; have < width; have++)
		lag_buf_putc(out, ' ');
}

void lag_render_wrap(struct lag_buf *out, const char *text, int width, int indent)
{
	size_t room = width > indent ? (size_t)(width - indent) : 0;

	while (room && lag_fmt_width(text) > room) {
		size_t n = lag_fmt_prefix(text, room), cut = n;

		while (cut > 0 && text[cut] != ' ')
			cut--;
		if (n == 0)
			break;
		lag_buf_add(out, text, cut ? cut : n);
		lag_buf_printf(out, "\n%*s", indent, "");
		text += cut ? cut + 1 : n;
	}
	lag_buf_puts(out, text);
	lag_buf_putc(out, '\n');
}

void lag_render_people(void (*render)(const struct lag_table *table, const struct lag_trace *trace,
				      const struct lag_render_opts *opts, struct lag_buf *out),
		       const struct lag_table *table, const struct lag_trace *trace,
		       const struct lag_render_opts *opts, struct lag_buf *out)
{
	struct lag_buf plain = { 0 };

	render(table, trace, opts, &plain);
	lag_fmt_units(out, lag_buf_text(&plain), opts->utf8);
	if (plain.failed)
		out->failed = true;
	lag_buf_release(&plain);
}
