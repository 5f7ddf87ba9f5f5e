/* SPDX-License-Identifier: Apache-2.0 */
/* tui_screens VIEW WIDTH HEIGHT ASCII [KEYS]: a screen of the made-up run as text; height 0: the view as
 * it is printed. tui_screens run: on this terminal. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tui/fake.h"

int main(int argc, char **argv)
{
	struct lag_tui_opts opts = { 0 };
	struct lag_err err = { 0 };
	struct lag_buf out = { 0 };
	struct fake *fake = fake_new();
	enum lag_status status;

	if (argc >= 2 && strcmp(argv[1], "run") == 0) {
		const char *no_color = getenv("NO_COLOR");

		setlocale(LC_CTYPE, "");
		opts.mouse = true;
		opts.no_color = no_color && no_color[0];
		status = lag_tui_run(fake_data(fake), &opts, &err);
	} else if (argc >= 5) {
		int width = (int)strtol(argv[2], NULL, 10);
		int height = (int)strtol(argv[3], NULL, 10);

		opts.view = argv[1];
		opts.ascii = strcmp(argv[4], "1") == 0;
		opts.keys = argc > 5 ? argv[5] : NULL;
		status = height ? lag_tui_screen(fake_data(fake), &opts, width, height, &out, &err)
				: lag_tui_print(fake_data(fake), &opts, width, 0, &out, &err);
	} else {
		status = lag_err_set(&err, LAG_ERR_USAGE,
				     "usage: tui_screens VIEW W H ASCII [KEYS]");
	}
	if (lag_failed(status))
		fprintf(stderr, "%s\n", err.text);
	fputs(lag_buf_text(&out), stdout);
	lag_buf_release(&out);
	fake_free(fake);
	return lag_failed(status) ? 2 : 0;
}
