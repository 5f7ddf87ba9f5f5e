/* SPDX-License-Identifier: Apache-2.0 */
/* Moving the shared cursor, and looking things up for several views. */
#include "viz/tui/scene.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "schema/base/mem.h"

/* Where to look first: at the straggler that costs most, else at the first rank on record. */
static int32_t first_rank(const struct lag_tui_data *data)
{
	int32_t first = 0;
	int64_t most = 0;

	while ((size_t)first + 1 < data->trace->n_ranks && !data->trace->ranks[first].recorded)
		first++;
	for (size_t r = 0; r < data->stragglers->n_ranks; r++) {
		const struct lag_straggler *judged = &data->stragglers->ranks[r];

		if (lag_verdict_accuses(judged->verdict) && judged->step_cost_ns > most) {
			most = judged->step_cost_ns;
			first = (int32_t)r;
		}
	}
	return first;
}

enum lag_status lag_scene_init(struct lag_scene *scene, const struct lag_tui_data *data,
			       struct lag_err *err)
{
	enum lag_status status;
	size_t n_ranks = data->trace->n_ranks;

	*scene = (struct lag_scene){ .data = data, .mark_ns = LAG_NONE, .go = LAG_VIEW_LIMIT };
	status = lag_facts_compute(data, &scene->facts, err);
	if (lag_failed(status))
		return status;
	scene->lods = lag_calloc(n_ranks, sizeof(*scene->lods));
	if (!scene->lods) {
		lag_scene_release(scene);
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for %zu ranks", n_ranks);
	}
	scene->limits = (struct lag_axis){ 0, data->trace->span_ns > 0 ? data->trace->span_ns : 1 };
	for (size_t i = 0; i < data->steps->n_steps; i++) {
		if (data->steps->steps[i].start_ns < scene->limits.t0)
			scene->limits.t0 = data->steps->steps[i].start_ns;
	}
	scene->r = first_rank(data);
	scene->step = data->steps->n_steps ? (int32_t)scene->facts.median_step : -1;
	if (scene->step >= 0)
		scene->time_ns = data->steps->steps[scene->step].start_ns;
	lag_scene_show_step(scene);
	return LAG_OK;
}

void lag_scene_release(struct lag_scene *scene)
{
	for (size_t r = 0; scene->lods && r < scene->data->trace->n_ranks; r++)
		lag_lod_release(&scene->lods[r]);
	free(scene->lods);
	*scene = (struct lag_scene){ 0 };
}

void lag_scene_say(struct lag_scene *scene, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(scene->message, sizeof(scene->message), fmt, args);
	va_end(args);
}

float lag_scene_heat(const struct lag_scene *scene, size_t r, size_t step)
{
	const struct lag_peers *peers = scene->data->peers;

	if (r >= peers->n_ranks || step >= peers->n_steps)
		return NAN;
	return peers->step_ratio[step * peers->n_ranks + r];
}

const struct lag_straggler *lag_scene_judged(const struct lag_scene *scene, size_t r)
{
	static const struct lag_straggler unknown = { .step_cost_ns = LAG_NONE,
						      .waiting_caused_ns = LAG_NONE,
						      .ratio = NAN };

	return r < scene->data->stragglers->n_ranks ? &scene->data->stragglers->ranks[r] : &unknown;
}

int32_t lag_scene_step_at(const struct lag_scene *scene, int64_t time_ns)
{
	const struct lag_steps *steps = scene->data->steps;
	int32_t found = steps->n_steps ? 0 : -1;

	/* Neighbouring steps may overlap: the last one that has begun counts. */
	for (size_t i = 0; i < steps->n_steps; i++) {
		if (steps->steps[i].start_ns != LAG_NONE && steps->steps[i].start_ns <= time_ns)
			found = (int32_t)i;
	}
	return found;
}

