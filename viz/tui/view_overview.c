/* SPDX-License-Identifier: Apache-2.0 */
/* The first screen, no key pressed: how long is a step, where does it go, who is late, what would
 * fixing it win. The figures are the summary's; each finding opens its evidence. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/fmt.h"
#include "viz/tui/findings.h"
#include "viz/tui/glyphs.h"
#include "viz/tui/list.h"
#include "viz/tui/text.h"
#include "viz/tui/view.h"

struct overview {
	const struct lag_table *summary;
	struct lag_findings findings;
	struct lag_list list;
	int line_of[LAG_FINDINGS_MAX +
		    1]; /* where each finding begins, as last drawn; -1 = it is not */
};

static enum lag_status open_view(struct lag_scene *scene, void *state, struct lag_err *err)
{
	struct overview *view = state;

	(void)err;
	view->summary = lag_scene_table(scene, "summary");
	lag_findings_gather(scene, view->summary, &view->findings);
	return LAG_OK;
}

/* Row of the summary; n_rows when it has none. */
static size_t row_of(const struct lag_table *table, const char *section, const char *item)
{
	size_t row = 0, n = table ? table->n_rows : 0;

	for (; row < n; row++) {
		const char *s = lag_cell_text(table, row, "section");
		const char *i = lag_cell_text(table, row, "item");

		if (s && i && strcmp(s, section) == 0 && strcmp(i, item) == 0)
			break;
	}
	return row;
}

static int64_t step_ns(const struct overview *view, const char *item)
{
	return lag_cell_int(view->summary, row_of(view->summary, "step", item), "value_ns");
}

/* ------------------------------------------------------------------ the step */

static int draw_sparkline(const struct lag_scene *scene, struct lag_canvas *canvas, int x,
			  int width)
{
	const struct lag_steps *steps = scene->data->steps;
	/* The typical step stands low, so that a long one stands out and noise makes no mountains. */
	int64_t low = scene->facts.step_median_ns / 10 * 9;
	int64_t high = scene->facts.step_median_ns / 10 * 13;
	int drawn = 0;

	for (size_t i = 0; i < steps->n_steps; i++) {
		int64_t ns = steps->steps[i].end_ns - steps->steps[i].start_ns;

		if (!steps->steps[i].complete)
			continue;
		low = ns < low ? ns : low;
		high = ns > high ? ns : high;
	}
	for (size_t i = 0; i < steps->n_steps && drawn < width; i++) {
		int64_t ns = steps->steps[i].end_ns - steps->steps[i].start_ns;
		bool outlier = ns > scene->facts.step_median_ns / 10 * 11;

		if (!steps->steps[i].complete)
			continue;
		lag_draw_glyph(canvas, x + drawn++, 0, lag_glyph_of_spark(ns, low, high),
			       outlier ? LAG_STYLE_WAIT : LAG_STYLE_COMPUTE);
	}
	return x + drawn;
}

/* "p5 281.0 ms"; nothing where the summary has no such row or the line has no room. */
static int draw_named(struct lag_canvas *line, int x, const char *name, int64_t ns)
{
	char number[LAG_NUM_MAX];

	if (ns == LAG_NONE ||
	    x + (int)strlen(name) + 3 + lag_canvas_text_width(line, lag_num_ns(number, ns)) >
		    line->width)
		return x;
	x = lag_draw_text(line, x + 2, 0, LAG_STYLE_DIM, name);
	return lag_draw_text(line, x + 1, 0, LAG_STYLE_TEXT, number);
}

static void draw_step(const struct lag_scene *scene, const struct overview *view,
		      struct lag_canvas *canvas, int y)
{
	struct lag_canvas line = lag_canvas_part(canvas, 0, y, canvas->width, 1);
	int64_t mean = step_ns(view, "mean"), without = step_ns(view, "without_stragglers");
	char number[LAG_NUM_MAX];
	int x, room;

	x = lag_draw_text(&line, 1, 0, LAG_STYLE_TITLE, "Step") + (line.width >= 60 ? 3 : 1);
	if (mean == LAG_NONE) {
		lag_draw_text(&line, x, 0, LAG_STYLE_DIM, "no step was found");
		return;
	}
	x = lag_draw_text(&line, x, 0, LAG_STYLE_NUMBER, lag_num_ns(number, mean));
	if (line.width < 44)
		return;
	x = draw_named(&line, x + 1, "p5", step_ns(view, "p5"));
	x = draw_named(&line, x, "p95", step_ns(view, "p95"));
	if (without != LAG_NONE && line.width >= 78) {
		x = lag_draw_text(&line, x + 4, 0, LAG_STYLE_DIM, "without stragglers ");
		x = lag_draw_text(&line, x, 0, LAG_STYLE_GOOD | LAG_STYLE_BOLD,
				  lag_num_ns(number, without));
	}
	room = line.width - x - 4 - 10;
	if (room >= 8 && scene->facts.n_complete > 1) {
		x = draw_sparkline(scene, &line, x + 4, room > 48 ? 48 : room);
		lag_draw_text(&line, x + 1, 0, LAG_STYLE_DIM, "per step");
	}
}

