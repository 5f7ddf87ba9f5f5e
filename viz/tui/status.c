/* SPDX-License-Identifier: Apache-2.0 */
/* What frames every view. When room is short, names go first, then the shape; clock error and trust
 * stay: they qualify every number on the screen. */
#include "viz/tui/status.h"

#include <stdio.h>
#include <string.h>

#include "schema/base/fmt.h"
#include "viz/tui/text.h"

struct view_line {
	const char *title, *brief, *summary;
};

static const struct view_line view_lines[] = {
#define LAG_VIEW(NAME, id, title, brief, summary) { title, brief, summary },
#include "viz/tui/views.def"
};

/* What the run is, in the order it is shown; `drop` says what goes first when room is short, 0 never. */
struct piece {
	char text[96];
	int drop;
};

static int shape_pieces(const struct lag_scene *scene, struct piece *pieces)
{
	const struct lag_facts *facts = &scene->facts;
	const struct lag_pipeline *pipeline = scene->data->pipeline;
	int n = 0;

	if (facts->n_recorded < facts->n_ranks) {
		snprintf(pieces[n].text, sizeof(pieces[n].text), "%d of %d ranks",
			 facts->n_recorded, facts->n_ranks);
	} else {
		snprintf(pieces[n].text, sizeof(pieces[n].text), "%d rank%s", facts->n_ranks,
			 LAG_PLURAL(facts->n_ranks, "", "s"));
	}
	pieces[n++].drop = 5;
	snprintf(pieces[n].text, sizeof(pieces[n].text), "%d host%s", facts->n_hosts,
		 LAG_PLURAL(facts->n_hosts, "", "s"));
	pieces[n++].drop = 2;
	if (scene->data->detail) {
		snprintf(pieces[n].text, sizeof(pieces[n].text), "events not read");
		pieces[n++].drop = 3;
		return n;
	}
	if (scene->data->roles->shape[0] && facts->n_ranks > 1) {
		snprintf(pieces[n].text, sizeof(pieces[n].text), "%s", scene->data->roles->shape);
		pieces[n++].drop = 4;
	}
	if (pipeline->n_groups && pipeline->groups[0].schedule != LAG_SCHEDULE_UNKNOWN) {
		snprintf(pieces[n].text, sizeof(pieces[n].text), "%s m=%d",
			 lag_schedule_name(pipeline->groups[0].schedule),
			 pipeline->groups[0].n_microbatches);
		pieces[n++].drop = 1;
	}
	snprintf(pieces[n].text, sizeof(pieces[n].text), "%zu step%s", facts->n_steps,
		 LAG_PLURAL(facts->n_steps, "", "s"));
	pieces[n++].drop = 3;
	return n;
}

static int pieces_width(const struct lag_canvas *canvas, const struct piece *pieces, int n)
{
	int width = 0;

	for (int i = 0; i < n; i++) {
		if (pieces[i].text[0])
			width += lag_canvas_text_width(canvas, pieces[i].text) + (width ? 3 : 0);
	}
	return width;
}

/* Drops whole pieces until the rest fits: half a shape says something else. */
static int fit_pieces(const struct lag_canvas *canvas, struct piece *pieces, int n, int room)
{
	while (pieces_width(canvas, pieces, n) > room) {
		struct piece *next = NULL;

		for (int i = 0; i < n; i++) {
			if (pieces[i].text[0] && (!next || pieces[i].drop < next->drop))
				next = &pieces[i];
		}
		if (!next)
			break;
		next->text[0] = '\0';
	}
	return pieces_width(canvas, pieces, n);
}

static unsigned trust_text(const struct lag_facts *facts, char out[64])
{
	if (facts->n_errors) {
		snprintf(out, 64, "trust: %d error%s", facts->n_errors,
			 LAG_PLURAL(facts->n_errors, "", "s"));
	} else if (facts->n_warnings) {
		snprintf(out, 64, "trust: %d warning%s", facts->n_warnings,
			 LAG_PLURAL(facts->n_warnings, "", "s"));
	} else {
		int n = snprintf(out, 64, "trust ok");

		if (facts->n_notes) {
			snprintf(out + n, 64 - (size_t)n, ", %d %s", facts->n_notes,
				 LAG_PLURAL(facts->n_notes, "note", "notes"));
		}
	}
	return facts->n_errors     ? LAG_STYLE_ERROR
	       : facts->n_warnings ? LAG_STYLE_WARN
				   : LAG_STYLE_GOOD;
}