void lag_scene_set_time(struct lag_scene *scene, int64_t time_ns)
{
	if (time_ns < scene->limits.t0)
		time_ns = scene->limits.t0;
	if (time_ns >= scene->limits.t1)
		time_ns = scene->limits.t1 - 1;
	scene->time_ns = time_ns;
	scene->step = lag_scene_step_at(scene, time_ns);
}

void lag_scene_set_step(struct lag_scene *scene, int32_t step)
{
	const struct lag_steps *steps = scene->data->steps;
	int64_t offset = 0;

	if (!steps->n_steps)
		return;
	if (step < 0)
		step = 0;
	if ((size_t)step >= steps->n_steps)
		step = (int32_t)steps->n_steps - 1;
	if (scene->step >= 0)
		offset = scene->time_ns - steps->steps[scene->step].start_ns;
	if (offset < 0 || offset >= steps->steps[step].end_ns - steps->steps[step].start_ns)
		offset = 0;
	lag_scene_set_time(scene, steps->steps[step].start_ns + offset);
	scene->step = step;
}

void lag_scene_show_step(struct lag_scene *scene)
{
	const struct lag_step *step;
	int64_t margin;

	scene->axis = scene->limits;
	if (scene->step < 0)
		return;
	step = &scene->data->steps->steps[scene->step];
	if (step->start_ns == LAG_NONE || step->end_ns <= step->start_ns)
		return;
	margin = (step->end_ns - step->start_ns) / 100;
	scene->axis = (struct lag_axis){ step->start_ns, step->end_ns + margin };
	if (scene->axis.t1 > scene->limits.t1)
		scene->axis.t1 = scene->limits.t1;
	if (scene->axis.t1 <= scene->axis.t0)
		scene->axis = scene->limits;
}

void lag_scene_point(struct lag_scene *scene, int32_t r, int32_t step)
{
	const struct lag_steps *steps = scene->data->steps;

	if (r >= 0 && (size_t)r < scene->data->trace->n_ranks)
		scene->r = r;
	if (step < 0 || (size_t)step >= steps->n_steps)
		return;
	scene->time_ns = steps->steps[step].start_ns;
	if ((size_t)scene->r < steps->n_ranks) {
		int64_t start = lag_steps_span(steps, (size_t)step, (size_t)scene->r)->start_ns;

		if (start != LAG_NONE)
			scene->time_ns = start;
	}
	scene->step = step;
	lag_scene_show_step(scene);
}

const struct lag_lod *lag_scene_lod(struct lag_scene *scene, size_t r)
{
	const struct lag_ledger *ledger = scene->data->ledger;
	struct lag_lod *lod = &scene->lods[r];
	struct lag_err err = { 0 };

	if (lod->sums)
		return lod;
	if (r >= ledger->n_ranks)
		return NULL;
	if (lag_failed(lag_lod_init(lod, ledger->slices + ledger->first[r],
				    ledger->first[r + 1] - ledger->first[r], &err))) {
		lag_scene_say(scene, "%s", err.text);
		return NULL;
	}
	return lod;
}

const struct lag_table *lag_scene_table(struct lag_scene *scene, const char *name)
{
	const struct lag_table *table = NULL;
	struct lag_err err = { 0 };

	if (lag_failed(scene->data->table(scene->data->self, name, &table, &err))) {
		lag_scene_say(scene, "%s: %s", name, err.text);
		return NULL;
	}
	return table;
}

const char *lag_scene_place(const struct lag_scene *scene, size_t r, char out[48])
{
	const struct lag_rank_role *role = &scene->data->roles->ranks[r];
	int n = 0;

	out[0] = '\0';
	if (role->stage >= 0 && scene->data->roles->n_stages > 1)
		n += snprintf(out + n, 48 - (size_t)n, "s%d ", role->stage);
	if (role->dp >= 0 && scene->data->roles->n_dp > 1)
		n += snprintf(out + n, 48 - (size_t)n, "dp%d ", role->dp);
	if (role->tp >= 0 && scene->data->roles->n_tp > 1)
		n += snprintf(out + n, 48 - (size_t)n, "tp%d ", role->tp);
	if (n > 0)
		out[n - 1] = '\0';
	return out;
}