/* ------------------------------------------------------------------ where it goes */

struct part {
	const char *name, *brief, *item, *second; /* items of the summary; second may be NULL */
	enum lag_time_class class, second_class;
};

static const struct part parts[] = {
	{ "compute", "compute", "compute", NULL, LAG_TIME_COMPUTE, LAG_TIME_LIMIT },
	{ "pipeline bubble", "bubble", "bubble", NULL, LAG_TIME_BUBBLE, LAG_TIME_LIMIT },
	{ "exposed comm", "comm", "exposed_transfer", "exposed_wait", LAG_TIME_EXPOSED_TRANSFER,
	  LAG_TIME_EXPOSED_WAIT },
	{ "host-bound", "host", "host_bound", NULL, LAG_TIME_HOST, LAG_TIME_LIMIT },
	{ "copies", "copies", "copy", NULL, LAG_TIME_COPY, LAG_TIME_LIMIT },
	{ "other idle", "idle", "idle", NULL, LAG_TIME_IDLE, LAG_TIME_LIMIT },
};

#define PARTS ((int)(sizeof(parts) / sizeof(parts[0])))

struct amount {
	int64_t ns;           /* LAG_NONE: not in the summary */
	double share, second; /* of the step; second: the part of it that is the second class */
	const char *text;
};

static struct amount amount_of(const struct lag_table *summary, const struct part *part)
{
	size_t row = row_of(summary, "time", part->item);
	struct amount out = { lag_cell_int(summary, row, "value_ns"),
			      lag_cell_real(summary, row, "share"), 0,
			      lag_cell_text(summary, row, "text") };

	if (part->second && out.ns != LAG_NONE) {
		row = row_of(summary, "time", part->second);
		if (lag_cell_int(summary, row, "value_ns") != LAG_NONE) {
			out.ns += lag_cell_int(summary, row, "value_ns");
			out.second = lag_cell_real(summary, row, "share");
			out.share += out.second;
		}
	}
	return out;
}

/* What stands right of a bar: how a part divides. */
static void part_note(const struct part *part, const struct amount *amount, char out[96])
{
	const char *open = amount->text ? strchr(amount->text, '(') : NULL;
	char transfer[LAG_NUM_MAX], waiting[LAG_NUM_MAX];

	out[0] = '\0';
	if (part->second) {
		snprintf(out, 96, "%s transfer, %s waiting",
			 lag_num_share(transfer, amount->share - amount->second),
			 lag_num_share(waiting, amount->second));
	} else if (open) { /* "bubble (ideal 22.9 %, excess 3.3 %)" */
		snprintf(out, 96, "%.*s", (int)strcspn(open + 1, ")"), open + 1);
	}
}

static void draw_part(struct lag_canvas *line, const struct part *part, const struct amount *amount,
		      int bar_width)
{
	struct lag_ink look = lag_glyph_of_class(part->class);
	bool brief = line->width < 50;
	char number[LAG_NUM_MAX], note[96];
	int x = brief ? 8 : 20, drawn;

	if (part->class == LAG_TIME_IDLE)
		look = (struct lag_ink){ 0x2500, LAG_STYLE_DIM };
	lag_draw_field(line, brief ? 1 : 3, 0, brief ? 7 : 16, LAG_STYLE_TEXT,
		       brief ? part->brief : part->name);
	if (!brief || line->width >= 30) {
		lag_draw_right(line, x, 0, 9, LAG_STYLE_NUMBER, lag_num_ns(number, amount->ns));
		x += 9;
	}
	lag_draw_right(line, x, 0, 9, LAG_STYLE_TEXT, lag_num_share(number, amount->share));
	x += 12;
	if (bar_width <= 0)
		return;
	lag_draw_bar(line, x, 0, bar_width, amount->share, &look);
	drawn = (int)ceil(bar_width * amount->share);
	if (part->second && amount->second > 0) {
		struct lag_ink second = lag_glyph_of_class(part->second_class);
		int cells = (int)lround(bar_width * amount->share);
		int first = (int)lround(bar_width * (amount->share - amount->second));

		cells = cells > 0 ? cells : 1;
		/* A part that exists is never invisible where there is room for two. */
		first = first == 0 && cells > 1 && amount->share > amount->second ? 1 : first;
		first = first == cells && cells > 1 ? cells - 1 : first;
		lag_draw_run(line, x, 0, first, look.code, look.style);
		lag_draw_run(line, x + first, 0, cells - first, second.code, second.style);
	}
	part_note(part, amount, note);
	/* Right of its bar, aligned where the bars are short. */
	drawn = drawn > bar_width / 2 ? drawn : bar_width / 2;
	if (note[0] && x + drawn + 2 + lag_canvas_text_width(line, note) <= line->width)
		lag_draw_text(line, x + drawn + 2, 0, LAG_STYLE_DIM, note);
}

