/* SPDX-License-Identifier: Apache-2.0 */
/* Which view is in front, where "back" leads, the prompt, the help, and the frame around it all. */
#include "viz/tui/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "viz/tui/layout.h"
#include "viz/tui/scene.h"
#include "viz/tui/status.h"
#include "viz/tui/text.h"
#include "viz/tui/view.h"

#define BACK_MAX 16

enum prompt {
	PROMPT_NONE = 0,
	PROMPT_FIND,
	PROMPT_GOTO
};

struct lag_app {
	struct lag_scene scene;
	struct lag_screen screen;
	enum lag_view_id view;
	void *states[LAG_VIEW_LIMIT]; /* NULL until a view is first shown */
	enum lag_view_id back[BACK_MAX];
	int n_back;
	enum prompt prompt;
	char typed[LAG_FIND_MAX];
	bool help, done;
	int help_top;
	struct lag_box body; /* as last drawn: where clicks go */
};

static const struct lag_view *const views[] = {
#define LAG_VIEW(NAME, id, title, brief, summary) &lag_view_##id,
#include "viz/tui/views.def"
};

const char *const lag_tui_views[] = {
#define LAG_VIEW(NAME, id, title, brief, summary) #id,
#include "viz/tui/views.def"
	NULL,
};

/* Whether a view can be shown without events. */
static bool needs_events(enum lag_view_id id)
{
	return id != LAG_VIEW_TIMELINE && id != LAG_VIEW_TRUST;
}

bool lag_tui_needs_events(const char *view)
{
	for (int i = 0; i < LAG_VIEW_LIMIT; i++) {
		if (strcmp(lag_tui_views[i], view) == 0)
			return needs_events((enum lag_view_id)i);
	}
	return false;
}

static enum lag_view_id first_view(const struct lag_app *app)
{
	return app->scene.data->detail ? LAG_VIEW_TIMELINE : LAG_VIEW_OVERVIEW;
}

/* Brings a view to the front; one that cannot be opened leaves the present one with a message. */
static bool bring(struct lag_app *app, enum lag_view_id id)
{
	struct lag_err err = { 0 };

	if (app->scene.data->detail && needs_events(id)) {
		lag_scene_say(&app->scene, LAG_SCENE_NEEDS_EVENTS, lag_tui_views[id]);
		return false;
	}
	if (!app->states[id]) {
		void *state = lag_calloc(1, views[id]->state_size);

		if (!state) {
			lag_scene_say(&app->scene, "no memory for this view");
			return false;
		}
		if (lag_failed(views[id]->open(&app->scene, state, &err))) {
			if (views[id]->close)
				views[id]->close(state);
			free(state);
			lag_scene_say(&app->scene, "%s: %s", views[id]->name, err.text);
			return false;
		}
		app->states[id] = state;
	}
	app->view = id;
	if (views[id]->enter)
		views[id]->enter(&app->scene, app->states[id]);
	return true;
}

enum lag_status lag_app_new(const struct lag_tui_data *data, int width, int height, bool ascii,
			    struct lag_app **out, struct lag_err *err)
{
	struct lag_app *app = lag_calloc(1, sizeof(*app));
	enum lag_status status;

	*out = NULL;
	if (!app)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for the screen");
	app->screen.ascii = ascii;
	status = lag_scene_init(&app->scene, data, err);
	if (lag_failed(status)) {
		free(app);
		return status;
	}
	status = lag_screen_resize(&app->screen, width, height, err);
	if (!lag_failed(status) && !bring(app, first_view(app)))
		status = lag_err_set(err, LAG_ERR_SYSTEM, "%s", app->scene.message);
	if (lag_failed(status)) {
		lag_app_free(app);
		return status;
	}
	*out = app;
	return LAG_OK;
}

void lag_app_free(struct lag_app *app)
{
	if (!app)
		return;
	for (int i = 0; i < LAG_VIEW_LIMIT; i++) {
		if (app->states[i] && views[i]->close)
			views[i]->close(app->states[i]);
		free(app->states[i]);
	}
	lag_screen_release(&app->screen);
	lag_scene_release(&app->scene);
	free(app);
}

/* A view asked for by its number or name: "back" then leads to the overview. */
static void jump(struct lag_app *app, enum lag_view_id id)
{
	if (!bring(app, id))
		return;
	app->n_back = 0;
	if (id != first_view(app))
		app->back[app->n_back++] = first_view(app);
}

bool lag_app_show(struct lag_app *app, const char *view)
{
	for (int i = 0; i < LAG_VIEW_LIMIT; i++) {
		if (strcmp(lag_tui_views[i], view) == 0) {
			jump(app, (enum lag_view_id)i);
			return true;
		}
	}
	return false;
}

