/* SPDX-License-Identifier: Apache-2.0 */
/* The program driven without a terminal: screens as text, for tests, files and tickets. */
#include "viz/tui/script.h"

#include <string.h>

#include "schema/base/fmt.h"

void lag_script_press(struct lag_app *app, const char *keys)
{
	while (keys && *(keys += strspn(keys, " \n\t")) && !lag_app_done(app)) {
		size_t n = strcspn(keys, " \n\t");
		uint32_t key = lag_key_parse(keys, n), code;
		size_t at = 0, taken;

		if (key) {
			lag_app_key(app, key);
			(void)lag_app_draw(app); /* pages are as long as what was last drawn */
		}
		while (!key && at < n && (taken = lag_utf8_decode(keys + at, n - at, &code))) {
			lag_app_key(app, code);
			at += taken;
		}
		keys += n;
	}
}

static enum lag_status start(const struct lag_tui_data *data, const struct lag_tui_opts *opts,
			     int width, int height, struct lag_app **app, struct lag_err *err)
{
	enum lag_status status = lag_app_new(data, width, height, opts->ascii, app, err);

	if (lag_failed(status))
		return status;
	if (opts->view && !lag_app_show(*app, opts->view)) {
		lag_app_free(*app);
		return lag_err_set(err, LAG_ERR_USAGE, "no view is called '%s'", opts->view);
	}
	(void)lag_app_draw(*app);
	lag_script_press(*app, opts->keys);
	return LAG_OK;
}

enum lag_status lag_tui_screen(const struct lag_tui_data *data, const struct lag_tui_opts *opts,
			       int width, int height, struct lag_buf *out, struct lag_err *err)
{
	struct lag_app *app;
	enum lag_status status = start(data, opts, width, height, &app, err);

	if (lag_failed(status))
		return status;
	lag_screen_print(lag_app_draw(app), out);
	lag_app_free(app);
	return out->failed ? lag_err_set(err, LAG_ERR_SYSTEM, "no memory for a screen") : LAG_OK;
}

enum lag_status lag_tui_print(const struct lag_tui_data *data, const struct lag_tui_opts *opts,
			      int width, int height, struct lag_buf *out, struct lag_err *err)
{
	struct lag_app *app;
	enum lag_status status =
		start(data, opts, width, height > 0 ? height : LAG_SCREEN_MAX, &app, err);

	if (lag_failed(status))
		return status;
	lag_screen_print(lag_app_print(app), out);
	lag_app_free(app);
	if (out->failed)
		return lag_err_set(err, LAG_ERR_SYSTEM, "no memory for a screen");
	/* Empty lines below the view are not part of it. */
	while (out->n > 1 && out->text[out->n - 1] == '\n' && out->text[out->n - 2] == '\n')
		out->text[--out->n] = '\0';
	return LAG_OK;
}
