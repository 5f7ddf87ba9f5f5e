/* SPDX-License-Identifier: Apache-2.0 */
/* The full-screen program as a library: what it is given, and three ways to run it. It reads model
 * objects and tables only, and never writes to stdout or stderr but through the terminal. */
#ifndef VIZ_TUI_TUI_H
#define VIZ_TUI_TUI_H

#include "viz/model/context.h"
#include "viz/model/detail.h"
#include "viz/model/stragglers.h"
#include "viz/model/table.h"

/* Everything is borrowed and must outlive the call. */
struct lag_tui_data {
	const char *title; /* the run's file name */
	const struct lag_trace *trace;
	const struct lag_roles *roles;
	const struct lag_steps *steps;
	const struct lag_waits *waits;
	const struct lag_pipeline *pipeline;
	const struct lag_ledger *ledger;
	const struct lag_peers *peers;
	const struct lag_stragglers *stragglers;
	/* Where the trace has too many events to hold them: only what can be drawn without is shown then.
	 * NULL: all events are there. */
	struct lag_detail *detail;
	void *self;
	/* The table of an analysis, borrowed; computed on first use. */
	enum lag_status (*table)(void *self, const char *name, const struct lag_table **out,
				 struct lag_err *err);
};

struct lag_tui_opts {
	const char *view; /* first view; NULL = overview */
	const char
		*keys; /* keys pressed before anything is shown, names separated by blanks; NULL */
	bool ascii;    /* glyphs in ASCII even where the locale has more */
	bool no_color;
	bool mouse;
};

/* On the terminal, until the user leaves. LAG_ERR_SYSTEM when there is no usable terminal. */
enum lag_status lag_tui_run(const struct lag_tui_data *data, const struct lag_tui_opts *opts,
			    struct lag_err *err) LAG_MUST_USE;

/* The whole screen as text after opts->keys, without a terminal. */
enum lag_status lag_tui_screen(const struct lag_tui_data *data, const struct lag_tui_opts *opts,
			       int width, int height, struct lag_buf *out,
			       struct lag_err *err) LAG_MUST_USE;

/* A view as text for a file or a ticket: no key line, as many lines as it has (height 0), else at
 * most `height`. opts->keys are pressed first. */
enum lag_status lag_tui_print(const struct lag_tui_data *data, const struct lag_tui_opts *opts,
			      int width, int height, struct lag_buf *out,
			      struct lag_err *err) LAG_MUST_USE;

/* Whether this view cannot be shown of a trace whose events are not all there. */
bool lag_tui_needs_events(const char *view);

/* Names of the views, NULL-terminated. */
extern const char *const lag_tui_views[];

#endif