static int draw_parts(const struct lag_scene *scene, const struct overview *view,
		      struct lag_canvas *canvas, int y, int room)
{
	const struct lag_facts *facts = &scene->facts;
	int bar_width = canvas->width - 43, x;

	x = lag_draw_text(canvas, 1, y++, LAG_STYLE_TITLE,
			  canvas->width >= 40 ? "Where the GPU time goes" : "Where it goes");
	if (canvas->width >= 70) {
		lag_draw_printf(canvas, x + 3, y - 1, LAG_STYLE_DIM,
				"mean of %d rank%s, share of the step", facts->n_recorded,
				LAG_PLURAL(facts->n_recorded, "", "s"));
	}
	bar_width = bar_width > 60 ? 60 : bar_width;
	for (int i = 0; i < PARTS && room > 1; i++) {
		struct lag_canvas line = lag_canvas_part(canvas, 0, y, canvas->width, 1);
		struct amount amount = amount_of(view->summary, &parts[i]);

		if (parts[i].class == LAG_TIME_BUBBLE && amount.ns == LAG_NONE) {
			lag_draw_text(&line, 3, 0, LAG_STYLE_DIM,
				      canvas->width >= 50 ? "pipeline bubble       n/a: no pipeline"
							  : "bubble n/a");
		} else if (amount.ns == LAG_NONE ||
			   (amount.ns == 0 && parts[i].class != LAG_TIME_COMPUTE)) {
			continue; /* what is not there is not listed */
		} else {
			draw_part(&line, &parts[i], &amount, bar_width);
		}
		y++;
		room--;
	}
	return y;
}

/* ------------------------------------------------------------------ findings */

/* Cells of a finding's text: its numbers stand right of it. */
static int text_room(int width, const struct lag_claim *claim)
{
	int right = width;

	if (width >= 50 && !isnan(claim->share))
		right -= 8;
	if (width >= 36 && claim->gain_ns != LAG_NONE)
		right -= 11;
	return right - (width >= 40 ? 4 : 3);
}

/* Folded where fold says so, else cut at the end of its line. Returns the lines. */
static int draw_finding(struct lag_canvas *line, const struct lag_claim *claim, bool selected,
			bool fold)
{
	int x = line->width >= 40 ? 3 : 2, room = text_room(line->width, claim), lines = 1;
	unsigned style = claim->accuses                  ? LAG_STYLE_LATE
			 : claim->view == LAG_VIEW_TRUST ? LAG_STYLE_WARN
							 : LAG_STYLE_TEXT;
	char gain[LAG_NUM_MAX + 8] = "", share[LAG_NUM_MAX] = "", number[LAG_NUM_MAX];
	int right = line->width;

	if (claim->gain_ns != LAG_NONE)
		snprintf(gain, sizeof(gain), "−%s", lag_num_ns(number, claim->gain_ns));
	if (!isnan(claim->share))
		lag_num_share(share, claim->share);
	if (line->width >= 50 && share[0]) {
		right -= 8;
		lag_draw_right(line, right, 0, 7, LAG_STYLE_TEXT, share);
	}
	if (line->width >= 36 && gain[0]) {
		right -= 11;
		lag_draw_right(line, right, 0, 10, LAG_STYLE_NUMBER, gain);
	}
	if (selected)
		lag_draw_glyph(line, 1, 0, 0x25b8, LAG_STYLE_KEY);
	if (fold) {
		lines = lag_draw_folded(line, x, 0, room, style, claim->text);
	} else {
		lag_draw_sentence(line, x, 0, room, style, claim->text);
	}
	if (selected)
		lag_draw_mark(line, 0, 0, line->width, LAG_STYLE_BOLD);
	return lines > 0 ? lines : 1;
}