/* Evidence opened from a view: "back" leads to that view. */
static void follow(struct lag_app *app)
{
	enum lag_view_id from = app->view, to = app->scene.go;

	app->scene.go = LAG_VIEW_LIMIT;
	if (to == LAG_VIEW_LIMIT || to == from || !bring(app, to))
		return;
	if (app->n_back == BACK_MAX) {
		memmove(app->back, app->back + 1, sizeof(app->back) - sizeof(app->back[0]));
		app->n_back--;
	}
	app->back[app->n_back++] = from;
}

static void go_back(struct lag_app *app)
{
	if (app->n_back == 0) {
		app->done = true;
	} else {
		bring(app, app->back[--app->n_back]);
	}
}

enum lag_status lag_app_resize(struct lag_app *app, int width, int height, struct lag_err *err)
{
	return lag_screen_resize(&app->screen, width, height, err);
}

static void find(struct lag_app *app)
{
	const struct lag_view *view = views[app->view];

	if (!app->scene.find[0]) {
		lag_scene_say(&app->scene, "nothing to find: type a name after /");
	} else if (view->find && !view->find(&app->scene, app->states[app->view]) &&
		   !app->scene.message[0]) {
		lag_scene_say(&app->scene, "not found: %s", app->scene.find);
	}
}

static void finish_prompt(struct lag_app *app)
{
	enum prompt prompt = app->prompt;

	app->prompt = PROMPT_NONE;
	if (prompt == PROMPT_FIND) {
		if (app->typed[0])
			snprintf(app->scene.find, sizeof(app->scene.find), "%s", app->typed);
		find(app);
	} else if (app->typed[0] && lag_scene_goto(&app->scene, app->typed) &&
		   views[app->view]->enter) {
		views[app->view]->enter(&app->scene, app->states[app->view]);
	}
	follow(app);
}

static void prompt_key(struct lag_app *app, uint32_t key)
{
	size_t n = strlen(app->typed);
	char bytes[4];

	if (key == LAG_KEY_ENTER) {
		finish_prompt(app);
	} else if (key == LAG_KEY_ESC) {
		app->prompt = PROMPT_NONE;
	} else if (key == LAG_KEY_BACKSPACE || key == LAG_KEY_DELETE) {
		if (n == 0)
			app->prompt = PROMPT_NONE;
		while (n > 0 && ((unsigned char)app->typed[n - 1] & 0xc0) == 0x80)
			n--;
		if (n > 0)
			n--;
		app->typed[n] = '\0';
	} else if (key == 21) { /* C-u, as in a shell */
		app->typed[0] = '\0';
	} else if (key >= 0x20 && key < 0x110000 && n + 5 < sizeof(app->typed)) {
		int used = lag_text_encode(key, bytes);

		memcpy(app->typed + n, bytes, (size_t)used);
		app->typed[n + (size_t)used] = '\0';
	}
}

static void help_act(struct lag_app *app, enum lag_intent intent)
{
	int page = app->body.height > 2 ? app->body.height - 1 : 1;

	switch (intent) {
	case LAG_INTENT_UP:
		app->help_top--;
		break;
	case LAG_INTENT_DOWN:
		app->help_top++;
		break;
	case LAG_INTENT_PAGE_UP:
		app->help_top -= page;
		break;
	case LAG_INTENT_PAGE_DOWN:
		app->help_top += page;
		break;
	case LAG_INTENT_FIRST:
		app->help_top = 0;
		break;
	case LAG_INTENT_LAST:
		app->help_top = 1000;
		break;
	case LAG_INTENT_LEAVE:
		app->done = true;
		break;
	default:
		app->help = false;
	}
}

/* Intents of the frame; false: the view's turn. */
static bool act(struct lag_app *app, enum lag_intent intent)
{
	int view = (int)app->view, n = lag_status_views(&app->scene);

	switch (intent) {
	case LAG_INTENT_QUIT:
		go_back(app);
		return true;
	case LAG_INTENT_LEAVE:
		app->done = true;
		return true;
	case LAG_INTENT_HELP:
		app->help = true;
		app->help_top = 0;
		return true;
	case LAG_INTENT_NEXT_VIEW:
		jump(app, (enum lag_view_id)((view + 1) % n));
		return true;
	case LAG_INTENT_PREV_VIEW:
		jump(app, (enum lag_view_id)((view + n - 1) % n));
		return true;
	case LAG_INTENT_GOTO:
	case LAG_INTENT_SEARCH:
		app->prompt = intent == LAG_INTENT_GOTO ? PROMPT_GOTO : PROMPT_FIND;
		app->typed[0] = '\0';
		return true;
	case LAG_INTENT_AGAIN:
		find(app);
		return true;
	case LAG_INTENT_REDRAW:
		return true;
	default:
		return false;
	}
}