/* A piece with "×" for the "x" between the dimensions of a shape; returns the x behind it. */
static int draw_piece(struct lag_canvas *canvas, int x, const char *text)
{
	const char *cross;

	while ((cross = strstr(text, " x "))) {
		x = lag_draw_printf(canvas, x, 0, LAG_STYLE_TEXT, "%.*s × ", (int)(cross - text),
				    text);
		text = cross + 3;
	}
	return lag_draw_text(canvas, x, 0, LAG_STYLE_TEXT, text);
}

void lag_status_top(const struct lag_scene *scene, struct lag_canvas *canvas)
{
	char clock[80] = "", trust[64], number[LAG_NUM_MAX];
	unsigned trust_style = trust_text(&scene->facts, trust);
	int right = canvas->width, left = 0, need, title, n;
	struct piece pieces[8];

	if (scene->facts.clock_ns != LAG_NONE) {
		snprintf(clock, sizeof(clock), "clock ±%s",
			 lag_num_error(number, scene->facts.clock_ns));
	} else if (scene->facts.n_recorded > 1) {
		snprintf(clock, sizeof(clock), "clock error unknown");
	}
	right -= lag_canvas_text_width(canvas, trust);
	lag_draw_text(canvas, right, 0, trust_style, trust);
	need = lag_canvas_text_width(canvas, clock);
	if (clock[0] && right - need - 2 >= 8) {
		right -= need + 2;
		lag_draw_text(canvas, right, 0, LAG_STYLE_TEXT, clock);
	}
	if (canvas->width >= 60)
		left = lag_draw_text(canvas, 0, 0, LAG_STYLE_TITLE, "laggard") + 2;
	n = shape_pieces(scene, pieces);
	title = lag_canvas_text_width(canvas, scene->data->title);
	title = title > 30 ? 30 : title;
	if (left + title + 3 + pieces_width(canvas, pieces, n) + 2 > right && title > 12)
		title = 12;
	need = fit_pieces(canvas, pieces, n, right - left - title - 5);
	if (title > right - left - 1)
		title = right - left - 1;
	lag_draw_field(canvas, left, 0, title, LAG_STYLE_DIM | LAG_STYLE_BOLD, scene->data->title);
	left += title + 3;
	for (int i = 0; need > 0 && i < n; i++) {
		if (!pieces[i].text[0])
			continue;
		left = draw_piece(canvas, left, pieces[i].text);
		need -= lag_canvas_text_width(canvas, pieces[i].text) + 3;
		if (need > 0)
			left = lag_draw_text(canvas, left, 0, LAG_STYLE_DIM, " · ");
	}
}

/* The first name of a key line, as shown in the bottom line. */
static void key_name(const char *keys, char out[16])
{
	size_t n = strcspn(keys, " ");

	if (n == 5 && memcmp(keys, "Enter", 5) == 0) {
		snprintf(out, 16, "⏎");
	} else {
		snprintf(out, 16, "%.*s", (int)n, keys);
	}
}

struct hint {
	char key[40];
	const char *label;
	int show;
};

/* Keys of one view in the order of their `show`. A line with an empty label joins the one before
 * ("+ -"), so sorting comes last. */
static int gather_hints(enum lag_view_id view, struct hint *hints, int most)
{
	int n = 0;

	for (size_t i = 0; i < lag_key_lines_n; i++) {
		const struct lag_key_line *line = &lag_key_lines[i];
		char name[16];

		if (!line->show || !(line->where & 1U << view))
			continue;
		key_name(line->keys, name);
		if (!line->label[0] && n > 0) {
			size_t used = strlen(hints[n - 1].key);

			snprintf(hints[n - 1].key + used, sizeof(hints[0].key) - used, " %s", name);
			continue;
		}
		if (n == most)
			break;
		hints[n] = (struct hint){ .label = line->label, .show = line->show };
		snprintf(hints[n].key, sizeof(hints[n].key), "%s", name);
		n++;
	}
	for (int i = 1; i < n; i++) {
		struct hint moved = hints[i];
		int at = i;

		for (; at > 0 && hints[at - 1].show > moved.show; at--)
			hints[at] = hints[at - 1];
		hints[at] = moved;
	}
	return n;
}

int lag_status_views(const struct lag_scene *scene)
{
	return scene->facts.stands ? LAG_VIEW_LIMIT : LAG_VIEW_HANG;
}

static const char *tab_name(int i, bool brief)
{
	return brief ? view_lines[i].brief : view_lines[i].title;
}

/* Cells of n names, each with its digit, and `gap` between them. */
static int tabs_width(int n, bool brief, int gap)
{
	int width = (n - 1) * gap;

	for (int i = 0; i < n; i++)
		width += 2 + (int)strlen(tab_name(i, brief));
	return width;
}