static bool goto_step(struct lag_scene *scene, long long number)
{
	const struct lag_steps *steps = scene->data->steps;

	for (size_t i = 0; i < steps->n_steps; i++) {
		if (steps->steps[i].number == number) {
			scene->step = (int32_t)i;
			scene->time_ns = steps->steps[i].start_ns;
			lag_scene_show_step(scene);
			return true;
		}
	}
	lag_scene_say(scene, "no step %lld in this run", number);
	return false;
}

static bool goto_rank(struct lag_scene *scene, long long number)
{
	int r = lag_trace_find_rank(scene->data->trace, number);

	if (r < 0) {
		lag_scene_say(scene, "no rank %lld in this run", number);
		return false;
	}
	scene->r = r;
	return true;
}

static bool goto_time(struct lag_scene *scene, double value, const char *unit)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 }, { "µs", 1e3 }, { "ns", 1 } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		double ns = value * units[i].ns;

		if (strcmp(unit, units[i].unit) != 0)
			continue;
		if (!(ns >= (double)scene->limits.t0 && ns < (double)scene->limits.t1))
			break;
		lag_scene_set_time(scene, (int64_t)ns);
		lag_axis_reveal(&scene->axis, scene->time_ns, &scene->limits);
		return true;
	}
	lag_scene_say(scene, "not a time inside this run");
	return false;
}

bool lag_scene_goto(struct lag_scene *scene, const char *text)
{
	const char *word, *digits;
	char *end;
	double value;

	while (isspace((unsigned char)*text))
		text++;
	word = text;
	while (isalpha((unsigned char)*text))
		text++;
	digits = text;
	while (isspace((unsigned char)*digits))
		digits++;
	value = strtod(digits, &end);
	while (isspace((unsigned char)*end))
		end++;
	if (end == digits || !isfinite(value) || fabs(value) > 1e15) {
		lag_scene_say(scene, "go to what? a step (7), a time (112.5ms), a rank (rank 5)");
		return false;
	}
	if (text > word) {
		size_t n = (size_t)(text - word);

		if (*end == '\0' && strncasecmp(word, "step", n) == 0)
			return goto_step(scene, llround(value));
		if (*end == '\0' && strncasecmp(word, "rank", n) == 0)
			return goto_rank(scene, llround(value));
		lag_scene_say(scene, "go to what? step, time or rank");
		return false;
	}
	return *end ? goto_time(scene, value, end) : goto_step(scene, llround(value));
}

static const struct lag_cell *cell_of(const struct lag_table *table, size_t row, const char *column,
				      bool text, bool real)
{
	int at = table ? lag_table_find_column(table, column) : -1;
	enum lag_unit unit;

	if (at < 0 || row >= table->n_rows)
		return NULL;
	unit = table->columns[at].unit;
	if (text != lag_unit_is_text(unit) || (!text && real != (unit >= LAG_UNIT_SHARE)))
		return NULL;
	const struct lag_cell *cell = lag_table_cell(table, row, (size_t)at);
	return cell->null ? NULL : cell;
}

const char *lag_cell_text(const struct lag_table *table, size_t row, const char *column)
{
	const struct lag_cell *cell = cell_of(table, row, column, true, false);

	return cell ? cell->text : NULL;
}

int64_t lag_cell_int(const struct lag_table *table, size_t row, const char *column)
{
	const struct lag_cell *cell = cell_of(table, row, column, false, false);

	return cell ? cell->i : LAG_NONE;
}

double lag_cell_real(const struct lag_table *table, size_t row, const char *column)
{
	const struct lag_cell *cell = cell_of(table, row, column, false, true);

	return cell ? cell->d : (double)NAN;
}