void lag_app_key(struct lag_app *app, uint32_t key)
{
	enum lag_intent intent;

	app->scene.message[0] = '\0';
	if (app->prompt) {
		prompt_key(app, key);
		return;
	}
	intent = lag_keymap_find(key, app->view);
	if (app->help) {
		help_act(app, intent);
		return;
	}
	if (key >= '1' && key < '1' + LAG_VIEW_LIMIT) {
		jump(app, (enum lag_view_id)(key - '1'));
		return;
	}
	if (intent == LAG_INTENT_NONE) {
		/* It does something elsewhere: silence would look like a fault. */
		if (lag_keymap_known(key)) {
			lag_scene_say(&app->scene,
				      "this key does nothing here: ? shows those that do");
		}
		return;
	}
	if (act(app, intent))
		return;
	views[app->view]->act(&app->scene, app->states[app->view], intent);
	follow(app);
}

void lag_app_click(struct lag_app *app, int x, int y, int wheel)
{
	const struct lag_view *view = views[app->view];
	bool inside = x >= app->body.x && x < app->body.x + app->body.width && y >= app->body.y &&
		      y < app->body.y + app->body.height;

	app->scene.message[0] = '\0';
	if (app->prompt || !inside)
		return;
	if (app->help) {
		app->help_top += wheel;
		return;
	}
	/* The wheel zooms where time is shown, around the pointer; elsewhere it scrolls. */
	if (view->click && (!wheel || app->view == LAG_VIEW_TIMELINE))
		view->click(&app->scene, app->states[app->view], x - app->body.x, y - app->body.y);
	if (!wheel)
		return;
	if (app->view == LAG_VIEW_TIMELINE) {
		view->act(&app->scene, app->states[app->view],
			  wheel < 0 ? LAG_INTENT_ZOOM_IN : LAG_INTENT_ZOOM_OUT);
	} else {
		view->act(&app->scene, app->states[app->view],
			  wheel < 0 ? LAG_INTENT_UP : LAG_INTENT_DOWN);
	}
}

bool lag_app_done(const struct lag_app *app)
{
	return app->done;
}

static void draw_prompt(struct lag_app *app, struct lag_canvas *bottom)
{
	int need = lag_canvas_text_width(bottom, app->typed), room = bottom->width - 3, x;

	x = lag_draw_text(bottom, 0, 0, LAG_STYLE_KEY, app->prompt == PROMPT_FIND ? "/" : ":");
	if (need > room) {
		lag_draw_right(bottom, x, 0, room, LAG_STYLE_TITLE, app->typed);
	} else {
		lag_draw_text(bottom, x, 0, LAG_STYLE_TITLE, app->typed);
	}
	lag_draw_glyph(bottom, x + (need < room ? need : room), 0, ' ', LAG_STYLE_SELECTED);
}

static struct lag_canvas part(struct lag_canvas *whole, const struct lag_box *box)
{
	return lag_canvas_part(whole, box->x, box->y, box->width, box->height);
}

static const struct lag_screen *draw(struct lag_app *app, bool keys)
{
	struct lag_screen *screen = &app->screen;
	struct lag_layout layout = lag_layout_screen(screen->width, screen->height, keys);
	struct lag_canvas whole = lag_canvas_whole(screen), top, body, bottom;
	bool tabs = false;

	lag_screen_clear(screen);
	app->body = layout.body;
	if (layout.too_small) {
		lag_draw_printf(&whole, 0, 0, LAG_STYLE_TEXT, "needs %dx%d", LAG_LAYOUT_MIN_WIDTH,
				LAG_LAYOUT_MIN_HEIGHT);
		return screen;
	}
	top = part(&whole, &layout.top);
	body = part(&whole, &layout.body);
	bottom = part(&whole, &layout.bottom);
	app->scene.printing = !keys;
	app->scene.root = app->n_back == 0;
	lag_status_top(&app->scene, &top);
	if (layout.rules) {
		lag_draw_run(&whole, 0, 1, screen->width, 0x2500, LAG_STYLE_DIM);
		if (keys) {
			struct lag_canvas line = lag_canvas_part(&whole, 0, 1, screen->width, 1);

			tabs = lag_status_tabs(&app->scene, app->view, &line);
			lag_draw_run(&whole, 0, screen->height - 2, screen->width, 0x2500,
				     LAG_STYLE_DIM);
		}
	}
	if (app->help) {
		lag_status_help(&app->scene, app->view, &app->help_top, &body);
	} else {
		views[app->view]->draw(&app->scene, app->states[app->view], &body);
	}
	if (app->prompt) {
		draw_prompt(app, &bottom);
	} else {
		lag_status_bottom(&app->scene, app->view, tabs, &bottom);
	}
	return screen;
}

const struct lag_screen *lag_app_draw(struct lag_app *app)
{
	return draw(app, true);
}

const struct lag_screen *lag_app_print(struct lag_app *app)
{
	return draw(app, false);
}
