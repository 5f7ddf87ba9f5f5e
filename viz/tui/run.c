/* SPDX-License-Identifier: Apache-2.0 */
/* The loop on a real terminal: draw, wait, act. */
#include "viz/tui/app.h"
#include "viz/tui/script.h"
#include "viz/tui/term.h"

static enum lag_status loop(struct lag_app *app, struct lag_term *term, struct lag_err *err)
{
	while (!lag_app_done(app)) {
		struct lag_event event;
		enum lag_status status = LAG_OK;
		int width, height;

		lag_term_show(term, lag_app_draw(app));
		lag_term_next(term, &event);
		switch (event.kind) {
		case LAG_EVENT_END:
			return LAG_OK;
		case LAG_EVENT_CLICK:
			lag_app_click(app, event.x, event.y, event.wheel);
			break;
		case LAG_EVENT_RESIZE:
			lag_term_size(term, &width, &height);
			status = lag_app_resize(app, width, height, err);
			break;
		case LAG_EVENT_KEY:
			if (event.key == 3) /* C-c */
				return LAG_OK;
			if (event.key == 12) /* C-l */
				lag_term_redraw(term);
			lag_app_key(app, event.key);
			break;
		}
		if (lag_failed(status))
			return status;
	}
	return LAG_OK;
}

enum lag_status lag_tui_run(const struct lag_tui_data *data, const struct lag_tui_opts *opts,
			    struct lag_err *err)
{
	struct lag_app *app = NULL;
	struct lag_term *term;
	enum lag_status status;
	int width, height;

	status = lag_term_open(&term, opts->ascii, opts->no_color, opts->mouse, err);
	if (lag_failed(status))
		return status;
	lag_term_size(term, &width, &height);
	status = lag_app_new(data, width, height, lag_term_ascii(term), &app, err);
	if (!lag_failed(status) && opts->view && !lag_app_show(app, opts->view))
		status = lag_err_set(err, LAG_ERR_USAGE, "no view is called '%s'", opts->view);
	if (!lag_failed(status)) {
		lag_script_press(app, opts->keys);
		status = loop(app, term, err);
	}
	lag_app_free(app);
	lag_term_close(term);
	return status;
}