bool lag_status_tabs(const struct lag_scene *scene, enum lag_view_id view,
		     struct lag_canvas *canvas)
{
	int n = lag_status_views(scene), room = canvas->width - 2, gap = 2, x = 1;
	bool brief = tabs_width(n, false, 1) > room;

	if (tabs_width(n, brief, gap) > room)
		gap = 1;
	if (tabs_width(n, brief, gap) > room)
		return false;
	lag_draw_glyph(canvas, 0, 0, ' ', LAG_STYLE_DIM);
	for (int i = 0; i < n; i++) {
		unsigned style =
			(int)view == i ? LAG_STYLE_TITLE | LAG_STYLE_SELECTED : LAG_STYLE_DIM;

		x = lag_draw_printf(canvas, x, 0, LAG_STYLE_KEY, "%d", i + 1);
		x = lag_draw_text(canvas, x, 0, LAG_STYLE_DIM, " ");
		x = lag_draw_text(canvas, x, 0, style, tab_name(i, brief));
		lag_draw_run(canvas, x, 0, i + 1 < n ? gap : 1, ' ', LAG_STYLE_DIM);
		x += gap;
	}
	return true;
}

static int hint_width(const struct lag_canvas *canvas, const struct hint *hint)
{
	return lag_canvas_text_width(canvas, hint->key) + 1 +
	       lag_canvas_text_width(canvas, hint->label);
}

void lag_status_bottom(const struct lag_scene *scene, enum lag_view_id view, bool tabs,
		       struct lag_canvas *canvas)
{
	struct hint hints[32];
	int n = gather_hints(view, hints, 32), x = 1, room = canvas->width;

	if (scene->message[0]) {
		lag_draw_field(canvas, 1, 0, canvas->width - 1, LAG_STYLE_WARN, scene->message);
		return;
	}
	if (!tabs && canvas->width >= 40) {
		x = lag_draw_printf(canvas, x, 0, LAG_STYLE_KEY, "1-%d", lag_status_views(scene));
		x = lag_draw_text(canvas, x + 1, 0, LAG_STYLE_DIM, "views") + 2;
	} else if (canvas->width < 40) {
		x = 0;
	}
	/* Help always fits: who does not know a key must find it. */
	room -= 7;
	for (int i = 0; i < n; i++) {
		bool help = strcmp(hints[i].label, "help") == 0;

		/* Where "back" leads out of the program it must say so. */
		if (scene->root && strcmp(hints[i].label, "back") == 0)
			hints[i].label = "quit";
		if (!help && x + hint_width(canvas, &hints[i]) + 1 > room)
			continue;
		x = lag_draw_text(canvas, x, 0, LAG_STYLE_KEY, hints[i].key);
		x = lag_draw_text(canvas, x + 1, 0, LAG_STYLE_DIM, hints[i].label) + 2;
		if (help)
			room = canvas->width;
	}
}

void lag_status_help(const struct lag_scene *scene, enum lag_view_id view, int *top,
		     struct lag_canvas *canvas)
{
	int n = 0, lines, most, y = 0, keys = canvas->width >= 40 ? 18 : 8;

	for (size_t i = 0; i < lag_key_lines_n; i++)
		n += (lag_key_lines[i].where & 1U << view) != 0;
	lines = n + lag_status_views(scene) + 2;
	most = lines - canvas->height;
	if (*top > most)
		*top = most;
	if (*top < 0)
		*top = 0;
	y = -*top;
	lag_draw_printf(canvas, 1, y++, LAG_STYLE_TITLE, "Keys in %s (q closes this)",
			view_lines[view].title);
	for (size_t i = 0; i < lag_key_lines_n; i++) {
		const struct lag_key_line *line = &lag_key_lines[i];

		if (!(line->where & 1U << view))
			continue;
		lag_draw_field(canvas, 2, y, keys, LAG_STYLE_KEY, line->keys);
		lag_draw_field(canvas, 3 + keys, y++, canvas->width - keys - 3, LAG_STYLE_TEXT,
			       line->help);
	}
	y++;
	for (int i = 0; i < lag_status_views(scene); i++, y++) {
		lag_draw_printf(canvas, 2, y, LAG_STYLE_KEY, "%d", i + 1);
		lag_draw_field(canvas, 4, y, keys - 2, LAG_STYLE_TITLE, view_lines[i].title);
		lag_draw_field(canvas, 3 + keys, y, canvas->width - keys - 3, LAG_STYLE_TEXT,
			       view_lines[i].summary);
	}
	lag_draw_more(canvas, *top, most - *top);
}