/* Lines that all findings take when each is folded. */
static int folded_lines(const struct overview *view, const struct lag_canvas *canvas)
{
	struct lag_canvas none = lag_canvas_part(canvas, 0, 0, canvas->width, 0);
	int lines = 0;

	for (int i = 0; i < view->findings.n; i++)
		lines += draw_finding(&none, &view->findings.items[i], false, true);
	return lines;
}

/* In full where there is room for that; returns whether there was. */
static bool draw_findings(const struct lag_scene *scene, struct overview *view,
			  struct lag_canvas *canvas, int y, int lines)
{
	bool fold = folded_lines(view, canvas) <= lines;

	lag_list_fit(&view->list, view->findings.n, lines);
	for (int i = 0; i < view->findings.n; i++) {
		struct lag_canvas rest =
			lag_canvas_part(canvas, 0, y, canvas->width, fold ? canvas->height - y : 1);
		bool shown = i >= view->list.top && y < canvas->height;

		view->line_of[i] = shown ? y : -1;
		if (shown) {
			y += draw_finding(&rest, &view->findings.items[i],
					  !scene->printing && i == view->list.selected, fold);
		}
	}
	view->line_of[view->findings.n] = y;
	return fold;
}

/* The selected finding in full, where the list had to cut it: as far as two lines go. */
static void draw_whole(const struct overview *view, struct lag_canvas *canvas, int y)
{
	const char *text = view->findings.items[view->list.selected].text;
	int width = canvas->width - 4;
	size_t cut = lag_fmt_prefix(text, (size_t)(width > 0 ? width : 0)), at = cut;

	if (lag_canvas_text_width(canvas, text) <= canvas->width - 23)
		return;
	while (text[cut] && at > 0 && text[at] != ' ')
		at--;
	at = at ? at : cut;
	lag_draw_printf(canvas, 3, y, LAG_STYLE_DIM, "%.*s", (int)at, text);
	lag_draw_sentence(canvas, 3, y + 1, width, LAG_STYLE_DIM, text + at + (text[at] == ' '));
}

/* Findings keep their lines; the parts of the step give theirs up first, the blank lines before. */
static void draw(struct lag_scene *scene, void *state, struct lag_canvas *canvas)
{
	struct overview *view = state;
	int n = view->findings.n ? view->findings.n : 1, y = 0, spare, airy;

	if (n > canvas->height / 2)
		n = canvas->height / 2;
	spare = canvas->height - 1 - n - 1;
	airy = spare >= 9;
	draw_step(scene, view, canvas, y++);
	y += airy;
	if (spare - 2 * airy >= 2 && amount_of(view->summary, &parts[0]).ns != LAG_NONE)
		y = draw_parts(scene, view, canvas, y, spare - 2 * airy) + airy;
	if (canvas->height - y > 1) {
		lag_draw_text(canvas, 1, y, LAG_STYLE_TITLE, "Findings");
		if (canvas->width >= 60) {
			lag_draw_right(canvas, canvas->width - 40, y, 39, LAG_STYLE_DIM,
				       "would win at most, share of the step");
		}
		y++;
	}
	if (!draw_findings(scene, view, canvas, y, canvas->height - y) && !scene->printing &&
	    canvas->height - y >= view->findings.n + 3)
		draw_whole(view, canvas, canvas->height - 2);
}

static bool act(struct lag_scene *scene, void *state, enum lag_intent intent)
{
	struct overview *view = state;
	const struct lag_claim *claim;

	if (lag_list_act(&view->list, intent))
		return true;
	if (intent != LAG_INTENT_OPEN || view->findings.n == 0)
		return false;
	claim = &view->findings.items[view->list.selected];
	if (claim->r >= 0)
		lag_scene_point(scene, claim->r, claim->step);
	scene->go = claim->view;
	return true;
}

static bool find(struct lag_scene *scene, void *state)
{
	struct overview *view = state;

	for (int i = 1; i <= view->findings.n; i++) {
		int at = (view->list.selected + i) % view->findings.n;

		if (lag_text_has(view->findings.items[at].text, scene->find)) {
			view->list.selected = at;
			return true;
		}
	}
	return false;
}

static void click(struct lag_scene *scene, void *state, int x, int y)
{
	struct overview *view = state;
	int at = view->findings.n - 1;

	(void)x;
	(void)scene;
	if (y >= view->line_of[view->findings.n])
		return;
	while (at >= 0 && (view->line_of[at] < 0 || view->line_of[at] > y))
		at--;
	if (at >= 0)
		view->list.selected = at;
}

const struct lag_view lag_view_overview = {
	.name = "overview",
	.state_size = sizeof(struct overview),
	.open = open_view,
	.draw = draw,
	.act = act,
	.find = find,
	.click = click,
};
